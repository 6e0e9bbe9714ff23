# SPDX-License-Identifier: GPL-2.0-or-later
#
# How a Ruby process can begin and end.
#
# usage: start.rb WHAT [ARGUMENT]

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def spin(seconds)
  stop = now + seconds
  i = 0
  i += 1 while now < stop
end

def before_exec = spin(0.3)
def after_exec = spin(0.3)
def in_parent = spin(0.3)
def in_child = spin(0.05)
def in_worker = spin(0.3)

# Deep enough to be more than a sample may take; RUBY_THREAD_VM_STACK_SIZE must allow it.
def descend(n, seconds) = n.zero? ? spin(seconds) : descend(n - 1, seconds)

case ARGV[0]
when "spin" then spin(ARGV[1].to_f)
when "exec"
  before_exec
  exec("ruby3.1", "--disable-gems", __FILE__, "exec2")
when "exec2" then after_exec
when "fork"
  in_parent
  20.times do
    fork { in_child }
    Process.wait
  end
when "workers"
  in_parent
  3.times { fork { in_worker } }
  Process.waitall
when "deep" then descend(ARGV[1].to_i, 1.2)
end
