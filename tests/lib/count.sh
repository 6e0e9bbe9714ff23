#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Counts what "make check" left in build directories: names every check that failed or was skipped, the
# latter with its reason; the last line is "N passed, M failed, K skipped".
#
# usage: count.sh BUILD-DIR...
#
# Status 1 when a check failed, or when there was none at all.
set -eu

results=$(find "$@" -path '*/tests/*' -name '*.trs' -exec cat {} + | sed -n 's/^:test-result: *\([A-Z]*\).*/\1/p')
find "$@" -path '*/tests/*' -name '*.log' -exec \
	grep -hE '^(SKIP|FAIL|XPASS|ERROR): ' {} + | LC_ALL=C sort -u || true
printf '%s\n' "$results" | awk '
	/^(PASS|XFAIL)$/ { passed++ }
	/^(FAIL|XPASS|ERROR)$/ { failed++ }
	/^SKIP$/ { skipped++ }
	END {
		printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
		exit failed > 0 || passed + skipped == 0
	}'
