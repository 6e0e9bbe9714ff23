#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the test programs of tests/workloads in every variant that matters to an unwinder.
#
# usage: build-workloads.sh OUTPUT-DIR
#
# Only what is older than its sources is built again; calls at the same time take turns. A compiler that
# is not there leaves out its variants: the tests say what they miss. CC, CXX, CLANG, RUSTC and MUSL_CC
# override the compilers.
set -eu

out=${1:?usage: build-workloads.sh OUTPUT-DIR}
src=$(cd "$(dirname "$0")/../workloads" && pwd)
: "${CC:=gcc}" "${CXX:=g++}" "${CLANG:=clang}" "${RUSTC:=rustc}" "${MUSL_CC:=musl-gcc}"
warn="-Wall -Wextra -g0"
mkdir -p "$out"

if [ "${XPROF_BUILD_LOCKED:-}" != "$out" ] && command -v flock >/dev/null; then
	XPROF_BUILD_LOCKED=$out exec flock "$out/.lock" sh "$0" "$out"
fi

# build OUTPUT SOURCE COMPILER [FLAG...]: OUTPUT from SOURCE unless it is new enough
build()
{
	output=$out/$1 source=$src/$2 compiler=$3
	shift 3
	command -v "$compiler" >/dev/null || return 0
	if [ -x "$output" ] && [ -z "$(find "$source" "$src/truth.h" "$0" -newer "$output")" ]; then
		return 0
	fi
	libs="-lpthread -lm"
	[ "$compiler" != "$RUSTC" ] || libs=
	# To a new name first: the old file may be running.
	"$compiler" "$@" -o "$output.new" "$source" $libs || {
		rm -f "$output.new"
		return 1
	}
	mv "$output.new" "$output"
}

# c OUTPUT SOURCE [FLAG...]
c()
{
	c_out=$1 c_src=$2
	shift 2
	build "$c_out" "$c_src" "$CC" $warn -D_GNU_SOURCE "$@"
}

for o in O0 O1 O2 O3; do
	c shapes-gcc-$o shapes.c -$o
	build shapes-clang-$o shapes.c "$CLANG" $warn -D_GNU_SOURCE -$o
done
c shapes-omit-fp shapes.c -O2 -fomit-frame-pointer
c shapes-fp shapes.c -O2 -fno-omit-frame-pointer
c shapes-static shapes.c -O2 -static
c shapes-static-pie shapes.c -O2 -static-pie
c shapes-no-pie shapes.c -O2 -no-pie
c shapes-no-plt shapes.c -O2 -fno-plt
c shapes-lazy shapes.c -O2 -Wl,-z,lazy
c shapes-avx2 shapes.c -O3 -mavx2 -mstackrealign
c shapes-debug-frame shapes.c -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables
c shapes-stripped shapes.c -O2 -s
build shapes-musl shapes.c "$MUSL_CC" $warn -D_GNU_SOURCE -O2
build ends-musl ends.c "$MUSL_CC" $warn -D_GNU_SOURCE -O2
build shapes-musl-static shapes.c "$MUSL_CC" $warn -D_GNU_SOURCE -O2 -static

for o in O0 O1 O2 O3; do
	c shares-gcc-$o shares.c -$o
	build shares-clang-$o shares.c "$CLANG" $warn -D_GNU_SOURCE -$o
done
c shares-static shares.c -O2 -static
c shares-static-pie shares.c -O2 -static-pie

for p in ends fixed kernel threads procs short names manymaps; do
	c $p $p.c -O2
done
c short-static short.c -O2 -static
c dlopen dlopen.c -O2 -ldl
c plugin.so plugin.c -O2 -shared -fPIC
c plugin-other.so plugin.c -O2 -shared -fPIC -DOTHER -DNAME=plugin_other
build cxx-gcc cxx.cc "$CXX" $warn -O2
build cxx-clang cxx.cc "$CLANG" $warn -O2 -x c++ -lstdc++
build rust rust.rs "$RUSTC" -O
c asmmain asmmain.c -O2 "$src/asm.S"
