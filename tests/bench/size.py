#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Bytes per sample: in the ring buffer, by the sizes in bpf/abi.h, and in the sample file, at several depths.

Two programs: one whose stack never changes, the best case for the file, and one whose stack changes shape
all the time.

usage: size.py     XPROF, WORKLOADS, CC
"""
import os
import subprocess
import tempfile

import bench

ROOT = os.path.join(bench.HERE, "../..")
SIZES = """#include <stdio.h>
#include "bpf/abi.h"
int main(void)
{
	printf("%zu %zu\\n", sizeof(struct xp_raw_sample), sizeof(struct xp_raw_frame));
}
"""


def abi_sizes(work):
    """Bytes of a sample's header and of one native frame in the ring."""
    program = os.path.join(work, "sizes")
    subprocess.run([os.environ.get("CC", "gcc"), "-x", "c", "-I", ROOT, "-o", program, "-"], input=SIZES,
                   text=True, check=True)
    return [int(x) for x in subprocess.run([program], capture_output=True, check=True).stdout.split()]


def file_size(path, pid):
    bench.record(path, "-F", "999", "-d", "2", "-p", str(pid))
    samples = bench.count_samples(path)
    return os.path.getsize(path), samples


def main():
    bench.start()
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "data")
        header, frame = abi_sizes(work)
        print("ring: %d bytes a sample and %d a native frame" % (header, frame))
        print("%-28s %8s %10s %10s %12s" % ("program", "samples", "ring B", "file B", "file B/sample"))
        for depth in (8, 24, 96, 240):
            with bench.Target(depth) as pid:
                size, samples = file_size(path, pid)
            print("%-28s %8d %10d %10d %12.1f" %
                  ("fixed, %d frames" % depth, samples, header + depth * frame, size, size / samples))
        command = [os.path.join(bench.WORKLOADS, "shapes-gcc-O2"), "mixed", "qsort", "40"]
        target = subprocess.Popen(command)
        size, samples = file_size(path, target.pid)
        target.kill()
        target.wait()
        print("%-28s %8d %10s %10d %12.1f" % ("shapes, mixed, qsort", samples, "", size, size / samples))


if __name__ == "__main__":
    main()
