#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs a cmocka program. cmocka 1.1.5 writes a skipped test as "not ok N # SKIP", which TAP readers
# take for a failure; the word is mended here, the program's status is kept.

out=$("$@" 2>&1)
status=$?
printf '%s\n' "$out" | sed 's/^not ok \(.*# SKIP\)/ok \1/'
exit $status
