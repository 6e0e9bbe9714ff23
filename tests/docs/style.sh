#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Limits of style that a machine can check: see style.awk.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
rules=$(cd "$here" && pwd)/style.awk
cd "$top_srcdir" || exit 99

is "$(find src bpf -name '*.[ch]' | LC_ALL=C sort | xargs awk -f "$rules")" "" "sources keep the limits"

# body N: a function of N lines
body()
{
	echo "static void f(void)"
	echo "{"
	awk -v n="$1" 'BEGIN { while (n-- > 0) print "\tg();" }'
	echo "}"
}

licence="/* SPDX-License-Identifier: GPL-2.0-or-later */"
mkdir -p "$tmp/src" "$tmp/bpf"
{ echo "$licence"; body 80; body 81; } >"$tmp/src/function.c"
{ echo "$licence"; body 120; body 121; } >"$tmp/bpf/walker.c"
{ echo "$licence"; awk 'BEGIN { for (i = 0; i < 600; i++) print "" }'; } >"$tmp/src/file.c"
{ echo "$licence"; printf '\tgoto out;\n\tgoto again;\n'; } >"$tmp/src/gotos.c"
echo "int x;" >"$tmp/src/nothing.c"
cd "$tmp" || exit 99
is "$(awk -f "$rules" src/file.c src/function.c src/gotos.c src/nothing.c bpf/walker.c)" "src/file.c: 601 lines
src/function.c:86: a function of 81 lines
src/gotos.c:3:	goto again;
src/nothing.c: no licence in line 1
bpf/walker.c:126: a function of 121 lines" "the checker finds what is too long"

done_testing
