#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What README says: its two commands, the tree, the layers, and the command lines of xprof.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
need_xprof
case $XPROF in /*) ;; *) XPROF=$PWD/$XPROF ;; esac
cd "$top_srcdir" || exit 99

cmp_num "$(wc -l <README)" "<" 250 "README is short"

# The first screen and bootstrap's own help name the same two commands.
shown()
{
	sed -n 's/^ *\(\.\/bootstrap [a-z]*\) .*/\1/p'
}
commands="./bootstrap demo
./bootstrap check"
is "$(head -n 40 README | shown)" "$commands" "the first screen shows two commands"
run ./bootstrap --help
is "$status" 0 "bootstrap has help"
is "$(printf '%s\n' "$out" | shown | grep ' [a-z]')" "$commands" "bootstrap knows them"
run ./bootstrap no-such-command
is "$status" 2 "and no other"

# A section of README: from the line that begins with $1 to the next one that is not indented.
block()
{
	awk -v from="$1" 'index($0, from) == 1 { on = 1; next } on && /^[^ ]/ && seen { exit }
		on && /^ / { seen = 1; print }' README
}

# Folders of the tree that hold files, as far as they are ours: what a build makes is left aside.
folders()
{
	find bpf src/* src/*/* man completions tests/* .ci -maxdepth 0 -type d | while read -r folder; do
		[ -z "$(find "$folder" -type f ! -name '*.o' ! -name '*.trs' ! -name '*.log' | head -n 1)" ] ||
			echo "$folder/"
	done | LC_ALL=C sort
}
block "The tree:" | awk '$1 ~ /\/$/ && $1 != "src/" { print $1 }' | LC_ALL=C sort >"$tmp/tree"
is "$(cat "$tmp/tree")" "$(folders)" "the tree is the one that is there"

# Both tables as "folder: included folders", sorted; made headers and folders to come are left out.
normal()
{
	while read -r folder list; do
		[ "$folder" = main.c ] || [ -d "src/$folder" ] || [ "$folder" = bpf ] || continue
		printf '%s:' "$folder"
		for word in $list; do
			case $word in
			"$folder" | config.h | *.skel.h) continue ;;
			bpf | bpf/*.h) ;;
			*) [ -d "src/$word" ] || continue ;;
			esac
			echo "$word"
		done | LC_ALL=C sort | tr '\n' ' '
		echo
	done | LC_ALL=C sort
}
block "Layers:" | awk '$1 ~ /^[0-9]$/ {
	line = substr($0, 1, 72)		# the last column are outside libraries
	sub(/^ *[0-9] */, "", line)
	print line
}' | normal >"$tmp/said"
sed -n 's/^[ \t]*may\["\([^"]*\)"\] = "\([^"]*\)".*/\1 \2/p' tests/docs/layers.awk | normal >"$tmp/enforced"
is "$(cat "$tmp/said")" "$(cat "$tmp/enforced")" "the layers are those that are enforced"
cmp_num "$(wc -l <"$tmp/said")" -eq 10 "all ten layers are compared"

# Every "xprof COMMAND OPTION..." among the indented lines: its command and options exist.
parses()
{
	local command=$1 word name
	"$XPROF" --list-cmds | cut -f 1 | grep -qx -e "$command" || return 1
	"$XPROF" "$command" --list-opts | cut -f 1 | sed 's/=$//' >"$tmp/options"
	shift
	for word; do
		case $word in
		-- | '|' | '>') return 0 ;;
		-*) grep -qx -e "${word%%=*}" "$tmp/options" || return 1 ;;
		esac
	done
}
sed -n 's/^    xprof \(.*\)/\1/p' README | sed 's/   .*//' >"$tmp/lines"
while read -r line; do
	parses $line
	ok $? "xprof $line"
done <"$tmp/lines"
cmp_num "$(wc -l <"$tmp/lines")" -ge 5 "command lines were found"
for line in "record --no-such-option" "no-such-command" "report -Z"; do
	parses $line
	is $? 1 "no command line: xprof $line"
done

# Files that the text names.
for file in $(tr -s ' (),:;' '\n' <README | sed 's/\.$//' |
	grep -E '^(bpf|src|tests|man|\.ci)/[^*]*[^/]$|^(collect|runtime)/.*\.c$'); do
	[ -e "$file" ] || [ -e "src/$file" ] || [ -e "$file.c" ]
	ok $? "there is $file"
done
grep -q 'Version 2, June 1991' LICENSE
ok $? "LICENSE is the text of version 2"

done_testing
