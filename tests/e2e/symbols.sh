#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs as the distribution ships them, stripped: every pc is in a mapping and in a function. What has
# no symbol is named by its start, which must be a start that the file's unwind information knows.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_program python3
need_program readelf

cat >"$tmp/starts.py" <<'PY'
"""
Checks the addresses in frames [file+0x123] against the FDE starts of the file. Code between two FDEs (ld.so's
entry has none) is bounded by the end of the one before.
"""
import glob, os, re, subprocess, sys
names = {}
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    for frame in line.rsplit(" ", 1)[0].split(";")[1:]:
        m = re.fullmatch(r"\[(.+)\+0x([0-9a-f]+)\]", frame)
        if m:
            names.setdefault(m.group(1), set()).add(int(m.group(2), 16))
places = ["/usr/bin/", "/usr/sbin/", "/usr/lib/x86_64-linux-gnu/", "/lib64/", "/usr/lib/x86_64-linux-gnu/*/",
          "/usr/lib/x86_64-linux-gnu/*/*/*/", "/usr/lib/x86_64-linux-gnu/*/*/"]
bad = checked = 0
for name, addresses in sorted(names.items()):
    if name in ("vdso", "[vdso]"):
        continue
    files = [f for p in places for f in glob.glob(p + glob.escape(name))]
    if not files:
        print("no file", name)
        continue
    out = subprocess.run(["readelf", "-wF", "--debug-dump=no-follow-links", os.path.realpath(files[0])],
                         capture_output=True, text=True).stdout
    starts = {int(m, 16) for fde in re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", out) for m in fde}
    for address in sorted(addresses):
        checked += 1
        if address not in starts:
            bad += 1
            if bad <= 10:
                print("%s+0x%x is no start of a function" % (files[0], address))
print("%d names checked" % checked)
sys.exit(bad > 0)
PY

# distribution LABEL COMMAND...
distribution()
{
	local label=$1
	shift
	command -v "$1" >/dev/null || {
		skip "$1" "$1 is not installed" "$label"
		return
	}
	record "$tmp/data" -F 999 -- "$@"
	is "$status" 0 "$label: status" || diag "$err"
	folded "$tmp/data"
	cmp_num "$(samples)" -ge 100 "$label: samples"
	is "$(unknown)" 0 "$label: every pc has a function" ||
		diag "$(grep -F '[unknown]' "$stacks" | head -3)"
	is "$(samples '/;0x[0-9a-f]+[; ]/')" 0 "$label: no bare addresses"
	python3 "$tmp/starts.py" "$stacks" >"$tmp/starts"
	ok $? "$label: functions without a symbol are named by their start"
	diag "$label: $(tr '\n' ' ' <"$tmp/starts")"
	complete_enough "$label" 99
}

head -c 16000000 /dev/urandom >"$tmp/random"
od -An -v -tx8 -w8 "$tmp/random" >"$tmp/text"
distribution ruby /usr/bin/ruby3.1 --disable-gems -e '
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
a = (1..2000).map { |i| (i * 7919) % 2003 }
t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - t < 1.2
  fib(14); a.sort_by { |x| -x }.map(&:to_s).join(",").gsub(/1+/, "x"); a.each_slice(3).to_a
end'
like "$(awk -F ';' '{ print $2 ";" $3 ";" $4 ";" $5 ";" $6 }' "$stacks" | sort | uniq -c | sort -rn | head -1)" \
	"*;main;*" "ruby: main of the stripped program is named"
distribution luajit luajit -joff -e '
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = os.clock()
while os.clock() - t < 1.2 do fib(15); local s = {} for i = 1, 500 do s[i] = tostring(i * 7919 % 503) end
table.sort(s); string.rep(table.concat(s), 2):gsub("%d", "x") end'
distribution perl perl -e 'my $t = times; while (times - $t < 1.2) { my @a = map { ($_ * 7919) % 2003 } 1..2000;
my $s = join ",", sort { $a <=> $b } @a; $s =~ s/1+/x/g; my %h = map { $_ => 1 } @a; }'
distribution gzip gzip -9c "$tmp/random"
distribution sort env LC_ALL=C sort "$tmp/text"
distribution openssl openssl speed -seconds 1 -bytes 1024 sha256
distribution openssl-rsa openssl speed -seconds 1 rsa2048
done_testing
