#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each command's options and usage against its manual page: nothing missing, nothing invented.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
need_xprof
need_program mandoc

# The page as plain text, without overstrikes.
plain()
{
	mandoc -T ascii -O width=400 "$1" | sed 's/.\x08//g'
}

# The lines of a section of the text on standard input.
section()
{
	awk -v want="$1" '/^[^ ]/ { on = $0 == want; next } on'
}

# "-f, --freq HZ" and the like are tags of the section OPTIONS: indented by 5 to 8 and beginning with
# a dash. All their words that begin with a dash, sorted.
documented()
{
	plain "$1" | section OPTIONS | sed -n 's/^ \{5,8\}\(-.*\)/\1/p' |
		tr ' ,[]=' '\n\n\n\n\n' | grep '^-' | sort -u
}

# What the program lists, "--no-NAME" only where the page has it.
offered()
{
	awk -F '\t' -v pages="$2" '
	BEGIN { n = split(pages, page, "\n"); for (i = 1; i <= n; i++) has[page[i]] = 1 }
	{
		name = $1
		sub(/=$/, "", name)
		print name
		no = "--no-" substr(name, 3)
		if ($2 == "flag" && has[no])
			print no
	}' "$1" | sort -u
}

# "xprof record [OPTIONS] -- COMMAND" per line, blanks squeezed.
synopsis()
{
	plain "$1" | section SYNOPSIS | tr -s ' ' | sed 's/^ //; s/ $//' | grep .
}

usage()
{
	sed -n 's/^Usage: //p; s/^       \(xprof .*\)/\1/p' "$1"
}

compare_options()
{
	local page=$1 name=$2
	in_page=$(documented "$page")
	is "$in_page" "$(offered "$tmp/out" "$in_page")" "the options of $name are those of its page"
}

run "$XPROF" --list-opts
is "$status" 0 "xprof lists its options"
compare_options "$top_srcdir/man/xprof.1" xprof

run "$XPROF" --list-cmds
is "$status" 0 "xprof lists its commands"
cut -f 1 "$tmp/out" >"$tmp/commands"

plain "$top_srcdir/man/xprof.1" | awk '/^   Commands/ { on = 1; next } /^[^ ]/ { on = 0 } on' |
	sed -n 's/^ \{5,8\}\([a-z][a-z]*\).*/\1/p' >"$tmp/in-page"
is "$(cat "$tmp/in-page")" "$(cat "$tmp/commands")" "the commands of xprof are those of its page"

while read -r name; do
	[ "$name" != help ] || continue		# described in xprof(1)
	page=$top_srcdir/man/xprof-$name.1
	[ -f "$page" ]
	ok $? "xprof-$name has a page" || continue
	run "$XPROF" "$name" --list-opts
	is "$status" 0 "$name lists its options"
	compare_options "$page" "$name"
	run "$XPROF" "$name" --help
	is "$status" 0 "$name has help"
	is "$(synopsis "$page")" "$(usage "$tmp/out")" "the usage of $name is that of its page"
	is "$(plain "$page" | section NAME | sed 's/.* - //')" \
		"$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' <<-EOF
		$("$XPROF" --list-cmds)
		EOF
		)" "the summary of $name is that of its page"
	missing=
	for want in NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' ENVIRONMENT FILES NOTES BUGS EXAMPLES \
		'SEE ALSO'; do
		plain "$page" | grep -qx "$want" || missing="$missing $want"
	done
	is "$missing" "" "the page of $name has every section"
done <"$tmp/commands"

done_testing
