# SPDX-License-Identifier: GPL-2.0-or-later
#
# TAP for shell tests, POSIX sh with "local". Source it, call the checks, end with done_testing.
#
#   ok STATUS NAME            STATUS is 0: passed. Mostly: some command; ok $? "name"
#   is GOT WANT NAME          equal as text
#   like GOT PATTERN NAME     PATTERN is a case pattern
#   cmp_num A OP B NAME       OP is -eq, -ge, ... or, for fractions too, <, <=, >, >=
#   skip NEED REASON NAME     one check skipped
#   skip_all NEED REASON      the whole test skipped: prints the plan and exits
#   spawn COMMAND...          in the background; ends with the test. Its pid is in $spawned
#   run COMMAND...            status in $status, output in $out, messages in $err (files: $tmp/out, $tmp/err)
#   need_bpf, need_program P  skip_all unless it is there
#
# A check returns its result, so "check || diag more" tells more about a failure.
# NEED is one word (bpf, root, clang, ruby, ...). XPROF_MUST_RUN, a comma list of such words or "all",
# makes the skip of any of them a failure.
# $tmp is a directory of the test's own, removed at the end together with what spawn started.

tap_count=0
tap_failed=0
tap_children=
tmp=$(mktemp -d "${TMPDIR:-/tmp}/xprof-test.XXXXXX") || exit 99
here=$(cd "$(dirname "$0")" && pwd)
: "${srcdir:=$here}"
: "${XPROF:=$here/../../build/xprof}"
: "${WORKLOADS:=$(dirname "$XPROF")/workloads}"
export XPROF WORKLOADS

tap_cleanup()
{
	local pid
	for pid in $tap_children; do
		kill -CONT "$pid" 2>/dev/null
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	if command -v at_exit >/dev/null; then
		at_exit
	fi
	rm -rf "$tmp"
}
trap tap_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

diag()
{
	printf '%s\n' "$*" | sed 's/^/# /'
}

ok()
{
	tap_count=$((tap_count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $2"
		return 0
	fi
	echo "not ok $tap_count - $2"
	tap_failed=1
	return 1
}

is()
{
	local same=1
	[ "$1" != "$2" ] || same=0
	ok $same "$3" && return
	diag "got:  $1
want: $2"
	return 1
}

like()
{
	local match=1
	case $1 in
	$2) match=0 ;;
	esac
	ok $match "$3" && return
	diag "got:  $1
want: $2"
	return 1
}

cmp_num()
{
	local true=1
	case $2 in
	-*) [ "$1" "$2" "$3" ] && true=0 ;;
	*) awk "BEGIN { exit !(($1) $2 ($3)) }" </dev/null && true=0 ;;
	esac
	ok $true "$4" && return
	diag "false: $1 $2 $3"
	return 1
}

# Is this need one that must be there?
tap_must_run()
{
	case ,${XPROF_MUST_RUN:-}, in
	*,all,* | *,"$1",*) return 0 ;;
	esac
	return 1
}

skip()
{
	if tap_must_run "$1"; then
		ok 1 "$3"
		diag "must run, but: $2"
		return
	fi
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $3 # SKIP $2"
}

skip_all()
{
	if tap_must_run "$1"; then
		echo "1..1"
		echo "not ok 1 - must run, but: $2"
		exit 1
	fi
	echo "1..0 # SKIP $2"
	exit 0
}

done_testing()
{
	echo "1..$tap_count"
	exit $tap_failed
}

spawn()
{
	"$@" &
	spawned=$!
	tap_children="$tap_children $spawned"
}

run()
{
	status=0
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}

need_program()
{
	command -v "$1" >/dev/null || skip_all "$1" "$1 is not installed"
}

need_xprof()
{
	[ -x "$XPROF" ] || skip_all xprof "no $XPROF: build first"
}

# Sampling is possible here. The first two are known without xprof; that the kernel refuses all the same
# (a container) only the attempt tells, and only the status that says so makes a skip.
need_bpf()
{
	need_xprof
	[ "$(id -u)" = 0 ] || skip_all bpf "sampling needs root"
	[ -r /sys/kernel/btf/vmlinux ] || skip_all bpf "this kernel has no BTF"
	run "$XPROF" record -q -d 1 -o "$tmp/need.data" -- true
	[ "$status" != 77 ] || skip_all bpf "no rights to sample: $(head -1 "$tmp/err")"
	rm -f "$tmp/need.data"
}

# The test programs, built when they are older than their sources.
need_workloads()
{
	sh "$here/../e2e/build-workloads.sh" "$WORKLOADS" >"$tmp/build" 2>&1 && return
	echo "Bail out! the test programs do not build"
	diag "$(cat "$tmp/build")"
	exit 99
}

# need_variant PROGRAM: false when the compiler for it is not installed; one skipped check then.
need_variant()
{
	[ -x "$WORKLOADS/$1" ] && return 0
	skip workloads "$1 was not built: its compiler is not installed" "$1"
	return 1
}
