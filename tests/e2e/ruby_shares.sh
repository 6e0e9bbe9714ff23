#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Profiles of Ruby programs are right: methods get the share of samples that they had of the CPU, by the
# program's own clock, and programs whose calls are known show these calls and no others.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
: "${RUBY:=ruby3.1}"
need_program "$RUBY"
cases=$here/../workloads/ruby/cases.rb
yjit=--yjit
"$RUBY" --yjit -e 1 2>/dev/null || yjit=

# profile CASE SECONDS [OPTION...]
profile()
{
	local name=$1 seconds=$2
	shift 2
	label="$name${1:+ $*}"
	record "$tmp/data" -F 997 -- "$RUBY" --disable-gems "$@" "$cases" "$name" "$seconds"
	is "$status" 0 "$label: status" || diag "$err"
	cp "$tmp/out" "$tmp/truth"
	folded "$tmp/data"
	cmp_num "$(samples "/[; ]Object#$name[; ]/")" -ge 100 "$label: samples"
	is "$(samples '/\[unknown|\[unmerged: /')" 0 "$label: nothing unknown or unmerged" ||
		diag "$(grep -E '\[unknown|\[unmerged: ' "$stacks" | head -2)"
}

# shares CASE SECONDS BY [OPTION]
shares()
{
	local by=$3
	profile "$1" "$2" $4
	# Starting up is no method's.
	grep ";Object#$1;\|;block .*in Object#$1[; ]" "$stacks" >"$tmp/inside"
	awk -v name="$label" -v by="$by" -f "$here/../lib/shares.awk" "$tmp/truth" "$tmp/inside" >"$tmp/shares"
	ok $? "$label: shares are the truth within 4 sigma"
	diag "$(cat "$tmp/shares")"
}

# below PARENT CHILD: samples in which one is called by the other
below()
{
	PAIR=";$1;$2" awk '{
		count = $NF; sub(/ [0-9]+$/, "")
		if (index($0 ";", ENVIRON["PAIR"] ";")) n += count
	} END { print n + 0 }' "$stacks"
}

# percent A B: A in percent of B
percent()
{
	awk "BEGIN { print 100 * $1 / ($2 ? $2 : 1) }" </dev/null
}

for option in "" $yjit; do
	shares shares 1.5 frame $option
	shares thread_shares 1.5 comm $option
	shares fair 1 frame $option
done

profile torn 0.8
is "$(samples '/;Object#bob;/ && /Object#bob;(Array|Integer)#/')" 0 "torn: bob calls nothing"
is "$(samples '/;(Array#map|Integer#succ)[; ]/ && !/;Object#torn;Object#foo;Object#bar;Object#baz;Array#map/')" 0 \
	"torn: only baz maps" || diag "$(grep -E 'Array#map' "$stacks" | grep -v 'Object#baz;Array#map' | head -3)"
is "$(samples '/;Object#(bar|bob|baz)[; ]/ && !/;Object#torn;Object#foo;Object#bar/')" 0 "torn: every stack is whole"
cmp_num "$(below Object#baz Array#map)" -ge 50 "torn: samples in map"

for option in "" $yjit; do
	profile labels 1 $option ${option:+--yjit-call-threshold=1}
	inner="<main>;Object#labels;Object#outer;Integer#times;block in Object#outer;Object#inner;Integer#times"
	inner="$inner;block in Object#inner"
	is "$(tr ';' '\n' <"$stacks" | sed 's/ [0-9]*$//' | grep 'pick' | sort -u)" "Object#pick" \
		"$label: one spelling of a method"
	cmp_num "$(percent "$(below "${inner%;*}" "${inner##*;}")" "$(samples '/;Object#labels[; ]/')")" ">=" 90 \
		"$label: the whole chain"
	is "$(samples '/;Object#pick[; ]/ && !/;block in Object#inner;Object#pick/')" 0 "$label: pick has one caller"
	cmp_num "$(below Object#pick Array#sort)" -ge 30 "$label: it calls a method of C"
	percent "$(below "block in Object#inner" "Object#pick")" "$(samples '/;Object#labels[; ]/')" >"$tmp/pick$option"
done
diag "share of pick: $(cat "$tmp/pick") % interpreted, $(cat "$tmp/pick$yjit") % compiled"

profile cfuncs 0.8
for method in Enumerable#sort_by "String#\*" Dir.entries; do
	cmp_num "$(samples "/;$(echo "$method" | sed 's/\./\\./')[; ]/")" -ge 5 "C function $method"
done

profile classes 0.8
chain="Object#classes;#<Object>.sing;ANONYMOUS#call;Wrap#call;A#call;B#call"
cmp_num "$(percent "$(below "$chain" Object#count)" "$(samples '/;Object#classes[; ]/')")" ">=" 97 \
	"classes: each call by its own class or module"

profile recursion 0.8
awk '{ count = $NF; sub(/ [0-9]+$/, ""); if (!/;Object#count(;|$)/) next
	n = gsub(/;Object#recurse;/, ";x;"); $0 = $0; each = gsub(/;Array#each/, ""); blocks = gsub(/;block in /, "")
	if (n != 7 || each != 6 || blocks != 6) print n, each, blocks }' "$stacks" >"$tmp/wrong"
is "$(cat "$tmp/wrong")" "" "recursion: seven calls, six blocks, none twice"
"$XPROF" report -i "$tmp/data" --folded --internals >"$tmp/internals" 2>"$tmp/report.err"
is "$(grep 'Object#count' "$tmp/internals" | grep -vcE '(Array#each;[^O]*rb_ary_each;[^O]*block in Object#recurse;.*){6}')" 0 \
	"recursion: with internals rb_ary_each between them"

profile collector 2
read -r _ gc _ cpu <"$tmp/truth"
want=$(percent "$gc" "$cpu")
got=$(percent "$(samples '/;Object#collector;/ && /;\(garbage collection/')" "$(samples '/;Object#collector[; ]/')")
diag "garbage collection: $got % of samples, Ruby's own measure $want %"
cmp_num "$got" ">=" "0.85 * $want" "collector: not less than Ruby measures"
cmp_num "$got" "<=" "1.15 * $want" "collector: not more"
is "$(samples '/;Object#pure;.*\(garbage/')" 0 "collector: none where nothing is allocated"

profile odd_names 1.2
ok "$(iconv -f UTF-8 -t UTF-8 <"$stacks" >"$tmp/utf8" 2>/dev/null && cmp -s "$stacks" "$tmp/utf8"; echo $?)" "odd names: UTF-8"
is "$(grep -vcE ' [0-9]+$' "$stacks")" 0 "odd names: one line each"
for name in "$(printf '\342\235\250\342\225\257\342\226\241\342\235\251')" 'assigned=' '+' '\[]=' 'asked?' 'looo'; do
	cmp_num "$(grep "block.* in Object#odd_names;.*code#$name.*;Object#count" "$stacks" | awk '{ n += $NF } END { print n + 0 }')" \
		-ge 5 "odd names: $name"
done
done_testing
