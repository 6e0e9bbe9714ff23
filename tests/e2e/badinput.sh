#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What cannot work is refused: the right status, one to three lines on stderr that name the culprit,
# nothing on stdout.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads
need_program python3

# refused NAME STATUS PATTERN: of the last run
refused()
{
	local lines
	lines=$(wc -l <"$tmp/err")
	is "$status" "$2" "$1: status $2" || diag "$err"
	like "$err" "xprof: *" "$1: the message has our name"
	like "$err" "*$3*" "$1: and names the cause"
	cmp_num "$lines" -ge 1 "$1: a message"
	cmp_num "$lines" -le 3 "$1: of three lines at most" || diag "$err"
	is "$out" "" "$1: stdout is empty"
}

xprof()
{
	run timeout 20 "$XPROF" "$@"
}

# Targets.
for pid in abc 12x "" 0 -5 99999999999 1,,2; do
	xprof record -o "$tmp/x" -d 1 -p "$pid"
	refused "pid '$pid'" 2 ""
done
true &
dead=$!
wait $dead
xprof record -o "$tmp/x" -d 1 -p $dead
refused "dead pid" 1 "$dead"
is "$(ls "$tmp" | grep -c '^x$')" 0 "dead pid: no file is left behind"
xprof maps -p $dead
refused "maps of a dead pid" 1 "$dead"

kthread=$(awk '$9 + 0 >= 0 && $4 == 2 { print $1; exit }' /proc/[0-9]*/stat 2>/dev/null)
if [ -n "$kthread" ]; then
	xprof record -o "$tmp/x" -d 1 -p "$kthread"
	refused "kernel thread" 1 "$kthread"
else
	skip kthread "no kernel threads visible here" "kernel thread"
fi

python3 -c 'import os, time
pid = os.fork()
if pid == 0:
    os._exit(0)
print(pid, flush=True)
time.sleep(60)' >"$tmp/zombie" &
tap_children="$tap_children $!"
while ! [ -s "$tmp/zombie" ]; do sleep 0.1; done
sleep 0.1
zombie=$(cat "$tmp/zombie")
xprof record -o "$tmp/x" -d 1 -p "$zombie"
refused "zombie" 1 "$zombie"

spawn "$WORKLOADS/threads" many 2 60 >/dev/null
sleep 0.3
tid=$(ls /proc/$spawned/task | tail -1)
xprof record -o "$tmp/x" -d 1 -p "$tid"
refused "thread id" 1 "$spawned"

# Outputs.
xprof record -o "$tmp/no/such/dir/x" -d 1 -p $spawned
refused "output in no directory" 1 "$tmp/no/such/dir/x"
xprof record -o "$tmp" -d 1 -p $spawned
refused "output is a directory" 1 "$tmp"
xprof record -q -o /dev/full -F 999 -d 1 -p $spawned
refused "disk full" 1 "/dev/full"
record "$tmp/data" -F 999 -d 1 -p $spawned
is "$status" 0 "a good recording for what follows" || diag "$err"
status=0
"$XPROF" report -i "$tmp/data" --folded >/dev/full 2>"$tmp/err" || status=$?
out= err=$(cat "$tmp/err")
refused "report to a full disk" 1 ""
"$XPROF" report -i "$tmp/data" --folded 2>"$tmp/err" | head -c 1 >/dev/null
is "$(cat "$tmp/err")" "" "report into a closed pipe is quiet"

# Names with control characters stay on their line.
xprof record -o "$(printf '%s/new\nline' "$tmp")" -d 0.2 -p $spawned
like "$err" "*wrote $tmp/new line (*" "an output with a newline in its name: messages keep to their line"

# A library of more than 16 MiB loses its end, where symbols and lines are, while it runs; then a function
# of a part that nothing was asked of yet is called.
shrinks()
{
	local half
	for half in early late; do
		echo "extern volatile unsigned long sink;
__attribute__((noinline)) void $half(void) { for (int i = 0; i < 100000; i++) sink += i; }" >"$tmp/$half.c"
	done
	cat >"$tmp/shrinks.c" <<'EOF'
#include <time.h>
void early(void), late(void);
volatile unsigned long sink;
int main(void)
{
	time_t begin = time(NULL);

	while (time(NULL) < begin + 4)
		early();
	while (time(NULL) < begin + 7)
		late();
	return 0;
}
EOF
	# The linker puts this one in front of .debug_info, which so lies in pages without code and data.
	echo 'asm(".pushsection .debug_pubnames; .zero 20971520; .popsection");' >>"$tmp/early.c"
	${CC:-cc} -O2 -g -shared -fPIC -o "$tmp/libshrinks.so" "$tmp/early.c" "$tmp/late.c" &&
		${CC:-cc} -O2 -o "$tmp/shrinks" "$tmp/shrinks.c" -L"$tmp" -lshrinks -Wl,-rpath,"$tmp"
}
if shrinks 2>"$tmp/err"; then
	at=$(readelf -SW "$tmp/libshrinks.so" | awk '/ \.debug_info / { sub(/.*PROGBITS/, ""); print $2 }')
	spawn "$tmp/shrinks" >/dev/null
	"$XPROF" record -q -F 499 -o "$tmp/shrinks.data" -p $spawned 2>"$tmp/err" &
	recorder=$!
	tap_children="$tap_children $recorder"
	sleep 2
	truncate -s $((0x$at / 4096 * 4096)) "$tmp/libshrinks.so"
	status=0
	wait $recorder || status=$?
	is "$status" 0 "a file that shrinks while it is recorded: status" || diag "$(cat "$tmp/err")"
	folded "$tmp/shrinks.data"
	is "$report_status" 0 "a file that shrinks: the recording is complete"
	cmp_num "$(with_frame early)" -ge 50 "a file that shrinks: what was named before has its name"
	cmp_num "$(samples)" ">=" "$(with_frame early) + 50" "a file that shrinks: sampling went on"
