#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The test library itself: checks that can fail do fail, skips become failures when they must, and the
# comparison of shares accepts chance and nothing else.

. "$(dirname "$0")/../lib/xprof.sh"

# inner BODY: runs a test of its own; its output in $out, its status in $status
inner()
{
	printf '. "%s/tap.sh"\n%s\n' "$here" "$1" >"$tmp/inner.sh"
	run env -u XPROF_MUST_RUN ${must:+XPROF_MUST_RUN="$must"} sh "$tmp/inner.sh"
}

inner 'ok 0 good; is a a same; like abc "*b*" pattern; cmp_num 1.5 "<" 2 less; cmp_num 2 -ge 2 least; done_testing'
is "$status" 0 "all pass: status 0"
is "$out" "ok 1 - good
ok 2 - same
ok 3 - pattern
ok 4 - less
ok 5 - least
1..5" "all pass: the plan is last"

for check in 'ok 1 bad' 'is a b bad' 'like abc "*d*" bad' 'cmp_num 2 "<" 1.5 bad' 'cmp_num x -ge 2 bad' \
	'cmp_num "" "<" 2 bad'; do
	inner "$check; done_testing"
	is "$status" 1 "fails: $check"
	like "$out" "not ok 1 - bad*" "says so: $check"
	inner "$check || echo more; done_testing"
	like "$out" "*
more
*" "returns it: $check"
done

inner 'skip bpf "no rights" one; done_testing'
is "$status:$out" "0:ok 1 - one # SKIP no rights
1..1" "a skip passes and says why"
must=ruby,bpf
inner 'skip bpf "no rights" one; done_testing'
like "$status:$out" "1:not ok 1 - one*" "a skip that must run fails"
inner 'skip_all bpf "no rights"'
like "$status:$out" "1:1..1
not ok 1*" "so does the skip of a whole test"
must=
inner 'skip_all bpf "no rights"'
is "$status:$out" "0:1..0 # SKIP no rights" "the skip of a whole test"

inner 'spawn sleep 60; echo "$spawned $tmp" >&2; exit 3'
is "$status" 3 "an early end keeps its status"
set -- $err
kill -0 "$1" 2>/dev/null
is $? 1 "children end with the test"
is "$(ls "$2" 2>&1 | grep -c 'No such')" 1 "its directory is removed"

cat >"$tmp/truth" <<'TRUTH'
truth alpha 0.6
truth ns::Beta<int, 2>::run 0.4
TRUTH
# shares ALPHA BETA OTHER: status of the comparison
shares()
{
	printf 'p;_start;main;alpha %d\np;_start;main;alpha;libc 10\np;_start;ns::Beta<int, 2>::run(int) %d\np;x %d\n' \
		$(($1 - 10)) $2 $3 >"$tmp/folded"
	awk -v name=t -f "$here/shares.awk" "$tmp/truth" "$tmp/folded" >"$tmp/shares"
	echo $?
}
is "$(shares 600 400 10)" 0 "shares: exact"
is "$(shares 655 345 10)" 0 "shares: 3.6 sigma off is chance"
is "$(shares 670 330 10)" 1 "shares: 4.5 sigma off is not"
is "$(shares 530 470 10)" 1 "shares: nor to the other side"
is "$(shares 60 40 0)" 1 "shares: too few samples"
is "$(shares 600 400 200)" 1 "shares: too many outside"

cat >"$tmp/x.folded" <<'FOLDED'
a b;[truncated: too deep];f g;h 3
a b;main;f g;h;k 4
c;main;f g 5
FOLDED
stacks=$tmp/x.folded
is "$(samples):$(truncated):$(with_frame 'f g'):$(with_leaf h):$(with_leaf 'f g'):$(with_frame 'a b')" \
	"12:3:12:3:5:0" "counts of folded lines"
is "$(truncated_reasons)" "3 [truncated: too deep]" "reasons of cut stacks"
done_testing
