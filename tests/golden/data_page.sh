#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A reader written from xprof-data(5) sees what xprof sees, and the page's example is a whole file.

. "$(dirname "$0")/../lib/tap.sh"
need_xprof
need_program python3
need_program zstd

for file in mixed twice empty; do
	"$XPROF" report -q --folded --internals "$here/data/$file.data" >"$tmp/want"
	python3 "$here/read_data.py" "$here/data/$file.data" >"$tmp/got" 2>"$tmp/err" &&
		diff -u "$tmp/want" "$tmp/got" >"$tmp/diff"
	ok $? "$file.data by the page alone" || diag "$(cat "$tmp/err" "$tmp/diff")"
done

hex=$(sed -n '/^\.EX/,/^\.EE/p' "$here/../../man/xprof-data.5" | sed '1d;$d' | tr -d ' \n')
python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "$hex" >"$tmp/example.data"
run "$XPROF" report --folded -q "$tmp/example.data"
is "$status:$out:$err" "0::" "the page's example is a whole file"
python3 "$here/read_data.py" "$tmp/example.data" >"$tmp/out"
ok $? "for the other reader too"

done_testing
