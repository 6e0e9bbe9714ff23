# SPDX-License-Identifier: GPL-2.0-or-later
# Frames of every kind, nested; prints its own backtrace and "READY", then spins in the same frames.
module Deep
  class Bar
    def self.smeth(x) = yield(x)

    def inst(n)
      [n].each do |x|
        Bar.smeth(x) { |y| blk(y) }
      end
    end

    def blk(y)
      body = lambda { |q| resc(q) }
      body.call(y)
    end

    def resc(q)
      raise "x"
    rescue
      [q].each { |v| ens(v) }
    end

    def ens(q)
      catch(:out) do
        begin
          throw :out
        ensure
          dm(q)
        end
      end
    end

    define_method(:dm) { |z| anything(z) }

    def method_missing(name, *args)
      return super unless name == :anything
      eval("evald(args[0])", binding, "given.rb", 77)
    end

    def evald(v)
      [3, 1, 2].sort_by do |w|
        1.times { Sub.new.spin(w) }
      end
    end
  end

  module Pre
    def spin(w)
      super
    end
  end

  class Sub < Bar
    prepend Pre

    class << self
      def klsm(a)
        o = Object.new
        def o.sing(a)
          {a: a}.each_pair do |_, v|
            3.send(:instance_exec) { Nameless.new.anon(v) }
          end
        end
        o.sing(a)
      end
    end

    def spin(w)
      Sub.klsm(w)
    end
  end

  module Refined
    refine Integer do
      def refined
        tap { Deep.run(
          self,
          Deep.module_function_one(self)
        ) }
      end
    end
  end

  def self.run(_, v)
    Hash.new { |_, k| instance_variable_get(:@odd).odd(k) }[v]
  end

  def self.module_function_one(v) = v

  @odd = Object.new
  class << @odd
    define_method("has space; \u00e9".to_sym) { |v| TOPLEVEL.call(v) }
    def odd(v) = __send__("has space; \u00e9", v)
  end
end

using Deep::Refined

holder = [Class.new { def anon(v) = 5.refined }]
Deep::Nameless = Class.new(Class.new { def anon(v) = holder_call(v) })
class Deep::Nameless
  def holder_call(v) = HOLDER[0].new.anon(v)
end
HOLDER = holder

def toplevel_spin(_)
  200.times { 1 }
  a = [1,
       2]
  a.sort { |x, y| $stdout.sync = true; leaf; x <=> y }
end

def leaf
  caller_locations(0).each { |l| puts [l.path, l.lineno, l.label].join("\t") }
  puts "READY"
  i = 0
  i += 1 while true
end

TOPLEVEL = proc { |v| toplevel_spin(v) }
Struct.new(:a) do
  define_singleton_method(:go) { Deep::Bar.new.inst(1) }
  tap { |k| k.go }
end
