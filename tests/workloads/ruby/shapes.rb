# SPDX-License-Identifier: GPL-2.0-or-later
#
# Small programs of the shapes that matter to a walker of the Ruby VM's stack.
#
# usage: shapes.rb SHAPE [SECONDS]
#
# Prints READY when it has begun; runs for so long, 600 seconds if nothing is said.

STOP = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (ARGV[1] || 600).to_f
def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) > STOP

def ready
  $stdout.puts "READY"
  $stdout.flush
end

def again
  ready
  yield until over?
end

# Loops, a block in a C function, a method called very often.
def is_prime(n)
  return false if n < 2
  i = 2
  while i * i <= n
    return false if n % i == 0
    i += 1
  end
  true
end

def sum_of_primes(n)
  sum = 0
  (2..n).each { |i| sum += i if is_prime(i) }
  sum
end

def prime = again { sum_of_primes(2000) }

# Nothing but calls: frames are pushed and popped all the time.
def first(x) = second(x) { |y| y + 1 }
def second(x) = third(yield(x))

def third(x)
  [x].each { |q| q.to_s }
  x
end

def fibonacci(n) = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)

def calls
  again do
    first(1)
    fibonacci(8)
  end
end

# Contexts that change all the time.
def leaf(n) = n + 1

def fibers
  fiber = Fiber.new do
    loop do
      leaf(1)
      Fiber.yield 1
    end
  end
  enumerator = Enumerator.new { |y| loop { y << leaf(2) } }
  again do
    fiber.resume
    enumerator.next
    leaf(3)
  end
end

def count(n)
  i = 0
  i += 1 while i < n
end

def gc
  $keep = Array.new(200_000) { |i| "string #{i}" }
  again do
    GC.start
    count(200_000)
  end
end

# Threads that want the lock, one that mostly waits.
def thr
  work = ->(n) { (1..n).inject(0) { |a, b| a + fibonacci(b % 12) } }
  threads = 3.times.map { |k| Thread.new { (work.call(50); Thread.pass if k == 1) until over? } }
  threads << Thread.new { (sleep 0.005; work.call(3)) until over? }
  ready
  threads.each(&:join)
end

# All kinds of threads of one process: named, waiting, with a fiber, a ractor.
def threads
  Warning[:experimental] = false
  Thread.new { Thread.current.name = "busy"; count(10**12) }
  Thread.new { sleep 600 }
  Thread.new { Fiber.new { count(10**12) }.resume }
  Ractor.new { i = 0; i += 1 while true }
  again { count(100_000) }
end

# Ruby code called from C code that recurses.
class Key
  attr_reader :n
  def initialize(n) = @n = n

  def <=>(other)
    fibonacci(5)
    n <=> other.n
  end
end

def sort
  keys = (1..20).map { |i| Key.new(i * 7 % 20) }
  again { keys.sort.sort_by { |k| -k.n }.each_slice(3).to_a }
end

# What a compiler compiles: methods of a class, blocks, instance variables.
class Account
  attr_accessor :balance
  def initialize = @balance = 0

  def deposit(n)
    check(n)
    @balance += n
  end

  def check(n) = n.negative? ? raise(ArgumentError) : n
end

def jit
  account = Account.new
  again { 500.times { |i| account.deposit(i & 7) } }
end

# Deep, plain and through blocks of a C function.
def descend(n) = n.zero? ? count(100_000) : descend(n - 1)
def descend_blocks(n) = n.zero? ? count(100_000) : [n].each { |k| descend_blocks(k - 1) }

def deep
  again do
    descend(200)
    descend_blocks(60)
  end
end

send(ARGV[0])
