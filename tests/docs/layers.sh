#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who includes whom, who prints, who exits; and the map of the tree in main.c names every file.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
rules=$(cd "$here" && pwd)/layers.awk
cd "$top_srcdir" || exit 99

breaches()
{
	find src bpf -name '*.[ch]' | LC_ALL=C sort | xargs awk -f "$rules"
}

# Lines of the folders below cmd that match, comments left aside.
below_cmd()
{
	find src/*/ -name '*.[ch]' ! -path 'src/cmd/*' | LC_ALL=C sort |
		xargs awk -v pattern="$1" '
		/^[ \t]*(\/?\*|\/\/)/ { next }
		{ line = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", line); sub(/\/\*.*/, "", line) }
		line ~ pattern { print FILENAME ":" FNR ":" $0 }'
}

is "$(breaches)" "" "every include points down"
is "$(below_cmd '(^|[^a-z_])(printf|puts|putchar|perror) *\(|(^|[^a-z_])(stdout|stderr)([^a-z_]|$)')" "" \
	"only commands print"
is "$(below_cmd '(^|[^a-z_])(exit|abort|_exit|quick_exit) *\(')" "" "only main exits"

# Every .c, and every .h that has no .c of its name.
{
	find src/*/ bpf -name '*.c'
	for header in $(find src/*/ bpf -name '*.h'); do
		[ -f "${header%.h}.c" ] || echo "$header"
	done
} | sed 's/^src\///' | LC_ALL=C sort >"$tmp/files"
sed -n '/^#include/q; s/^ \*\t\([a-z]*\/[a-z0-9_./]*\).*/\1/p' src/main.c | LC_ALL=C sort >"$tmp/map"
is "$(comm -23 "$tmp/files" "$tmp/map")" "" "the map in main.c names every file"
is "$(comm -13 "$tmp/files" "$tmp/map")" "" "the map in main.c names no other file"

# The checker itself, on a tree with one breach of each kind.
mkdir -p "$tmp/src/base" "$tmp/src/target" "$tmp/src/output" "$tmp/src/collect" "$tmp/src/new" "$tmp/bpf"
cat >"$tmp/src/base/a.c" <<'EOF'
#include "base/a.h"
#include <string.h>
#include "profile/profile.h"
#include <zlib.h>
#include "neighbour.h"
EOF
cat >"$tmp/src/target/a.c" <<'EOF'
#include "bpf/unwind.h"
#include "bpf/abi.h"
#include <libelf.h>
# include <bpf/libbpf.h>
EOF
cat >"$tmp/src/output/a.c" <<'EOF'
#include "store/reader.h"
#include <ncurses.h>
EOF
cat >"$tmp/src/collect/a.c" <<'EOF'
#include "cmd/cmd.h"
#include "runtime/merge.h"
#include "xprof.skel.h"
#include <bpf/libbpf.h>
EOF
echo '#include "base/a.h"' >"$tmp/src/new/a.c"
echo '#include "src/base/a.h"' >"$tmp/bpf/a.h"
cd "$tmp" || exit 99
is "$(breaches)" "bpf/a.h:1: bpf may not include src/base/a.h
src/base/a.c:3: base may not include profile/profile.h
src/base/a.c:4: base may not include zlib.h
src/base/a.c:5: base may not include neighbour.h
src/collect/a.c:1: collect may not include cmd/cmd.h
src/new/a.c: folder new is in no layer
src/new/a.c:1: new may not include base/a.h
src/output/a.c:1: output may not include store/reader.h
src/output/a.c:2: output may not include ncurses.h
src/target/a.c:2: target may not include bpf/abi.h
src/target/a.c:4: target may not include bpf/libbpf.h" "the checker finds what breaks the layers"

done_testing
