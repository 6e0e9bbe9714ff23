#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Counts what "make check" left in build directories: names every check that failed or was skipped, the
# latter with its reason; the last line is "N passed, M failed, K skipped".
#
# usage: count.sh BUILD-DIR...
#
# Status 1 when a check failed, or when there was none at all.
set -u

# The status of a program whose checks failed is no failure of its own, though the driver takes it for one.
for build; do find "$build/tests" -name '*.trs'; done | LC_ALL=C sort | while IFS= read -r trs; do
	awk '
	FNR == 1 { file++ }
	file == 1 && /^:test-result: / { n[$2]++ }
	file == 2 && /^ERROR: .* - exited with status / && n["FAIL"] && n["ERROR"] { n["ERROR"]--; next }
	file == 2 && /^(SKIP|FAIL|XPASS|ERROR): / { print }
	END {
		print "count:", n["PASS"] + n["XFAIL"], n["FAIL"] + n["XPASS"] + n["ERROR"], n["SKIP"] + 0
	}' "$trs" "${trs%.trs}.log"
done | awk '
	/^count: / {
		passed += $2
		failed += $3
		skipped += $4
		next
	}
	{ print }
	END {
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed > 0 || passed + skipped == 0
	}'
