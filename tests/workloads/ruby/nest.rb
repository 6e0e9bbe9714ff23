# SPDX-License-Identifier: GPL-2.0-or-later
#
# Random nests of every kind of Ruby frame. At the bottom of each nest the program writes down its own
# backtrace (caller_locations) and then spins on the same line, so a sample taken in spin must have
# exactly these frames below it, with these lines.
#
# usage: nest.rb DIRECTORY MODE [SECONDS]
#
# The backtrace goes to DIRECTORY/THREAD-ID, a line "label<tab>path<tab>line" for each frame, leaf first,
# then a line ".". MODE is plain, threads (four of them), fibers (each nest in a new fiber) or gc (spin
# makes garbage).

DIRECTORY, MODE = ARGV
SECONDS = (ARGV[2] || 600).to_f
REQUIRED = File.join(__dir__, "required.rb")

module Wrapper
  def wrapped(d) super(d) end
end

class Base
  def inherited_call(d) down(d - 1) end
  def self.singleton(nest, d) nest.down(d - 1) end
end

class Item
  include Comparable
  attr_reader :key
  def initialize(key, nest, d) @key, @nest, @d = key, nest, d end

  def <=>(other)
    @nest.once { @nest.down(@d - 1) } if @key == 3
    @key <=> other.key
  end
end

class Text
  def initialize(nest, d) @nest, @d = nest, d end

  def to_s
    @nest.down(@d - 1)
    "text"
  end
end

class Nest < Base
  prepend Wrapper
  SHAPES = []

  # The nest and its depth at the moment, of this thread, for the shapes that cannot pass arguments.
  def self.current = Thread.current.thread_variable_get(:nest)
  def self.depth = Thread.current.thread_variable_get(:depth)

  def self.shape(name)
    SHAPES << name
    name
  end

  def initialize(seed)
    @random = Random.new(seed)
    @file = File.open(File.join(DIRECTORY, Thread.current.native_thread_id.to_s), "w")
    @turns = 0
  end

  attr_reader :turns

  def once
    return if @done
    @done = true
    yield
  end

  def down(d)
    return leaf if d <= 0
    send(SHAPES[@random.rand(SHAPES.size)], d)
  end

  def leaf
    publish(caller_locations(0)); MODE == "gc" ? spin_garbage : spin
  end

  def publish(frames)
    lines = frames.map { |f| "#{f.label}\t#{f.path}\t#{f.lineno}\n" }
    @file.pwrite(lines.join + ".\n", 0)
    @turns += 1
  end

  def spin
    i = 0
    n = 30_000 + @random.rand(60_000)
    while i < n
      i += 1
    end
  end

  def spin_garbage
    i = 0
    while i < 3_000
      "garbage" * 20
      i += 1
    end
  end

  shape def plain(d)
    down(d - 1)
  end

  shape def several_lines(d)
    plain(
      [d,
       d].max
    )
  end

  shape def wrapped(d)
    down(d - 1)
  end

  shape def from_base(d) = inherited_call(d)
  shape def class_method(d) = Base.singleton(self, d)

  shape def each_block(d)
    [1].each do |_|
      {a: 1}.each_pair { |_, v| down(d - v) }
    end
  end

  shape def map_inject(d)
    [1].map { |x| [x].inject(0) { |_, b| down(d - b) } }
  end

  shape def times_tap(d)
    1.times { tap { self.then { down(d - 1) } } }
  end

  shape def sort_by_block(d)
    @done = false
    [3, 1, 2].sort_by do |w|
      once { down(d - 1) }
      w
    end
  end

  shape def sort_compare(d)
    @done = false
    [5, 3, 1].map { |k| Item.new(k, self, d) }.sort
  end

  shape def hash_default(d)
    Hash.new { |_, _| down(d - 1) }[:x]
  end

  shape def interpolation(d)
    "#{Text.new(self, d)}"
  end

  shape def with_lambda(d)
    l = lambda { |x| down(x - 1) }
    l.call(d)
  end

  shape def with_proc(d)
    proc { |x| down(x - 1) }.(d)
  end

  shape def method_object(d)
    [d].each(&method(:plain))
  end

  shape def symbol_proc(d)
    Thread.current.thread_variable_set(:depth, d)
    [self].each(&:with_variable)
  end

  def with_variable
    down(Nest.depth - 1)
  end

  shape def with_rescue(d)
    raise "x"
  rescue RuntimeError
    down(d - 1)
  end

  shape def with_ensure(d)
    d + 1
  ensure
    down(d - 1)
  end

  shape def ensure_after_raise(d)
    begin
      begin
        raise "x"
      ensure
        down(d - 1)
      end
    rescue RuntimeError
      d
    end
  end

  shape def with_catch(d)
    catch(:tag) { down(d - 1) }
  end

  shape def evaluated(d)
    eval("down(d - 1)", binding, "given.erb", 77)
  end

  shape def instance_executed(d)
    send(:instance_exec, d) { |x| down(x - 1) }
  end

  shape define_method(:defined) { |d| down(d - 1) }

  def method_missing(name, *arguments)
    return super unless name == :not_there

    down(arguments[0] - 1)
  end

  def respond_to_missing?(name, _) = name == :not_there
  shape def missing(d) = not_there(d)

  shape def on_object(d)
    object = Object.new
    nest = self
    object.define_singleton_method(:sing) { |x| nest.down(x - 1) }
    def object.plain_sing(nest, d) = nest.down(d - 1)
    d.odd? ? object.sing(d) : object.plain_sing(nest, d)
  end

  shape def in_class_body(d)
    nest = self
    Class.new { define_method(:anonymous) { nest.down(d - 1) } }.new.anonymous
  end

  shape def in_struct(d)
    nest = self
    Struct.new(:a) { nest.down(d - 1) }
  end

  shape def loaded(d)
    Thread.current.thread_variable_set(:depth, d)
    load(REQUIRED)
  end

  # A method of 300 lines that calls in lines 17, 150 and 299.
  LONG = Array.new(300) { |i| "  @filler = #{i}" }
  LONG[0] = "def long(d)"
  LONG[16] = "  return down(d - 1) if d % 3 == 0"
  LONG[149] = "  return down(d - 1) if d % 3 == 1"
  LONG[298] = "  down(d - 1)"
  LONG[299] = "end"
  class_eval(LONG.join("\n"), "long.rb", 1)
  shape :long

  shape def recursive(d) = recurse(d, 20)
  def recurse(d, n) = n.zero? ? down(d - 1) : recurse(d, n - 1)

  shape def enumerator(d)
    Enumerator.new { |y| y << down(d - 1) }.next
  end

  shape def fiber(d)
    Fiber.new { down(d - 1) }.resume
  end

  shape def while_loop(d)
    loop do
      down(d - 1)
      break
    end
  end
end

def run(seed)
  nest = Nest.new(seed)
  Thread.current.thread_variable_set(:nest, nest)
  stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
  n = 0
  while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    depth = 1 + n % 9
    MODE == "fibers" ? Fiber.new { nest.down(depth) }.resume : nest.down(depth)
    n += 1
  end
end

if MODE == "threads"
  4.times.map { |k| Thread.new { Thread.current.name = "nest#{k}"; run(k) } }.each(&:join)
else
  run((ARGV[3] || 1).to_i)
end
