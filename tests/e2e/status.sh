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

# start_record ARGUMENT...: in the background, its pid in $recorder. A shell's background process ignores
# SIGINT; python gives it back its default.
start_record()
{
	python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$XPROF" record "$@" 2>"$tmp/err" >"$tmp/out" &
	recorder=$!
	tap_children="$tap_children $recorder"
}

# signal_record SIGNAL WANT NAME ARGUMENT...: sends it after a second
signal_record()
{
	local signal=$1 want=$2 name=$3
	shift 3
	start_record -o "$tmp/data" -F 499 "$@"
	sleep 1.2
	kill -$signal $recorder
	[ -z "${second:-}" ] || { sleep 0.02; kill -$second $recorder 2>/dev/null; }
	status=0
	wait $recorder || status=$?
	is "$status" "$want" "$name: status" || diag "$(cat "$tmp/err")"
	"$XPROF" report -i "$tmp/data" --folded >"$tmp/folded" 2>"$tmp/err"
	is $? 0 "$name: the file is complete" || diag "$(cat "$tmp/err")"
	stacks=$tmp/folded
	cmp_num "$(samples)" -ge 20 "$name: and has the samples"
}

need_program python3
signal_record INT 0 "SIGINT to record -p" -p $target
signal_record TERM 143 "SIGTERM to record -p" -p $target
signal_record HUP 129 "SIGHUP to record -p" -p $target

# A second SIGINT only ends what comes after the recording: whatever the status, no broken file.
second=INT
signal_record INT 0 "two SIGINTs to record -p" -p $target
second=

# Output that nobody reads: signals and -d work all the same.
mkfifo "$tmp/fifo"
for signal in INT:130 TERM:143; do
	start_record -o "$tmp/fifo" -p $target
	sleep 1
	like "$(cat "$tmp/err")" "*waiting for somebody to read*" "a named pipe without a reader: it says so"
	kill -${signal%:*} $recorder
	status=0
	wait $recorder || status=$?
	is "$status" ${signal#*:} "a named pipe without a reader: SIG${signal%:*}" || diag "$(cat "$tmp/err")"
done
start_record -q -F 499 -d 1 -o "$tmp/fifo" -p $target
sleep 0.5
cat "$tmp/fifo" >"$tmp/data"
wait $recorder
is $? 0 "a reader that comes late: status" || diag "$(cat "$tmp/err")"
folded "$tmp/data"
cmp_num "$(samples)" -ge 50 "a reader that comes late gets the samples"

# blocked WANT LIMIT NAME SIGNALS ARGUMENT...: a pipe of one page that is not emptied. Each signal is sent
# a second after the last; the recorder ends LIMIT seconds after the last at most.
cat >"$tmp/blocked.py" <<'PY'
import fcntl, os, signal, subprocess, sys, time
fcntl.F_SETPIPE_SZ = 1031
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 4096)
# Who runs the tests in the background has SIGINT ignored, and xprof heeds that.
p = subprocess.Popen(sys.argv[2:], stdout=w, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
for s in sys.argv[1].split():
    time.sleep(1.5)
    if p.poll() is not None:
        sys.exit("ended before SIG" + s)
    p.send_signal(getattr(signal, "SIG" + s))
begin = time.time()
status = p.wait(20)
print(status, time.time() - begin)
PY
blocked()
{
	local want=$1 limit=$2 name=$3 signals=$4
	shift 4
	python3 "$tmp/blocked.py" "$signals" "$XPROF" record -q -F 999 -o - -p $target "$@" \
		>"$tmp/out" 2>"$tmp/err"
	is "$(cut -d ' ' -f 1 "$tmp/out")" "$want" "$name: status" || diag "$(cat "$tmp/err")"
	cmp_num "$(cut -d ' ' -f 2 "$tmp/out")" "<" "$limit" "$name: ends soon"
	like "$(cat "$tmp/err")" "*gave up writing to standard output*" "$name: says that it is incomplete"
}
blocked 1 5 "a full pipe, -d 1" "" -d 1
blocked 1 5 "a full pipe, SIGINT" INT
blocked 1 1.5 "a full pipe, two SIGINTs" "INT INT"
blocked 1 1.5 "a full pipe, SIGINT and SIGTERM" "INT TERM"

kill -KILL $target
wait $target 2>/dev/null

# Waiting for the command only: nothing is sampled any more, and a signal ends the wait.
start_record -d 0.5 -o "$tmp/data" -- sleep 30
sleep 1.5
like "$(cat "$tmp/err")" "*samples of 1 process*the command goes on*" "the summary comes before the wait"
is "$(cat /proc/$recorder/fdinfo/* 2>/dev/null | grep -c '^prog_id:')" 0 "nothing is in the kernel meanwhile"
kill -INT $recorder
status=0
wait $recorder || status=$?
is "$status" 130 "SIGINT while the command is waited for"
start_record -o "$tmp/data" -- sleep 30
sleep 1
kill -INT $recorder
sleep 0.5
kill -0 $recorder
ok $? "after one SIGINT the command is waited for"
kill -INT $recorder
status=0
wait $recorder || status=$?
is "$status" 130 "the second SIGINT ends the wait"
"$XPROF" report -q -i "$tmp/data" --folded >/dev/null 2>&1
is $? 0 "and the file is complete"

# The command's signals are those that xprof was started with.
ignored()
{
	awk '$1 == "SigIgn:" { print $2 }' "$tmp/out"
}
run "$XPROF" record -q -o "$tmp/data" -- cat /proc/self/status
is "$(ignored)" "$(awk '$1 == "SigIgn:" { print $2 }' /proc/self/status)" "the command ignores no signal of ours"
(trap '' PIPE XFSZ && run "$XPROF" record -q -o "$tmp/data" -- cat /proc/self/status)
# Besides what the tests themselves were started with.
(trap '' PIPE XFSZ && cat /proc/self/status >"$tmp/plain")
is "$(ignored)" "$(awk '$1 == "SigIgn:" { print $2 }' "$tmp/plain")" \
	"the command goes on ignoring what was ignored"

# A limit of the file's size is an error like a full disk.
(ulimit -f 4 && run "$XPROF" record -q -F 9999 -o "$tmp/data" -- "$WORKLOADS/shares-gcc-O2" 1; exit "$status")
is $? 1 "ulimit -f: status"
like "$(cat "$tmp/err")" "*File too large*" "ulimit -f: says so"
"$XPROF" report -q -i "$tmp/data" --folded >/dev/null 2>&1
is $? 3 "ulimit -f: what was written is readable"

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
