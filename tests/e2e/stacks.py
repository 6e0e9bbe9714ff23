#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Native stacks are exactly what elfutils sees: frame by frame, on live programs at sampled instants.

The test-only program xprof-stop stops its target with SIGSTOP at the sampled pc and prints

    STACK tid N end REASON kernel K: pc pc pc ...

with raw pcs, leaf first; then it waits for a line before the target goes on. Meanwhile eu-stack walks the
same thread. For each shape of program: compared, identical, different, and what the differences are:

    signal    a signal was delivered between sample and stop, in a shape that has signals: ours is the tail
              of eu-stack's
    moved     only the leaf's pc differs: the thread ran on in the same frame
    cut       ours ended early and said so
    eu-stack  eu-stack gave up before ours ended, or believed a row that is known to be wrong and took what is
              no return address for the second frame, which is the last or where no code can be: nothing
              to compare with
    other     a fault

"signal" and "eu-stack" are limits of the comparison; every other difference fails the test, and so do too
few stops over all shapes.

usage: stacks.py [SHAPE...]     XPROF_STOP names the program, WORKLOADS the test programs' directory,
                                STOPS the number of stops for each shape (12)
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STOP = os.environ.get("XPROF_STOP", os.path.join(HERE, "../../build/tests/e2e/xprof-stop"))
WORKLOADS = os.environ.get("WORKLOADS", os.path.join(os.path.dirname(STOP), "../../workloads"))
STOPS = int(os.environ.get("STOPS", "12"))
LEAST_STOPS = 300
SHOWN = 4               # differences of one kind printed for each shape
SIGNALS = ("signal handler", "alternate stack")
NO_CODE_BELOW = 0x1000   # vm.mmap_min_addr is no less
LYING_ROWS = ("luajit",)        # one row for an interpreter's assembler, right in most of it

RUBY = """
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
a = (1..500).map { |i| (i * 7919) % 503 }
loop { fib(12); a.sort_by { |x| -x }.map(&:to_s).join(",").gsub(/1+/, "x"); a.each_slice(3).to_a }
"""
LUA = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
while true do
  fib(12)
  local s = {}
  for i = 1, 300 do s[i] = tostring(i * 7919 % 503) end
  table.sort(s, function(a, b) return a > b end)
  local _ = string.rep(table.concat(s), 2):gsub("%d", "x")
end
"""


def workload(name, *arguments):
    return [os.path.join(WORKLOADS, name), *arguments]


def shapes():
    """Label and command of everything to look at."""
    variants = ["gcc-O0", "gcc-O1", "gcc-O2", "gcc-O3", "clang-O0", "clang-O2", "clang-O3", "fp", "static",
                "static-pie", "no-pie", "no-plt", "lazy", "avx2", "debug-frame", "stripped"]
    for v in variants:
        yield v, workload("shapes-" + v, "mixed", "burn", "70")
    for leaf in ["qsort", "vdso", "string", "syscall", "printf"]:
        yield leaf, workload("shapes-gcc-O2", "mixed", leaf, "40")
    yield "static printf", workload("shapes-static", "mixed", "printf", "40")
    yield "signal handler", workload("shapes-gcc-O2", "signal", "burn", "30")
    yield "alternate stack", workload("shapes-gcc-O2", "altstack", "burn", "30")
    yield "thread", workload("shapes-gcc-O2", "thread", "burn", "40")
    yield "deep", workload("shapes-gcc-O2", "mixed", "burn", "300")
    yield "assembler", workload("asmmain", "600")
    yield "C++", workload("cxx-gcc", "600")
    yield "C++ clang", workload("cxx-clang", "600")
    yield "Rust", workload("rust", "600")
    yield "kernel", workload("kernel", "600")
    yield "ruby", ["/usr/bin/ruby3.1", "--disable-gems", "-e", RUBY]
    yield "luajit", ["luajit", "-joff", "-e", LUA]


def eu_stack(tid):
    """The thread's pcs, leaf first, and whether eu-stack got to the end."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("DEBUGINFOD")}
    r = subprocess.run(["eu-stack", "-1", "-q", "-n", "0", "-p", str(tid)], capture_output=True,
                       text=True, errors="replace", timeout=60, env=env)
    pcs = [int(m, 16) for m in re.findall(r"^#\d+\s+0x([0-9a-f]+)", r.stdout, re.M)]
    return pcs, r.returncode == 0


