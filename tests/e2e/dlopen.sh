#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A library loaded while the recording runs; also one whose file is removed or replaced after that, and
# one that never had a file.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

for how in load delete memfd; do
	cp "$WORKLOADS/plugin.so" "$tmp/plugin.so"
	record "$tmp/data" -F 999 -- "$WORKLOADS/dlopen" $how "$tmp/plugin.so" 1.5
	is "$status" 0 "$how: status" || diag "$err"
	folded "$tmp/data"
	awk -v name=$how -f "$here/../lib/shares.awk" "$tmp/out" "$stacks" >"$tmp/shares"
	ok $? "$how: shares are the truth within 4 sigma"
	diag "$(cat "$tmp/shares")"
	complete_enough "$how" 98
	is "$(unknown)" 0 "$how: no unknown function"
done

# Loaded, then replaced by another library, then recorded: names are those of the old file.
cp "$WORKLOADS/plugin.so" "$tmp/plugin.so"
spawn "$WORKLOADS/dlopen" load "$tmp/plugin.so" 4 >/dev/null
target=$spawned
tries=0
until grep -q plugin.so /proc/$target/maps || [ $tries -ge 40 ]; do
	tries=$((tries + 1))
	sleep 0.2
done
cp "$WORKLOADS/plugin-other.so" "$tmp/new.so"
mv "$tmp/new.so" "$tmp/plugin.so"
record "$tmp/data" -F 999 -d 1 -p $target
is "$status" 0 "replaced: status" || diag "$err"
folded "$tmp/data"
cmp_num "$(with_frame plugin_hot)" -ge 100 "replaced: the old file's names"
is "$(with_frame plugin_other)" 0 "replaced: none of the new file's"
complete_enough "replaced"
done_testing
