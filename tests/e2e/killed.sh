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

programs()
{
	bpftool prog show 2>/dev/null | grep -c perf_event
}
before=$(programs)

last=0
for after in 0.05 0.3 1 2 3.5; do
	rm -f "$tmp/data" "$tmp/data.old"
	"$XPROF" record -q -F 999 -o "$tmp/data" -p $target 2>"$tmp/err" &
	recorder=$!
	tap_children="$tap_children $recorder"
	sleep $after
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
	2 | 3.5)
		cmp_num "$n" -ge "$((last + 100))" "killed after $after s: samples until shortly before"
		cmp_num "$(with_frame alpha) * 100" ">=" "$n * 40" "killed after $after s: they have names"
		last=$n
		;;
	esac
done
kill -0 $target
ok $? "the target lives on"
sleep 0.5
if command -v bpftool >/dev/null; then
	is "$(programs)" "$before" "no BPF program is left in the kernel"
else
	skip bpftool "bpftool is not installed" "no BPF program is left in the kernel"
fi
done_testing
