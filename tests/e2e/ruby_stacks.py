#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Ruby frames are exactly what Ruby itself says: label, file and line of every frame, at random instants.

tests/workloads/ruby/nest.rb builds random nests of every kind of frame; at the bottom it writes down its own
backtrace and then spins on the same line. xprof-stop stops the program at sampled instants and prints the
merged, named stack; while the program stands, the backtrace that its thread wrote last is read. A stop in
spin must have these very frames below spin. Class names and the names of C functions' files are not in
Ruby's backtraces, so "Nest#down" is compared as "down", and C functions by label; blocks that are C functions
are in neither.

Stops elsewhere (backtraces being made, nests being built) have no truth; of them only that every frame has a
name, that the raw frames are all in the merged stack, in order, and that the stack is joined, is checked.

usage: ruby_stacks.py [MODE...]     XPROF_STOP names the stopping program, STOPS the stops for each mode (50)
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
STOP = os.environ.get("XPROF_STOP", os.path.join(HERE, "../../build/tests/e2e/xprof-stop"))
NEST = os.path.join(HERE, "../workloads/ruby/nest.rb")
STOPS = int(os.environ.get("STOPS", "50"))
RUBY = os.environ.get("RUBY", "ruby3.1")
SHOWN = 3               # differences printed for each mode
LEAVES = ("spin", "spin_garbage")

# Raw frames: kinds and flags of bpf/ruby.h.
DUMMY, TORN, JIT = 9, 0x80, 0x400
MODES = [(mode, options) for mode in ("plain", "threads", "fibers", "gc") for options in ([], ["--yjit"])]


class Stop:
    """One stopped sample: raw frames as (flags, code, owner, pc), merged frames as dictionaries."""

    def __init__(self, line):
        m = re.match(r"STACK tid (\d+) n \d+ end (.+?) kernel", line)
        self.tid, self.end = int(m.group(1)), m.group(2)
        self.raw, self.frames, self.on_stack, self.vm_end = [], [], True, None

    def add(self, line):
        words = line.split("\t") if line.startswith("FRAME\t") else line.split()
        if words[0] == "PART":
            part = dict(zip(words[2::2], words[3::2]))
            self.on_stack, self.vm_end = part["flags"] == "1", part["end"]
        elif words[0] == "VM":
            self.raw.append([int(x, 16) for x in words[1:]])
        elif words[0] == "FRAME":
            self.frames.append(dict(zip(("kind", "runtime", "name", "file", "line"), words[1:])))

    def ruby(self):
        """Frames of Ruby, leaf first; blocks that are C functions and the collector left out."""
        return [f for f in self.frames if f["runtime"] == "ruby" and f["kind"] not in ("gc", "internal")]


def read_stops(stream):
    """Yields each stop; the caller answers it."""
    stop = None
    for line in stream:
        line = line.rstrip("\n")
        if line.startswith("STACK"):
            stop = Stop(line)
        elif line == "END" and stop:
            yield stop
            stop = None
        elif stop:
            stop.add(line)


def base_label(name):
    """Ruby's own label: without classes."""
    m = re.fullmatch(r"((?:block|rescue|ensure)(?: \(\d+ levels\))? in |)(.*)", name)
    prefix, rest = m.groups()
    if rest.startswith("<"):
        return prefix + re.sub(r"^<class:.*::", "<class:", rest)
    return prefix + re.split(r"#|(?<=[\w>)])\.(?=[^.])", rest)[-1]


def read_truth(directory, tid):
    try:
        with open(os.path.join(directory, str(tid))) as f:
            lines = f.read().split("\n")
    except FileNotFoundError:
        return None
    return [line.split("\t") for line in lines[:lines.index(".")]] if "." in lines else None


def compare(stop, truth):
    """None, or the first difference."""
    frames = stop.ruby()
    labels = [base_label(f["name"]) for f in frames]
    leaf = next((i for i, label in enumerate(labels) if label in LEAVES), None)
    if leaf is None:
        return "elsewhere"
    if any(f["kind"] != "cfunc" for f in frames[:leaf]):
        return "called by the leaf: %s" % frames[:leaf]
    ours = frames[leaf + 1:]
    for i, (f, label, t) in enumerate(zip(ours, labels[leaf + 1:], truth)):
        if label != t[0]:
            return "frame %d: %s, Ruby says %s" % (i, f["name"], t)
        if f["kind"] != "cfunc" and [f["file"], f["line"]] != t[1:]:
            return "frame %d: %s %s:%s, Ruby says %s" % (i, f["name"], f["file"], f["line"], t)
    if len(ours) != len(truth):
        return "%d frames, Ruby has %d" % (len(ours), len(truth))
    return None


