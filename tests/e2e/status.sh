#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Exit statuses, signals and durations of record, as xprof(1) documents them.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# status_of WANT NAME ARGUMENT...
status_of()
{
	local want=$1 name=$2
	shift 2
	run "$XPROF" record -q -o "$tmp/data" "$@"
	is "$status" "$want" "$name" || diag "$err"
}

now()
{
	awk '{ print $1 }' /proc/uptime
}

status_of 0 "a command that succeeds" -- true
status_of 7 "a command that fails with 7" -- sh -c 'exit 7'
status_of 137 "a command killed by SIGKILL" -- sh -c 'kill -9 $$'
status_of 143 "a command killed by SIGTERM" -- sh -c 'kill -TERM $$'
status_of 139 "a command that crashes" -- sh -c 'kill -SEGV $$'
status_of 127 "no such command" -- "$tmp/no-such-command"
status_of 127 "no such command in PATH" -- no-such-command-anywhere
: >"$tmp/plain"
status_of 126 "not executable" -- "$tmp/plain"
status_of 126 "a directory" -- "$tmp"
run "$XPROF" record -q -o "$tmp/data" -- sh -c 'cat; echo out; echo err >&2'
is "$out" "out" "the command's output is its own"
is "$(head -1 "$tmp/err")" "err" "so is its stderr"

# -d: so long while the target lives, and not much longer.
spawn "$WORKLOADS/shares-gcc-O2" 60 >/dev/null
target=$spawned
begin=$(now)
status_of 0 "-d 2 -p: status" -d 2 -p $target
lasted=$(awk "BEGIN { print $(now) - $begin }")
cmp_num "$lasted" ">=" 1.95 "-d 2 lasts 2 s"
cmp_num "$lasted" "<" 4 "-d 2 lasts no 4 s"
kill -0 $target
ok $? "the target lives on"
folded "$tmp/data"
cmp_num "$(samples)" -ge 100 "-d 2 at the default rate: samples"

begin=$(now)
status_of 0 "perf's habit: -p PID -- sleep 1" -p $target -- sleep 1
lasted=$(awk "BEGIN { print $(now) - $begin }")
cmp_num "$lasted" ">=" 0.95 "-p PID -- sleep 1 lasts 1 s"
cmp_num "$lasted" "<" 3 "-p PID -- sleep 1 lasts no 3 s"
folded "$tmp/data"
cmp_num "$(with_frame alpha)" -ge 20 "-p PID -- sleep 1 records the process"

# -d with a command: the recording ends, the command goes on, its status is returned.
begin=$(now)
status_of 9 "-d 1 -- COMMAND: the command's status" -d 1 -- sh -c 'sleep 2; exit 9'
lasted=$(awk "BEGIN { print $(now) - $begin }")
cmp_num "$lasted" ">=" 1.95 "-d 1 -- COMMAND waits for the command"

# signal_record SIGNAL WANT NAME ARGUMENT...: sends it after a second
signal_record()
{
	local signal=$1 want=$2 name=$3 recorder
	shift 3
	# A shell's background process ignores SIGINT; python gives it back its default.
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$XPROF" record -o "$tmp/data" -F 499 "$@" 2>"$tmp/err" >"$tmp/out" &
	recorder=$!
	tap_children="$tap_children $recorder"
	sleep 1.2
	kill -$signal $recorder
	[ -z "${second:-}" ] || { sleep 0.02; kill -$second $recorder 2>/dev/null; }
	status=0
	wait $recorder || status=$?
	is "$status" "$want" "$name: status" || diag "$(cat "$tmp/err")"
	"$XPROF" report -i "$tmp/data" --folded >"$tmp/folded" 2>"$tmp/err"
	is $? 0 "$name: the file is complete" || diag "$(cat "$tmp/err")"
	stacks=$tmp/folded
	cmp_num "$(samples)" -ge 50 "$name: and has the samples"
}

need_program python3
signal_record INT 0 "SIGINT to record -p" -p $target
signal_record TERM 143 "SIGTERM to record -p" -p $target
signal_record HUP 129 "SIGHUP to record -p" -p $target

# A second SIGINT only ends what comes after the recording: whatever the status, no broken file.
second=INT
signal_record INT 0 "two SIGINTs to record -p" -p $target
second=

kill -KILL $target
wait $target 2>/dev/null

# The target ends: so does the recording, with success.
spawn "$WORKLOADS/shares-gcc-O2" 0.6 >/dev/null
run timeout 20 "$XPROF" record -q -o "$tmp/data" -p $spawned
is "$status" 0 "the target ended" || diag "$err"

# Usage errors: one line and a hint, status 2, nothing on stdout.
for arguments in "--no-such-option" "-F 0 -- true" "-F 99999999 -- true" "-F nonsense -- true" "-d x -- true" \
	"-d -1 -- true" "" "-p" "-o"; do
	run "$XPROF" record $arguments
	is "$status" 2 "record $arguments: status 2" || diag "$err"
	is "$out" "" "record $arguments: stdout is empty"
	cmp_num "$(wc -l <"$tmp/err")" -le 3 "record $arguments: at most three lines"
done
run "$XPROF" no-such-command
is "$status" 2 "unknown subcommand: status 2"
run "$XPROF" recrod
like "$err" "*record*" "unknown subcommand: the nearest one is named"
for help in --help "record --help" "record -h" "report --help" "maps --help" --version; do
	run "$XPROF" $help
	is "$status" 0 "$help: status 0"
	is "$err" "" "$help: stderr is empty"
	cmp_num "$(wc -l <"$tmp/out")" -ge 1 "$help: says something"
done
done_testing
