#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Stacks reach their outermost function: at least 99.5 % of them for every way a program can be built,
# every shape of frame and every kind of leaf; and a whole stack has exactly the frames it had.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# attach PROGRAM ARGUMENT...: records the running program for a second
attach()
{
	local program=$WORKLOADS/$1
	shift
	spawn "$program" "$@" >/dev/null
	record "$tmp/data" -F 999 -d 1 -p $spawned
	kill -KILL $spawned
	is "$status" 0 "$label: status" || diag "$err"
	folded "$tmp/data"
}

# whole PROGRAM ARGUMENT...
whole()
{
	label="$*"
	need_variant "$1" || return 0
	attach "$@"
	complete_enough "$label"
}

# own_frames PROGRAM ARGUMENT...: Debian's musl has no unwind information, so the way ends in its
# start-up code or, with a leaf in it, at once; but not within the program.
own_frames()
{
	label="$*"
	need_variant "$1" || return 0
	attach "$@"
	cmp_num "$(samples '/;leaf_burn/')" -ge 100 "$label: samples"
	is "$(samples '/;leaf_burn/ && !/;main;/')" 0 "$label: every stack of the program reaches main" ||
		diag "$(truncated_reasons)"
}

# roots NAME: every whole stack starts with this function
roots()
{
	local other
	other=$(awk -v want="$1" -F ';' '!/\[truncated: / && $2 != want { print $2 }' "$stacks" |
		sort | uniq -c | head -5)
	is "$other" "" "$label_of_roots: every whole stack starts at $1"
}

# exact_depth N: in every whole stack that ends in the leaf function, N frames are of the recursion
exact_depth()
{
	local wrong
	wrong=$(awk -F ';' -v want="$1" '
		/\[truncated: / || !/;leaf_burn [0-9]+$/ { next }
		{
			seen++; n = 0
			for (i = 2; i <= NF; i++)
				n += $i ~ /^step_/
			if (n != want)
				print n " frames of step_*"
		}
		END { if (!seen) print "no stack in leaf_burn" }' "$stacks" | sort | uniq -c | head -5)
	is "$wrong" "" "depth $1: exactly so many frames"
}

# kind PROGRAM KIND: runs a kind of end for two seconds
kind()
{
	label="$*"
	need_variant "$1" || return 1
	record "$tmp/data" -F 999 -- "$WORKLOADS/$1" "$2" 2
	is "$status" 0 "$label: status" || diag "$err"
	folded "$tmp/data"
}

for v in gcc-O0 gcc-O1 gcc-O2 gcc-O3 clang-O0 clang-O1 clang-O2 clang-O3 omit-fp fp static static-pie \
	no-pie no-plt lazy avx2 debug-frame stripped; do
	whole shapes-$v mixed burn 70
	case $v in
	gcc-* | clang-*)
		label_of_roots=$v
		roots _start
		exact_depth 70
		;;
	esac
done
for shape in alloca args big realign signal altstack thread; do
	whole shapes-gcc-O2 $shape burn 40
done
for leaf in qsort vdso string syscall printf; do
	whole shapes-gcc-O2 mixed $leaf 40
done
whole shapes-static mixed printf 40
for v in musl musl-static; do
	own_frames shapes-$v mixed burn 40
done
whole shapes-gcc-O2 plain burn 500
exact_depth 500
whole asmmain 60
whole cxx-gcc 60
whole cxx-clang 60
whole rust 60
whole kernel 60
whole threads many 64 60
whole manymaps 2000 60

# What proves nothing about its caller is cut, never shown as the root or below a wrong caller.
if kind ends bare; then
	cmp_num "$(samples '/;bare_burn[; ]/')" -ge 100 "$label: samples"
	is "$(samples '/;bare_burn[; ]/ && !/;\[truncated: /')" 0 "$label: every stack is marked"
fi
if kind ends jit; then
	cmp_num "$(samples '/;\[jit\][; ]/')" -ge 100 "$label: samples"
	is "$(samples '/;\[jit\][; ]/ && !/;\[truncated: [^]]*\];\[jit\][; ]/')" 0 \
		"$label: every stack is marked"
fi
if kind ends coroutine; then
	complete_enough "$label"
	is "$(samples '/;in_coroutine[; ]/ && !/;\[truncated: / && !/^[^;]*;[^;]*;in_coroutine/')" 0 \
		"$label: one frame is below the function"
	like "$(grep -F ';in_coroutine ' "$stacks" | head -1)" "*;?libc.so*0?;*" \
		"$label: it is where the function would return to"
fi
if kind ends threads; then
	complete_enough "$label"
fi
# A few interrupt musl's own functions, which cannot be left.
for v in ends ends-musl; do
	kind $v signal || continue
	cmp_num "$(samples '/;on_signal[; ]/')" -ge 100 "$label: samples"
	cmp_num "$(samples '/;main;signals;interrupted;.*;on_signal[; ]/') * 100" ">=" \
		"$(samples '/;on_signal[; ]/') * 90" \
		"$label: handlers are above what they interrupt" ||
		diag "$(grep on_signal "$stacks" | head -3)"
done
done_testing
