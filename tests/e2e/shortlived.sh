#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A command that lives 50 ms gets its names, from its first samples on: alone, static, and as one of many
# that a shell starts.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# named LABEL MINIMUM: hot : warm is 2 : 1 in fixed work; the rest is start-up
named()
{
	is "$status" 0 "$1: status" || diag "$err"
	folded "$tmp/data"
	hot=$(with_frame short_hot) warm=$(with_frame short_warm) all=$(samples)
	diag "$1: $hot hot, $warm warm of $all; $(truncated) cut"
	cmp_num "$hot + $warm" ">=" "$2" "$1: enough samples have the functions' names"
	cmp_num "$hot" ">=" "($hot + $warm) * 2 / 3 - 4 * sqrt(($hot + $warm) * 2 / 9)" "$1: the hot one has two thirds"
	is "$(unknown)" 0 "$1: no unknown function"
	cmp_num "$(truncated) * 100" "<=" "$all * $3" "$1: at most $3 % of stacks cut" ||
		diag "$(truncated_reasons)"
}

for i in 1 2 3; do
	record "$tmp/data" -F 999 -- "$WORKLOADS/short" 50
	named "run $i" 25 12
done
record "$tmp/data" -F 999 -- "$WORKLOADS/short-static" 50
named "static" 25 12
record "$tmp/data" -F 999 -- sh -c 'for i in 1 2 3 4 5 6 7 8; do "$WORKLOADS/short" 50; done'
# Not xprof's own children: their first milliseconds pass before it knows them.
named "eight from a shell" 200 25

# Ended, and its file removed, before the report.
cp "$WORKLOADS/short" "$tmp/gone"
record "$tmp/data" -F 999 -- "$tmp/gone" 50
rm "$tmp/gone"
named "program removed before the report" 25 12
done_testing
