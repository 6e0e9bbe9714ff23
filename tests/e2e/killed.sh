#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# kill -9 of record at any moment leaves a file whose samples can be read; the status says that it ends
# early; nothing stays behind in the kernel.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

spawn "$WORKLOADS/shares-gcc-O2" 60 >/dev/null
target=$spawned

# Ids of the BPF programs that a process holds.
programs_of()
{
	cat /proc/$1/fdinfo/* 2>/dev/null | awk '$1 == "prog_id:" { print $2 }'
}

# CPU time of the target in 1/100 s: on a busy machine it is less than the clock's.
ticks()
{
	awk '{ print $14 + $15 }' /proc/$target/stat
}

for after in 0.05 0.3 1 2.5 4; do
	rm -f "$tmp/data" "$tmp/data.old"
	begin=$(ticks)
	"$XPROF" record -q -F 999 -o "$tmp/data" -p $target 2>"$tmp/err" &
	recorder=$!
	tap_children="$tap_children $recorder"
	sleep $after
	programs=$(programs_of $recorder)
	expected=$((($(ticks) - begin) * 999 / 100))
	kill -KILL $recorder
	wait $recorder 2>/dev/null
	if ! [ -s "$tmp/data" ]; then
		cmp_num "$after" "<" 1 "killed after $after s: the file is there"
		continue
	fi
	folded "$tmp/data"
	n=$(samples)
	diag "killed after $after s: status $report_status, $n samples: $(cat "$tmp/report.err")"
	if [ "$n" = 0 ]; then
		like "$report_status" "[13]" "killed after $after s: status"
	else
		is "$report_status" 3 "killed after $after s: status"
	fi
	cmp_num "$(wc -l <"$tmp/report.err")" -ge 1 "killed after $after s: report says so"
	case $after in
	2.5 | 4)
		cmp_num "$n" -ge $((expected - 1600)) "killed after $after s: all but the last 1.6 s at most" ||
			diag "about $expected were taken"
		cmp_num "$(with_frame alpha) * 100" ">=" "$n * 40" "killed after $after s: they have names"
		;;
	esac
done
kill -0 $target
ok $? "the target lives on"
sleep 0.5
if command -v bpftool >/dev/null; then
	cmp_num "$(echo $programs | wc -w)" -ge 1 "the recorder had BPF programs"
	left=
	for id in $programs; do
		! bpftool prog show id $id >/dev/null 2>&1 || left="$left $id"
	done
	is "$left" "" "none of them is left in the kernel"
else
	skip bpftool "bpftool is not installed" "none is left in the kernel"
fi
done_testing
