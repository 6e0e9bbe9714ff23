#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Rubies however they begin and end: running already, short-lived, forked, replaced, many at once, deep, killed
# while they start; files that only look like a Ruby; and what a report shows and hides of one.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
: "${RUBY:=ruby3.1}"
need_program "$RUBY"
start=$here/../workloads/ruby/start.rb
shapes=$here/../workloads/ruby/shapes.rb

# ruby RUBY-ARGUMENT...: records the command "ruby --disable-gems start.rb ..."
ruby()
{
	record "$tmp/data" -F 997 -- "$RUBY" --disable-gems "$start" "$@"
	is "$status" 0 "$1: status" || diag "$err"
	folded "$tmp/data"
}

# in_the_background SHAPE [OPTION]: in $spawned, when it has begun
in_the_background()
{
	local tries=0
	: >"$tmp/ready"
	spawn "$RUBY" --disable-gems $2 "$shapes" "$1" >"$tmp/ready"
	while [ ! -s "$tmp/ready" ] && [ $tries -lt 100 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
}

# Running already: Ruby frames from the first sample on.
in_the_background prime
first=$spawned
run "$XPROF" record -v -o "$tmp/data" -F 997 -d 0.5 -p $first
diag "$(grep 'first sample' "$tmp/err")"
folded "$tmp/data"
cmp_num "$(samples)" -ge 50 "attach: samples"
is "$(samples '!/;main;.*;Object#sum_of_primes/ && !/;Object#(prime|again)/')" 0 "attach: all are named" ||
	diag "$(grep -v sum_of_primes "$stacks" | head -2)"

# Two at once.
in_the_background calls
record "$tmp/data" -F 997 -d 0.5 -p $first,$spawned
folded "$tmp/data"
cmp_num "$(with_frame Object#sum_of_primes)" -ge 30 "two processes: frames of the first"
cmp_num "$(with_frame Object#fibonacci)" -ge 30 "two processes: frames of the second"
is "$(samples '/;Object#prime;/ && /;Object#fibonacci[; ]/')" 0 "two processes: not mixed up"
kill -KILL $first $spawned

# The whole chain of compiled code.
if "$RUBY" --yjit -e 1 2>/dev/null; then
	in_the_background prime --yjit
	record "$tmp/data" -F 997 -d 1 -p $spawned
	kill -KILL $spawned
	folded "$tmp/data"
	chain=";main;<main>;Object#prime;Object#again;block in Object#prime;Object#sum_of_primes;Range#each"
	chain="$chain;block in Object#sum_of_primes;Object#is_prime"
	cmp_num "$(grep -F "$chain" "$stacks" | awk '{ n += $NF } END { print n * 100 }')" ">=" "50 * $(samples)" \
		"compiled code: from main to the innermost method"
	is "$(samples '/;Object#is_prime[; ]/ && !/;main;<main>;Object#prime;Object#again;block in Object#prime;Object#sum_of_primes;Range#each;block in Object#sum_of_primes;Object#is_prime/')" \
		0 "compiled code: never less than the whole chain"
	is "$(unknown)" 0 "compiled code: nothing unknown"
else
	skip yjit "this Ruby has no YJIT" "compiled code"
fi

# Short-lived ones.
for i in 1 2 3; do
	ruby spin 0.1
	cmp_num "$(samples '/;main;<main>;Object#spin/')" -ge 20 "short-lived $i: named"
done

# A shell that starts a Ruby that forks workers.
record "$tmp/data" -F 997 -- sh -c "\"\$0\" --disable-gems \"\$1\" workers; true" "$RUBY" "$start"
is "$status" 0 "workers: status" || diag "$err"
folded "$tmp/data"
cmp_num "$(with_frame Object#in_worker)" -ge 200 "workers: named" || diag "$err
$(cut -c1-200 "$stacks" | head -5)"

ruby exec
cmp_num "$(with_frame Object#before_exec)" -ge 60 "exec: named before"
cmp_num "$(with_frame Object#after_exec)" -ge 60 "exec: named after"
is "$(samples '/Object#before_exec.*Object#after_exec/')" 0 "exec: not mixed up"

ruby fork
cmp_num "$(with_frame Object#in_child)" -ge 300 "fork: children are named"
# In the interpreter's loop with no Ruby frame.
cmp_num "$(samples '/;rb_vm_exec;/ && !/;<main>/') * 50" "<=" "$(samples)" "fork: from their first sample on" ||
	diag "$(samples '/;rb_vm_exec;/ && !/;<main>/') of $(samples) without Ruby frames"

# 8,000 frames: more than one sample may take at a high rate.
export RUBY_THREAD_VM_STACK_SIZE=8388608
ruby deep 8000
cmp_num "$(samples '/Object#descend;Object#spin/')" -ge 50 "deep: the innermost frames" ||
	diag "$(cut -c1-300 "$stacks" | head -3)"
is "$(samples '/Object#descend;Object#spin/ && !/;<main>;Object#descend/ && !/\[truncated: VM stack/')" 0 \
	"deep: a cut stack is marked"
cmp_num "$(grep 'Object#spin' "$stacks" | grep -vcE '(;Object#descend){100};Object#spin')" -le 3 \
	"deep: hundreds of them"
diag "deep: $(samples '/\[truncated: VM stack/') of $(samples) cut at 997 Hz"
unset RUBY_THREAD_VM_STACK_SIZE

# Ends at once; killed in the middle of its start.
record "$tmp/data" -F 997 -- "$RUBY" --version
is "$status" 0 "--version: status" || diag "$err"
like "$(cat "$tmp/out")" "ruby 3.1*" "--version: says it"
for ms in 4 8 12 16 20 25 30 40; do
	record "$tmp/data" -F 997 -- sh -c '"$0" -e "loop {}" & sleep "$1"; kill -KILL $!; wait' "$RUBY" 0.0$ms
	[ "$status" = 0 ] && "$XPROF" report -i "$tmp/data" --folded >"$tmp/killed" 2>"$tmp/killed.err"
	is "$?" 0 "killed after 0.0$ms s: status" || diag "$err"
done

# A file that exports ruby_version and is none, in a program of its own.
if command -v gcc >/dev/null; then
	mkdir "$tmp/lib"
	cat >"$tmp/fake.c" <<-'C'
		const char ruby_version[] = "3.1.2";
		int spin(int n) { volatile int i; for (i = 0; i < n; i++); return i; }
	C
	cat >"$tmp/main.c" <<-'C'
		int spin(int);
		int main(void) { for (int i = 0; i < 800; i++) spin(1000000); return 0; }
	C
	gcc -shared -fPIC -o "$tmp/lib/libfake.so" "$tmp/fake.c" &&
		gcc -O1 -o "$tmp/main" "$tmp/main.c" -L"$tmp/lib" -lfake -Wl,-rpath,"$tmp/lib"
	record "$tmp/data" -F 997 -v -- "$tmp/main"
	is "$status" 0 "no Ruby: status" || diag "$err"
	is "$(grep -c 'ruby 3.1.2: no exported function rb_thread_current' "$tmp/err")" 1 "no Ruby: one message" || diag "$err"
	folded "$tmp/data"
	cmp_num "$(samples '/;_start;.*;main;spin/')" -ge 50 "no Ruby: native frames"
else
	skip gcc "gcc is not installed" "no Ruby"
fi

# A version that is not known.
lib=$(ldd "$(command -v "$RUBY")" 2>/dev/null | awk '/libruby/ { print $3 }')
if command -v python3 >/dev/null && [ -n "$lib" ]; then
	mkdir -p "$tmp/new"
	python3 - "$lib" "$tmp/new/$(basename "$lib")" <<-'PY'
		import re, sys
		data = open(sys.argv[1], "rb").read()
		open(sys.argv[2], "wb").write(re.sub(rb"\x003\.1\.\d\x00", b"\x009.9.9\x00", data))
	PY
	LD_LIBRARY_PATH=$tmp/new record "$tmp/data" -F 997 -v -- "$RUBY" --disable-gems "$start" spin 0.5
	is "$status" 0 "unknown version: status" || diag "$err"
	is "$(grep -c "ruby 9.9.9: this version's structures are not known" "$tmp/err")" 1 "unknown version: one message" ||
		diag "$err"
	folded "$tmp/data"
	cmp_num "$(samples '/;_start;.*;main;ruby_run_node;.*rb_vm_exec/')" -ge 50 "unknown version: native frames"
	complete_enough "unknown version" 97
else
	skip python3 "no python3, or the Ruby is no shared library" "unknown version"
fi

# What a report shows and hides.
record "$tmp/data" -F 997 -- "$RUBY" --disable-gems "$here/../workloads/ruby/cases.rb" collector 1
folded "$tmp/data"
all=$(samples)
is "$(samples '/;ruby_run_node.*;Object#collector/')" 0 "default: no interpreter between Ruby frames"
is "$(samples '/rb_vm_exec.*Object#garbage;Array#<</')" 0 "default: nor below them"
"$XPROF" report -i "$tmp/data" --folded --internals >"$tmp/internals" 2>"$tmp/report.err"
stacks=$tmp/internals
cmp_num "$(samples '/;main;ruby_run_node;.*rb_vm_exec;.*;Object#collector/')" ">=" "0.95 * $(samples '/;Object#collector/')" \
	"--internals: the interpreter's own frames" || diag "$(grep Object#collector "$stacks" | head -2)"
is "$(samples)" "$all" "--internals: as many samples"
"$XPROF" report -i "$tmp/data" --folded --no-gc >"$tmp/no-gc" 2>"$tmp/report.err"
stacks=$tmp/no-gc
is "$(samples '/\(garbage collection/')" 0 "--no-gc: no collector"
is "$(samples)" "$all" "--no-gc: as many samples"
done_testing
