#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The manual pages give no warning in either of the two formatters.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"

for page in "$top_srcdir"/man/*.[1-9]; do
	name=${page##*/}
	if command -v mandoc >/dev/null; then
		run mandoc -T lint -W warning "$page"
		is "$status$out" 0 "mandoc: $name"
	else
		skip mandoc "mandoc is not installed" "mandoc: $name"
	fi
	if command -v groff >/dev/null; then
		run groff -man -ww -z "$page"
		is "$status$err" 0 "groff: $name"
	else
		skip groff "groff is not installed" "groff: $name"
	fi
	# The first line of the page names it as its file does.
	run awk '$1 == ".TH" { print tolower($2) "." $3; exit }' "$page"
	is "$out" "$name" "title of $name"
	run awk 'length($0) > 110' "$page"
	is "$out" "" "no overlong line in $name"
done

done_testing
