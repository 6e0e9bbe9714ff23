#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Reports of checked-in sample files against checked-in texts: report/NAME.txt holds what was printed on
# stdout, then stderr and the exit status. UPDATE=1 rewrites them; look at the difference before committing.

. "$(dirname "$0")/../lib/tap.sh"
need_xprof
case $XPROF in /*) ;; *) XPROF=$PWD/$XPROF ;; esac
unset NO_COLOR COLUMNS XPROF_PAGER PAGER
cd "$here/data" || exit 99

show()
{
	run "$@"
	cat "$tmp/out"
	sed 's/^/stderr: /' "$tmp/err"
	echo "status: $status"
}

# golden NAME COMMAND...
golden()
{
	local want="$here/report/$1.txt"
	name=$1
	shift
	show "$@" >"$tmp/got"
	if [ -n "${UPDATE:-}" ]; then
		cp "$tmp/got" "$want"
	fi
	diff -u "$want" "$tmp/got" >"$tmp/diff" 2>&1
	ok $? "$name" || diag "$(cat "$tmp/diff")"
}

report()
{
	local golden_name=$1
	shift
	golden "$golden_name" "$XPROF" report "$@"
}

report table mixed.data
report table-self -i mixed.data --no-children --stdio
report table-limit --percent-limit 20 mixed.data
report table-internals --internals mixed.data
report table-verbose -v mixed.data
report table-comm --comm 'worker 1' mixed.data
report table-tid --tid 100 mixed.data
report table-color --color always mixed.data
report table-no-header --no-header mixed.data
report header-only --header-only mixed.data
report folded --folded mixed.data
report folded-kinds --folded --annotate-kinds mixed.data
report folded-internals -f folded --internals mixed.data
report names names.data
report names-folded -g folded names.data
report empty empty.data
report empty-folded --folded empty.data
report empty-quiet -q --folded empty.data
report lost lost.data
report no-match --pid 1 mixed.data
report bad-limit --percent-limit 101 mixed.data
report bad-format -f svg mixed.data
report two-files mixed.data names.data
report option-after mixed.data --folded
report missing no-such.data
report directory .
report text ../report.sh

head -c -5 twice.data >"$tmp/no-end.data"
head -c -100 twice.data >"$tmp/cut.data"
head -c 300 mixed.data >"$tmp/no-samples.data"
head -c 5 mixed.data >"$tmp/begin.data"
: >"$tmp/nothing.data"
cd "$tmp" || exit 99
report cut cut.data
report no-end no-end.data
report no-samples no-samples.data
report cut-folded --folded cut.data
report cut-begin begin.data
report nothing nothing.data
cd "$here/data" || exit 99

# All spellings give the same.
"$XPROF" report --folded mixed.data >"$tmp/a"
for spelling in "-f folded mixed.data" "--format=folded -i mixed.data" "-g folded mixed.data" \
	"-g folded,0.5,caller mixed.data" "--call-graph folded mixed.data" "--folded - <mixed.data"; do
	eval "\"$XPROF\" report $spelling" >"$tmp/b"
	cmp -s "$tmp/a" "$tmp/b"
	ok $? "report $spelling"
done
"$XPROF" report -g mixed.data >"$tmp/b"
"$XPROF" report mixed.data >"$tmp/a"
cmp -s "$tmp/a" "$tmp/b"
ok $? "a bare -g takes no file for its value"

# The grammar of folded lines: frames, blank, count; sorted; no control bytes; no second number.
for file in mixed names; do
	"$XPROF" report --folded $file.data >"$tmp/folded"
	LC_ALL=C grep -vnE '^[^;[:cntrl:]]+(;[^;[:cntrl:]]+)* [1-9][0-9]*$' "$tmp/folded" >"$tmp/bad"
	is "$(cat "$tmp/bad")" "" "$file: every line is frames and a count"
	LC_ALL=C grep -nE ' [0-9.]+(;| [0-9]+$)|^ |  |; | ;' "$tmp/folded" >"$tmp/bad"
	is "$(cat "$tmp/bad")" "" "$file: no frame ends in a number, blanks are single and inside"
	iconv -f UTF-8 -t UTF-8 "$tmp/folded" >/dev/null 2>&1
	ok $? "$file: valid UTF-8"
	LC_ALL=C sort -c -u "$tmp/folded"
	ok $? "$file: sorted, and every line once"
	is "$(awk '{ n += $NF } END { print n }' "$tmp/folded")" \
		"$("$XPROF" report --header-only $file.data | sed -n 's/^# Samples: \([0-9]*\).*/\1/p')" \
		"$file: the counts add up to the samples"
done

flamegraph=${FLAMEGRAPH:-$(command -v flamegraph.pl)}
if [ -n "$flamegraph" ] && [ -r "$flamegraph" ]; then
	perl "$flamegraph" <"$tmp/folded" >"$tmp/x.svg" 2>"$tmp/err"
	ok $? "flamegraph.pl takes hostile names"
	is "$(cat "$tmp/err")" "" "flamegraph.pl says nothing about them"
	total=$(awk '{ n += $NF } END { print n }' "$tmp/folded")
	like "$(cat "$tmp/x.svg")" "*<title>all ($total samples, 100%)</title>*" "its total is ours"
	if command -v xmllint >/dev/null; then
		xmllint --noout "$tmp/x.svg" 2>"$tmp/err"
		ok $? "the flame graph is XML"
	else
		skip xmllint "xmllint is not installed" "the flame graph is XML"
	fi
else
	skip flamegraph "flamegraph.pl is not installed; FLAMEGRAPH=PATH names one" "flamegraph.pl takes hostile names"
fi

# Ends of pipes and disks.
"$XPROF" report --folded mixed.data 2>"$tmp/err" | head -1 >/dev/null
is "$(cat "$tmp/err")" "" "a reader that goes away is no message"
run sh -c '"$XPROF" report mixed.data >/dev/full'
is "$status" 1 "a full disk is a failure"
like "$err" "*No space left*" "and is said"

done_testing
