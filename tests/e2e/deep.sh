#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Very deep stacks: whole as far as the walker reaches; beyond that cut at the root side with a mark that
# says so, the leaf side kept.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# deep FRAMES
deep()
{
	spawn "$WORKLOADS/fixed" "$1" 60
	record "$tmp/data" -F 499 -d 1 -p $spawned
	kill -KILL $spawned
	is "$status" 0 "$1 frames: status" || diag "$err"
	folded "$tmp/data"
	cmp_num "$(samples)" -ge 50 "$1 frames: samples"
	cmp_num "$(with_leaf fixed_leaf) * 100" ">=" "$(samples) * 95" "$1 frames: the leaf is kept"
}

# In whole stacks below main and libc's start: FRAMES - 2 of fixed_step. In cut ones: fewer, all of them
# below the mark.
steps()
{
	awk -F ';' -v cut="$1" '{
		is_cut = /\[truncated: /
		if (is_cut != cut) next
		n = 0
		for (i = 2; i <= NF; i++) n += $i == "fixed_step"
		print n
	}' "$stacks" | sort -n | uniq | tr '\n' ' '
}

deep 1000
is "$(truncated)" 0 "1000 frames: nothing is cut"
is "$(steps 0)" "998 " "1000 frames: every one is there"

deep 3000
is "$(samples '!/;\[truncated: /')" 0 "3000 frames: every stack is cut"
is "$(truncated_reasons | wc -l)" 1 "3000 frames: for one reason"
like "$(truncated_reasons)" "*deep*" "3000 frames: which says that the stack is too deep"
cmp_num "$(steps 1 | cut -d" " -f1)" -ge 1400 "3000 frames: what fits is kept"
is "$(awk -F ';' '$2 !~ /^\[truncated: /' "$stacks")" "" "3000 frames: the mark is at the root"
done_testing
