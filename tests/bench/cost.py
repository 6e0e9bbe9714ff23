#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
BPF time per sample at several stack depths, by the kernel's count, beside a peer in the same run.

The peer is an unwinder prototype whose sources are in the directory PROBE (unw.bpf.c, xp.c, ehtab.c); it
is built in a temporary directory with clang and bpftool. Rounds interleave the two on the same process.

usage: cost.py [ROUNDS]     XPROF, WORKLOADS, PROBE
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import bench

DEPTHS = (8, 24, 96, 240)
SECONDS = "1"
RATE = "999"


def build_peer(source, work):
    """The peer's loader, or None with a reason."""
    if not source or not os.path.exists(os.path.join(source, "unw.bpf.c")):
        return None, "PROBE names no directory with unw.bpf.c"
    for program in ("clang", "bpftool", "gcc"):
        if not shutil.which(program):
            return None, program + " is not installed"
    script = """set -e; cd "$1"; cp "$2"/*.[ch] .
    bpftool btf dump file /sys/kernel/btf/vmlinux format c >vmlinux.h
    clang -w -O2 -g -target bpf -mcpu=v2 -D__TARGET_ARCH_x86 -DWITH_LOOP -c unw.bpf.c -o unw.o
    bpftool gen skeleton unw.o name unw >unw.skel.h
    gcc -w -O2 -o xp xp.c ehtab.c -lbpf -lelf -lz"""
    r = subprocess.run(["sh", "-c", script, "sh", work, source], capture_output=True, text=True)
    if r.returncode:
        return None, "PROBE does not build: " + r.stderr.strip().splitlines()[-1]
    return os.path.join(work, "xp"), None


def cost_of_xprof(pid, work):
    path = os.path.join(work, "data")
    watch = bench.Watch([bench.XPROF, "record", "-q", "-o", path, "-F", RATE, "-d", SECONDS, "-p", str(pid)])
    return watch.time / max(bench.count_samples(path), 1)


def cost_of_peer(peer, mode, pid):
    watch = bench.Watch([peer, "-q", "-F", RATE, "-d", SECONDS, "-m", mode, "-w", "262144", "-p", str(pid)])
    return watch.time / max(int(re.match(r"samples (\d+)", watch.output).group(1)), 1)


def main():
    bench.start()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as work:
        peer, reason = build_peer(os.environ.get("PROBE"), work)
        columns = {"xprof": lambda pid: cost_of_xprof(pid, work)}
        if peer:
            columns["peer loop"] = lambda pid: cost_of_peer(peer, "loop", pid)
            columns["peer tail"] = lambda pid: cost_of_peer(peer, "tail", pid)
        else:
            print("SKIP the peer: " + reason)
        got = {(c, d): [] for c in columns for d in DEPTHS}
        for n in range(rounds):
            for depth in DEPTHS:
                with bench.Target(depth) as pid:
                    order = list(columns)
                    for column in order[n % len(order):] + order[:n % len(order)]:
                        got[column, depth].append(columns[column](pid))
    print("BPF ns per sample, median (range) of %d rounds, %s Hz, %s s each" % (rounds, RATE, SECONDS))
    print("%6s" % "frames" + "".join("  %24s" % c for c in columns) +
          "".join("  %16s" % ("xprof/" + c) for c in columns if c != "xprof"))
    for depth in DEPTHS:
        line = "%6d" % depth + "".join("  %24s" % bench.spread(got[c, depth]) for c in columns)
        for c in columns:
            if c != "xprof":
                line += "  %16.2f" % statistics.median(
                    a / b for a, b in zip(got["xprof", depth], got[c, depth]))
        print(line)


if __name__ == "__main__":
    main()
