#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Functions get the share of samples that they had of the CPU: C with both compilers at every level of
# optimization, static, C++, Rust, hand-written assembler, time in the kernel, and threads.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# shares LABEL [by-comm] PROGRAM ARGUMENT...
shares()
{
	local label=$1 by=frame
	shift
	if [ "$1" = by-comm ]; then
		by=comm
		shift
	fi
	need_variant "$1" || return 0
	local program=$WORKLOADS/$1
	shift
	record "$tmp/data" -F 999 -- "$program" "$@"
	is "$status" 0 "$label: status" || diag "$err"
	cp "$tmp/out" "$tmp/truth"
	folded "$tmp/data"
	awk -v name="$label" -v by=$by -f "$here/../lib/shares.awk" "$tmp/truth" "$stacks" >"$tmp/shares"
	ok $? "$label: shares are the truth within 4 sigma"
	diag "$(cat "$tmp/shares")"
}

for o in O0 O1 O2 O3; do
	shares shares-gcc-$o shares-gcc-$o 1.2
	shares shares-clang-$o shares-clang-$o 1.2
done
shares static shares-static 1.2
shares static-pie shares-static-pie 1.2
shares cxx-gcc cxx-gcc 2
shares cxx-clang cxx-clang 2
shares rust rust 1.5
shares assembler asmmain 1.5
shares kernel kernel 1.5
shares threads by-comm threads many 16 3
done_testing
