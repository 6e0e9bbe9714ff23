#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
From exec of "xprof record -p" to the start line, to the first run of its sampling program, and what the
whole takes beyond the duration asked for.

usage: startup.py [ROUNDS]     XPROF, WORKLOADS
"""
import os
import sys
import tempfile

import bench

DURATION = 0.5


def once(path, pid):
    w = bench.Watch([bench.XPROF, "record", "-F", "999", "-d", str(DURATION), "-o", path, "-p", str(pid)])
    return [1000 * x for x in (w.first_line - w.begin, w.first_run - w.begin, w.end - w.begin - DURATION)]


def main():
    bench.start()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as tmp, bench.Target(24) as pid:
        got = [once(os.path.join(tmp, "data"), pid) for _ in range(rounds)]
    print("ms after exec, median (range) of %d rounds" % rounds)
    for name, values in zip(("start line on stderr", "first sample taken", "whole, less the duration"),
                            zip(*got)):
        print("%-26s %s" % (name, bench.spread(values, "%.1f")))


if __name__ == "__main__":
    main()
