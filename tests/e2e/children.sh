#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Processes and threads that start while the recording runs: fork without exec, vfork and exec, exec,
# pre-forking servers, threads by the hundred, a parent that ends before its child.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# shares LABEL: of the recording that just ended, against what the program printed
shares()
{
	is "$status" 0 "$1: status" || diag "$err"
	folded "$tmp/data"
	awk -v name="$1" -f "$here/../lib/shares.awk" "${2:-$tmp/out}" "$stacks" >"$tmp/shares"
	ok $? "$1: shares are the truth within 4 sigma"
	diag "$(cat "$tmp/shares")"
}

record "$tmp/data" -F 999 -- sh -c '"$WORKLOADS/procs" fork 3 0.5; exit 0'
shares "sh, fork without exec"
complete_enough "fork without exec" 99
is "$(unknown)" 0 "fork without exec: no unknown function"

record "$tmp/data" -F 999 -- "$WORKLOADS/procs" exec 0.5
shares "exec"
complete_enough "exec" 95

record "$tmp/data" -F 999 -- "$WORKLOADS/procs" vfork 25
shares "vfork and exec"
# Lives of 20 ms: the time in which xprof learns of an exec is a good part of them.
complete_enough "vfork and exec" 75
is "$(samples '/vfork_once/ && /after_exec/')" 0 "vfork: no stack is of both programs"

record "$tmp/data" -F 999 -- "$WORKLOADS/threads" churn 1.5
shares "threads without end"
complete_enough "threads without end"

# A server that replaces its workers, found by its parent's pid.
"$WORKLOADS/procs" prefork 2.5 >"$tmp/prefork" &
parent=$!
tap_children="$tap_children $parent"
sleep 0.2
record "$tmp/data" -F 999 -d 2 -p $parent
is "$status" 0 "prefork: status" || diag "$err"
wait $parent
folded "$tmp/data"
for i in 0 1 2 3; do
	cmp_num "$(with_frame child_work_$i)" -ge 20 "prefork: worker $i is there"
done
cmp_num "$(unknown) * 100" "<=" "$(samples)" "prefork: at most 1 % without a name"
complete_enough "prefork" 95

# Started before the parent forks; ends by itself when the last child has ended.
"$WORKLOADS/procs" orphan 0.7 &
parent=$!
tap_children="$tap_children $parent"
run timeout 20 "$XPROF" record -q -F 999 -o "$tmp/data" -p $parent
is "$status" 0 "orphan: ends when the last child has ended" || diag "$err"
folded "$tmp/data"
cmp_num "$(with_frame child_work_0)" -ge 100 "orphan: the child is recorded after its parent ended"
done_testing