else
	skip workloads "the library does not build: $(head -1 "$tmp/err")" "a file that shrinks"
fi

# Sample files.
xprof report -i "$tmp/no-such-file" --folded
refused "no such file" 1 "$tmp/no-such-file"
xprof report -i "$tmp" --folded
refused "a directory" 1 "$tmp"
: >"$tmp/empty"
xprof report -i "$tmp/empty" --folded
refused "empty file" 1 "empty"
head -c 100000 /bin/ls >"$tmp/foreign"
xprof report -i "$tmp/foreign" --folded
refused "foreign file" 1 "foreign"
printf 'P' >"$tmp/tiny"
xprof report -i "$tmp/tiny" --folded
refused "one byte" 1 "tiny"

# Cut and flipped: the samples before the damage, status 3; or nothing usable, status 1. Never a crash,
# never silence. Some hundred positions over the whole file.
cat >"$tmp/damage.py" <<'PY'
import subprocess, sys
xprof, path, work, how = sys.argv[1:5]
data = open(path, "rb").read()
step = max(1, len(data) // 120)
places = sorted(set(range(1, len(data), step)) | set(range(1, min(len(data), 40))) |
                set(range(max(1, len(data) - 40), len(data))))
bad = statuses = 0
seen = {}
whole = subprocess.run([xprof, "report", "-i", path, "--folded"], capture_output=True).stdout
total = sum(int(line.rsplit(b" ", 1)[1]) for line in whole.splitlines())
for at in places:
    if how == "cut":
        broken = data[:at]
    else:
        broken = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1:]
    open(work, "wb").write(broken)
    r = subprocess.run([xprof, "report", "-i", work, "--folded"], capture_output=True, timeout=20)
    n = sum(int(line.rsplit(b" ", 1)[1]) for line in r.stdout.splitlines())
    seen[r.returncode] = seen.get(r.returncode, 0) + 1
    lines = r.stderr.count(b"\n")
    if r.returncode not in (1, 3) or not 1 <= lines <= 3 or n > total or (r.returncode == 1 and n):
        bad += 1
        if bad <= 5:
            print("%s at %d of %d: status %d, %d samples, stderr %r" %
                  (how, at, len(data), r.returncode, n, r.stderr[:300]))
print("%s at %d places: statuses %s" % (how, len(places), seen))
sys.exit(bad > 0)
PY
for how in cut flip; do
	python3 "$tmp/damage.py" "$XPROF" "$tmp/data" "$tmp/broken" $how >"$tmp/damage"
	ok $? "$how files: status 1 or 3 with a message, no crash"
	diag "$(cat "$tmp/damage")"
done
{ cat "$tmp/data"; echo trailing; } >"$tmp/broken"
xprof report -i "$tmp/broken" --folded
is "$status" 3 "bytes after the end: status 3"

# Rights.
if command -v setpriv >/dev/null && id nobody >/dev/null 2>&1; then
	chmod 755 "$tmp"
	cp "$XPROF" "$tmp/xprof"
	chmod 755 "$tmp/xprof"
	mkdir -m 777 "$tmp/nobody"
	run setpriv --reuid nobody --regid nogroup --clear-groups "$tmp/xprof" record \
		-o "$tmp/nobody/x" -- true
	refused "unprivileged" 77 ""
	case $err in
	*cap_bpf* | *CAP_BPF* | *sudo* | *root*) true ;;
	*) false ;;
	esac
	ok $? "unprivileged: the message names what is missing" || diag "$err"
	is "$(ls "$tmp/nobody")" "" "unprivileged: no file is left behind"
	chmod 644 "$tmp/data"
	run setpriv --reuid nobody --regid nogroup --clear-groups "$tmp/xprof" report -i "$tmp/data" --folded
	is "$status" 0 "unprivileged: report works" || diag "$err"
else
	skip setpriv "no setpriv or no user nobody" "unprivileged"
fi
done_testing