def sanity(stop):
    """None, or what is wrong with a stack whatever it is."""
    marks = [f["name"] for f in stop.frames if f["kind"] == "mark"]
    unmerged = [m for m in marks if m.startswith("[unmerged")]
    if unmerged and (stop.on_stack or unmerged != ["[unmerged: fiber switch]"]):
        return str(unmerged)
    bad = [f["name"] for f in stop.frames if "unknown" in f["name"] or "was named" in f["name"]]
    if bad:
        return str(bad)
    calls = [f for f in stop.raw if f[0] & 0xf != DUMMY]
    torn = [i for i, f in enumerate(calls) if f[0] & TORN]
    if torn not in ([], [0]):
        return "half-pushed frames %s" % torn
    ours = [f for f in stop.frames if f["kind"] != "gc" and
            (f["runtime"] == "ruby" or f["name"] == "[half-pushed frame]")]
    if len(ours) != len(calls):
        return "%d frames merged, %d raw" % (len(ours), len(calls))
    return None


def run_mode(mode, options):
    """Counts, and lines that tell of differences."""
    counts = {"compared": 0, "equal": 0, "elsewhere": 0, "insane": 0, "frames": 0, "jit": 0}
    told = []
    with tempfile.TemporaryDirectory() as directory:
        target = subprocess.Popen([RUBY, "--disable-gems", *options, NEST, directory, mode])
        time.sleep(0.5)
        stop = subprocess.Popen([STOP, "-p", str(target.pid), "-n", str(STOPS), "-r"], text=True, bufsize=1,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            for s in read_stops(stop.stdout):
                truth = read_truth(directory, s.tid)
                wrong = sanity(s)
                counts["insane"] += wrong is not None
                counts["jit"] += any(f[0] & JIT for f in s.raw)
                different = compare(s, truth) if truth and s.on_stack else "elsewhere"
                if different == "elsewhere":
                    counts["elsewhere"] += 1
                else:
                    counts["compared"] += 1
                    counts["equal"] += different is None
                    counts["frames"] += len(truth)
                    wrong = wrong or different
                if wrong and len(told) < SHOWN:
                    told += [wrong] + ["    " + f["name"] for f in s.ruby()[:12]]
                stop.stdin.write("\n")
                stop.stdin.flush()
            counts["status"] = stop.wait(timeout=30)
        finally:
            for process in (stop, target):
                process.kill()
                process.wait()
    return counts, told


def skip(need, reason):
    must = os.environ.get("XPROF_MUST_RUN", "").split(",")
    if need in must or "all" in must:
        print("1..1\nnot ok 1 - must run, but: " + reason)
        sys.exit(1)
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def main():
    if not os.access(STOP, os.X_OK):
        skip("xprof-stop", "no %s: build it with make check" % STOP)
    if os.geteuid() != 0 or not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip("bpf", "sampling needs root and a kernel with BTF")
    if not shutil.which(RUBY):
        skip("ruby", RUBY + " is not installed")
    modes = [m for m in MODES if not sys.argv[1:] or m[0] in sys.argv[1:]]
    if subprocess.run([RUBY, "--yjit", "-e", "1"], stderr=subprocess.DEVNULL).returncode:
        modes = [m for m in modes if not m[1]]
    failed = total = 0
    print("1..%d" % (len(modes) + 1))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda m: run_mode(*m), modes)
        for n, ((mode, options), (counts, told)) in enumerate(zip(modes, results), 1):
            good = counts["compared"] >= STOPS / 4 and counts["equal"] == counts["compared"] and \
                counts["insane"] == 0 and counts["status"] == 0 and \
                (counts["jit"] > STOPS / 2 if "--yjit" in options else counts["jit"] == 0)
            failed += not good
            total += counts["compared"]
            print("%s %d - %s: %s" % ("ok" if good else "not ok", n, " ".join([mode] + options),
                                      ", ".join("%s %d" % c for c in counts.items())))
            for line in told:
                print("#   " + line, flush=True)
    good = total >= len(modes) * STOPS / 2
    failed += not good
    print("%s %d - %d stacks compared with Ruby's own" % ("ok" if good else "not ok", len(modes) + 1, total))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
