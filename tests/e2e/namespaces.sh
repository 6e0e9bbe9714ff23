#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A target in mount and pid namespaces of its own, as in a container: its file is read where the target
# sees it, not where the same path leads here.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads
need_program unshare

mkdir "$tmp/root"
cp "$WORKLOADS/shares-gcc-O2" "$tmp/root/program"
# Here the path leads to a program without these functions.
cat >"$tmp/inside.sh" <<INSIDE
mount -t tmpfs none $tmp/root || exit 9
cp "$WORKLOADS/procs" $tmp/root/program || exit 9
exec $tmp/root/program spin 60
INSIDE
unshare -mpf --mount-proc sh "$tmp/inside.sh" >/dev/null 2>"$tmp/unshare" &
outer=$!
tap_children="$tap_children $outer"
target=
tries=0
while [ -z "$target" ] && [ $tries -lt 20 ] && kill -0 $outer 2>/dev/null; do
	tries=$((tries + 1))
	sleep 0.2
	for child in $(cat /proc/$outer/task/$outer/children 2>/dev/null); do
		[ "$(cat /proc/$child/comm)" != program ] || target=$child
	done
done
[ -n "$target" ] || skip_all namespaces "namespaces cannot be made here: $(cat "$tmp/unshare")"
tap_children="$tap_children $target"

record "$tmp/data" -F 999 -d 1 -p "$target"
is "$status" 0 "status" || diag "$err"
folded "$tmp/data"
cmp_num "$(samples)" -ge 100 "samples"
cmp_num "$(with_frame after_exec) * 100" ">=" "$(samples) * 90" "names are those of the file the target sees" ||
	diag "$(head -3 "$stacks")"
is "$(with_frame alpha)" 0 "none of the file that the path leads to here"
complete_enough "namespaces"
run "$XPROF" maps -p "$target"
is "$status" 0 "maps: status" || diag "$err"
done_testing
