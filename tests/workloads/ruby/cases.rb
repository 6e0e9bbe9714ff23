# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs whose right profile is known by construction.
#
# usage: cases.rb CASE [SECONDS]
#
# Some print "truth NAME SECONDS": the CPU time that a method really took, its callees included, by its
# name as a profile has it. Work has random length, so its rhythm cannot lock to the sampling rate.

SECONDS = (ARGV[1] || 2).to_f
STOP = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) > STOP
def cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

$truth = Hash.new(0.0)
$random = Random.new(1)

def timed(name)
  start = cpu
  yield
  $truth[name] += cpu - start
end

def truth = $truth.each { |name, seconds| puts "truth #{name} #{seconds}" }

def count(n)
  i = 0
  i += 1 while i < n
end

# Methods whose calls must not be mixed up: only baz maps.
def foo
  bar
end

def bar
  baz
  bob
end

def baz = [1, 2, 3].map(&:succ)
def bob = [1, 2, 3]

def torn
  foo until over?
end

# A small method called from two levels of blocks of C functions.
def outer = 10.times { inner }
def inner = 600.times { pick(rand(9), rand(9)) }
def pick(a, b) = [a, b].sort[1]

def labels
  outer until over?
end

# Two threads with equal work.
def even_a = count(200_000)
def even_b = count(200_000)

def fair
  [:even_a, :even_b].map do |m|
    Thread.new do
      send(m) until over?
      $truth["Object##{m}"] = cpu
    end
  end.each(&:join)
  truth
end

# Methods of C.
def cfuncs
  until over?
    20.times { [3, 1, 2].sort_by { |x| x.hash } }
    50.times { "x" * 9000 }
    Dir.entries("/")
  end
end

# Many methods of one name.
class A
  def call(b) = b.call(nil)
end

class B
  def call(_) = count(100_000)
end

module Wrap
  def call(x) = super
end

A.prepend(Wrap)
ANONYMOUS = Class.new { def call(b) = A.new.call(b) }

def classes
  object = Object.new
  def object.sing(k) = k.new.call(B.new)
  object.sing(ANONYMOUS) until over?
end

# Recursion through blocks of a C function.
def recurse(n) = n.zero? ? count(200_000) : [n].each { |x| recurse(x - 1) }

def recursion
  recurse(6) until over?
end

# Garbage in one method, none in the other.
def garbage
  a = []
  20_000.times { a << "x" * 40 }
  a
end

def pure = count(600_000)

def collector
  GC.measure_total_time = true
  started = GC.stat(:time)
  start = cpu
  until over?
    garbage
    pure
  end
  total = cpu - start
  puts "gc #{(GC.stat(:time) - started) / 1000.0} of #{total}"
end

# Awkward names: of methods, a class and a thread.
ODD = ["\u2768\u256F\u25A1\u2769", "l" + "o" * 5000 + "ng", "assigned=", "+", "[]=", "asked?"].freeze
class Ünïcode
  ODD.each { |name| class_eval("def #{name}(*); count(100_000); end") }
  define_method(:"semi;colon") { |*| count(100_000) }
  define_method("\xff\xfe".b.to_sym) { |*| count(100_000) }
  define_method(:"") { |*| count(100_000) }
end

def odd_names
  object = Ünïcode.new
  Thread.new do
    Thread.current.name = "a;b\nc 7"
    Ünïcode.instance_methods(false).each { |name| object.send(name, 1, 2) } until over?
  end.join
end

# Known shares: the leaves differ, blocks and C functions are between.
def short_method(n) = count(2 * n)

def long_method(n)
  count(5 * n)
end

def by_block(n) = [n].each { |k| count(3 * k) }
def in_strings(n) = (n / 60).times { "abc" * 100 }
def in_ensure(n)
  n + 1
ensure
  count(n)
end

def work
  n = 2_000 + $random.rand(20_000)
  timed("Object#short_method") { short_method(n) }
  timed("Object#long_method") { long_method(n) }
  timed("Object#by_block") { by_block(n) }
  timed("Object#in_strings") { in_strings(n) }
  timed("Object#in_ensure") { in_ensure(n) }
end

def shares
  work until over?
  truth
end

# The same in threads, one of which has a fiber.
def thread_shares
  names = %w[one two three]
  names.each_with_index.map do |name, k|
    Thread.new do
      body = -> { count((k + 1) * (2_000 + rand(20_000))) until over? }
      k == 2 ? Fiber.new(&body).resume : body.call
      $truth[name] = cpu
      Thread.current.name = name
    end.tap { |t| t.name = name }
  end.each(&:join)
  truth
end

send(ARGV[0])
