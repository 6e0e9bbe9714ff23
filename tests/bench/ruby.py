#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
BPF time per sample of a Ruby at several depths, by the kernel's count, and what one Ruby frame costs; beside
a peer in the same run.

The peer is a prototype whose sources are in the directory PROBE_RUBY (rbx.bpf.c, rbx.c, ehtab.c, and
drive.py, which finds its parameters; it wants rbprobe.py in ../ruby). It is built in a temporary directory
with clang and bpftool. Rounds interleave the two on the same process.

usage: ruby.py [ROUNDS]     XPROF, RUBY, PROBE_RUBY
"""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bench

DEPTHS = (10, 50, 500)
SECONDS = "1"
RATE = "999"
RUBY = os.environ.get("RUBY", "ruby3.1")
# <main>, DEPTH methods; the loop runs in the innermost.
PROGRAM = """
def descend(n)
  return descend(n - 1) if n > 1
  i = 0
  i += 1 while true
end
descend(%d)
"""


class Target:
    """Context: a Ruby that stays at so many methods."""

    def __init__(self, depth):
        self.command = [RUBY, "--disable-gems", "-e", PROGRAM % depth]

    def __enter__(self):
        self.process = subprocess.Popen(self.command)
        time.sleep(0.5)
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Peer:
    """The prototype, built in a directory of its own."""

    BUILD = """set -e; cd "$1"
    bpftool btf dump file /sys/kernel/btf/vmlinux format c >vmlinux.h
    clang -w -O2 -g -target bpf -mcpu=v2 -D__TARGET_ARCH_x86 -c rbx.bpf.c -o rbx.o
    bpftool gen skeleton rbx.o name rbx >rbx.skel.h
    gcc -w -O2 -o rbx rbx.c ehtab.c -lbpf -lelf -lz"""

    def __init__(self, source, work):
        self.dir = os.path.join(work, "peer")
        self.reason = None
        if not source or not os.path.exists(os.path.join(source, "rbx.bpf.c")):
            self.reason = "PROBE_RUBY names no directory with rbx.bpf.c"
            return
        os.mkdir(self.dir)
        for name in glob.glob(source + "/*.*") + glob.glob(source + "/../ruby/*.*") + \
                glob.glob(source + "/../native/ehtab.*"):
            shutil.copy(name, self.dir)
        r = subprocess.run(["sh", "-c", self.BUILD, "sh", self.dir], capture_output=True, text=True)
        if r.returncode:
            self.reason = "PROBE_RUBY does not build: " + r.stderr.strip().splitlines()[-1]

    def configure(self, pid):
        """Lets the peer find its parameters for a process; the file's name."""
        env = dict(os.environ, HOME=self.dir)
        subprocess.run(["/usr/bin/python3", os.path.join(self.dir, "drive.py"), str(pid), "-d", "0.1"], env=env,
                       stdout=subprocess.DEVNULL, check=True)
        return os.path.join(self.dir, ".cache/xprof-probes/cfg.%d" % pid)

    def cost(self, pid, config, *options):
        r = subprocess.run([os.path.join(self.dir, "rbx"), "-q", "-p", str(pid), "-c", config, "-d", SECONDS,
                            "-F", RATE, *options], env=dict(os.environ, BPFSTATS="1"), capture_output=True,
                           text=True, check=True)
        return int(re.search(r"ns/sample (\d+)", r.stderr).group(1))


def cost_of_xprof(pid, work):
    path = os.path.join(work, "data")
    watch = bench.Watch([bench.XPROF, "record", "-q", "-o", path, "-F", RATE, "-d", SECONDS, "-p", str(pid)])
    out = subprocess.run([bench.XPROF, "report", "-i", path, "--folded"], capture_output=True, text=True,
                         check=True).stdout
    if "[truncated: VM stack" in out:
        print("# some stacks were cut: this machine is too busy for %s Hz" % RATE)
    return watch.time / max(bench.count_samples(path), 1)


def per_frame(got, column):
    """Nanoseconds a frame between the smallest and the largest depth, median of the rounds."""
    low, high = DEPTHS[0], DEPTHS[-1]
    return statistics.median((b - a) / (high - low) for a, b in zip(got[column, low], got[column, high]))


def main():
    bench.start()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    if not shutil.which(RUBY):
        sys.exit("SKIP: no " + RUBY)
    with tempfile.TemporaryDirectory() as work:
        peer = Peer(os.environ.get("PROBE_RUBY"), work)
        columns = {"xprof": lambda pid, config: cost_of_xprof(pid, work)}
        if peer.reason:
            print("SKIP the peer: " + peer.reason)
        else:
            columns["peer"] = peer.cost
        got = {(c, d): [] for c in columns for d in DEPTHS}
        for n in range(rounds):
            for depth in DEPTHS:
                with Target(depth) as pid:
                    config = None if peer.reason else peer.configure(pid)
                    order = list(columns)
                    for column in order[n % len(order):] + order[:n % len(order)]:
                        got[column, depth].append(columns[column](pid, config))
    print("BPF ns per sample, median (range) of %d rounds, %s Hz, %s s each" % (rounds, RATE, SECONDS))
    print("%8s" % "methods" + "".join("  %24s" % c for c in columns))
    for depth in DEPTHS:
        print("%8d" % depth + "".join("  %24s" % bench.spread(got[c, depth]) for c in columns) +
              ("  xprof/peer %.2f" % statistics.median(a / b for a, b in zip(got["xprof", depth], got["peer", depth]))
               if "peer" in columns else ""))
    for c in columns:
        print("%s: %.0f ns a Ruby frame" % (c, per_frame(got, c)))
    if "peer" in columns:
        print("xprof/peer a frame: %.2f" % (per_frame(got, "xprof") / per_frame(got, "peer")))


if __name__ == "__main__":
    main()
