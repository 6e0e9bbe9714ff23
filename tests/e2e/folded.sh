#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The folded report is what flamegraph.pl, inferno and speedscope read, whatever names threads have; it
# is the same each time; its total is the number of samples.
#
# FLAMEGRAPH names flamegraph.pl when it is not in PATH.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads
need_program python3

run "$XPROF" record -F 999 -o "$tmp/data" -- "$WORKLOADS/names" 2
is "$status" 0 "status" || diag "$err"
cp "$tmp/err" "$tmp/summary"
folded "$tmp/data"
is "$report_status" 0 "report's status" || diag "$(cat "$tmp/report.err")"
diag "$(cut -d ';' -f 1 "$stacks" | sort | uniq -c)"

cat >"$tmp/grammar.py" <<'PY'
import re, sys
bad = 0
def complain(number, why, line):
    global bad
    bad += 1
    if bad <= 10:
        print("line %d: %s: %r" % (number, why, line[:200]))
lines = open(sys.argv[1], "rb").read().split(b"\n")
if lines.pop() != b"":
    complain(len(lines), "no newline at the end", b"")
for number, line in enumerate(lines, 1):
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        complain(number, "not UTF-8", line)
        continue
    if not re.fullmatch(r"[^ ].* [1-9][0-9]*", text):
        complain(number, "no count", line)
        continue
    stack = text.rsplit(" ", 1)[0]
    if re.search(r"[\x00-\x1f\x7f-\x9f]", stack):
        complain(number, "control character", line)
    for frame in stack.split(";"):
        if frame == "" or frame != frame.strip() or "  " in frame:
            complain(number, "empty frame or blanks around or in a row", line)
        if re.search(r"\s[0-9.]+$", frame):
            complain(number, "frame ends in blank and number", line)
    if " " in stack.split(";")[0]:
        complain(number, "blank in the thread's name", line)
stacks = [line.rsplit(b" ", 1)[0] for line in lines]
if len(set(stacks)) != len(stacks):
    complain(0, "a stack twice", b"")
if lines != sorted(lines):
    complain(0, "not sorted bytewise", b"")
sys.exit(bad > 0)
PY
python3 "$tmp/grammar.py" "$stacks" >"$tmp/grammar"
ok $? "every line is a stack and a count" || diag "$(cat "$tmp/grammar")"

cp "$stacks" "$tmp/first"
folded "$tmp/data"
cmp -s "$tmp/first" "$stacks"
ok $? "the same file gives the same bytes"
"$XPROF" report -i - --folded <"$tmp/data" >"$tmp/stdin" 2>/dev/null
cmp -s "$tmp/first" "$tmp/stdin"
ok $? "also from stdin"
LC_ALL=C.UTF-8 "$XPROF" report -i "$tmp/data" --folded >"$tmp/locale" 2>/dev/null
cmp -s "$tmp/first" "$tmp/locale"
ok $? "also in another locale"

total=$(samples)
grep -qw "$total" "$tmp/summary"
ok $? "the total is the number of samples in record's summary" || diag "total $total
$(cat "$tmp/summary")"

for name in "a:b" x_7 "[ET_0]"; do
	cmp_num "$(awk -F ';' -v c="$name" '$1 == c' "$stacks" | wc -l)" -ge 1 "thread $name is there"
done

flamegraph=${FLAMEGRAPH:-$(command -v flamegraph.pl || command -v flamegraph || true)}
if [ -n "$flamegraph" ]; then
	perl "$flamegraph" <"$stacks" >"$tmp/x.svg" 2>"$tmp/err"
	is $? 0 "flamegraph.pl: status"
	is "$(cat "$tmp/err")" "" "flamegraph.pl: no complaint"
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/x.svg" 2>"$tmp/err"
	ok $? "flamegraph.pl: well-formed SVG" || diag "$(tail -1 "$tmp/err")"
	grep -q "all ($(printf %d "$total" | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') samples" "$tmp/x.svg"
	ok $? "flamegraph.pl: its total is ours"
else
	skip flamegraph "flamegraph.pl is not installed" "flamegraph.pl"
fi
done_testing