def parse(line):
    m = re.match(r"STACK tid (\d+) n \d+ end (.+?) kernel \d+:(.*)", line)
    if not m:
        raise ValueError("not a STACK line: %r" % line)
    return int(m.group(1)), m.group(2), [int(x, 16) for x in m.group(3).split()]


def classify(ours, theirs, whole, label):
    if ours == theirs:
        return "identical"
    if theirs[1:] == ours[1:] and theirs:
        return "moved"
    if label in SIGNALS and len(theirs) > len(ours) > 1 and theirs[-len(ours) + 1:] == ours[1:]:
        return "signal"
    common = 0
    while common < min(len(ours), len(theirs)) and ours[common] == theirs[common]:
        common += 1
    lies = label in LYING_ROWS and common == 1 and (len(theirs) == 2 or theirs[1] < NO_CODE_BELOW)
    if lies or (common == len(theirs) and not whole):
        return "eu-stack"
    if common == len(ours):
        return "cut"
    return "other"


def describe(ours, theirs):
    lines = []
    for i in range(max(len(ours), len(theirs))):
        a = "%x" % ours[i] if i < len(ours) else "-"
        b = "%x" % theirs[i] if i < len(theirs) else "-"
        if a != b:
            lines.append("#     frame %d: ours %s, eu-stack %s" % (i, a, b))
        if len(lines) == 5:
            lines.append("#     ...")
            break
    return lines


def compare(label, command):
    """Stops one program STOPS times. Returns the counts by class."""
    counts = {}
    target = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stop = subprocess.Popen([STOP, "-p", str(target.pid), "-n", str(STOPS)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        for line in stop.stdout:
            if not line.startswith("STACK"):
                continue
            tid, end, ours = parse(line)
            theirs, whole = eu_stack(tid)
            kind = classify(ours, theirs, whole, label)
            counts[kind] = counts.get(kind, 0) + 1
            if kind != "identical" and counts[kind] <= SHOWN:
                print("#   %s: %s: ours %d frames (%s), eu-stack %d" %
                      (label, kind, len(ours), end, len(theirs)))
                print("\n".join(describe(ours, theirs)))
            stop.stdin.write("\n")
            stop.stdin.flush()
        if stop.wait(timeout=30):
            counts["failed"] = 1
            print("#   %s: xprof-stop ended with status %d" % (label, stop.returncode))
    finally:
        for process in (stop, target):
            process.kill()
            process.wait()
    return counts


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
    if not shutil.which("eu-stack"):
        skip("eu-stack", "eu-stack (elfutils) is not installed")
    with tempfile.TemporaryFile("w+") as log:
        if subprocess.run(["sh", os.path.join(HERE, "build-workloads.sh"), WORKLOADS], stdout=log,
                          stderr=log).returncode:
            log.seek(0)
            print("Bail out! the test programs do not build\n# " + log.read().replace("\n", "\n# "))
            sys.exit(99)

    number = failed = stops = identical = 0
    for label, command in shapes():
        if sys.argv[1:] and label not in sys.argv[1:]:
            continue
        number += 1
        if not shutil.which(command[0]):
            print("ok %d - %s # SKIP %s is not there" % (number, label, command[0]))
            continue
        counts = compare(label, command)
        compared = sum(counts.values())
        good = compared > 0 and not any(counts.get(k) for k in ("cut", "moved", "other", "failed"))
        failed += not good
        stops += compared
        identical += counts.get("identical", 0)
        print("%s %d - %s: compared %d, %s" %
              ("ok" if good else "not ok", number, label, compared,
               ", ".join("%s %d" % c for c in sorted(counts.items()))), flush=True)
    if not sys.argv[1:]:
        number += 1
        good = stops >= LEAST_STOPS
        failed += not good
        print("%s %d - %d stops, at least %d wanted" % ("ok" if good else "not ok", number, stops, LEAST_STOPS))
    print("# %d of %d identical" % (identical, stops))
    print("1..%d" % number)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
