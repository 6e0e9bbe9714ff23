#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
How much longer a fixed piece of work takes while it is recorded: pairs with and without, in random order.

The work's CPU time is measured by the work itself; the time the clock shows is printed too, because a
kernel may book the sampling interrupt elsewhere. Beside it: BPF time per sample times the rate, which is
the part that can be known exactly.

usage: slowdown.py [PAIRS]     XPROF, WORKLOADS
"""
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import bench

FRAMES = 24
ITERATIONS = "250000000"
RATES = (99, 999)


def work(path, rate):
    """CPU and elapsed seconds of the work; recorded when rate is not 0."""
    command = [os.path.join(bench.WORKLOADS, "fixed"), str(FRAMES - bench.GLIBC_FRAMES), "loops", ITERATIONS]
    if rate:
        command = [bench.XPROF, "record", "-q", "-F", str(rate), "-o", path, "--"] + command
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(x) for x in re.search(r"truth cpu ([0-9.]+)\ntruth elapsed ([0-9.]+)", out).groups()]


def bpf_share(path, rate):
    with bench.Target(FRAMES) as pid:
        watch = bench.Watch([bench.XPROF, "record", "-q", "-o", path, "-F", str(rate), "-d", "2", "-p", str(pid)])
    per_sample = watch.time / max(bench.count_samples(path), 1)
    return per_sample, per_sample * rate / 1e7


def main():
    bench.start()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    random.seed(time.time_ns())
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "data")
        work(path, 0)
        for rate in RATES:
            slower = ([], [])
            for _ in range(pairs):
                order = [0, rate]
                random.shuffle(order)
                times = {r: work(path, r) for r in order}
                for kind in (0, 1):
                    slower[kind].append(100 * (times[rate][kind] / times[0][kind] - 1))
            for name, values in zip(("CPU time", "elapsed"), slower):
                print("%4d Hz, %d frames, %s: %+.2f %% +- %.2f (95 %%), median %+.2f %%, %d pairs" %
                      ((rate, FRAMES, name) + bench.mean_interval(values) +
                       (statistics.median(values), pairs)), flush=True)
            per_sample, share = bpf_share(path, rate)
            print("%4d Hz, %d frames, BPF alone: %.0f ns a sample = %.3f %%" % (rate, FRAMES, per_sample, share),
                  flush=True)


if __name__ == "__main__":
    main()
