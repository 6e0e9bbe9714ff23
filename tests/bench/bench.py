# SPDX-License-Identifier: GPL-2.0-or-later
"""
What the benchmarks share: BPF run times by the kernel's own count, targets of known depth, statistics.

BPF statistics are switched on by a file descriptor (BPF_ENABLE_STATS), so nothing has to be restored; a
program's descriptor is held until its loader has ended, so the count is the whole run's.
"""
import ctypes
import glob
import os
import re
import statistics
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
XPROF = os.environ.get("XPROF", os.path.join(HERE, "../../build/xprof"))
WORKLOADS = os.environ.get("WORKLOADS", os.path.join(os.path.dirname(XPROF), "workloads"))
GLIBC_FRAMES = 3        # __libc_start_call_main, __libc_start_main, _start

# include/uapi/linux/bpf.h: commands, program type and the offsets in struct bpf_prog_info.
SYS_BPF = 321
PROG_GET_FD_BY_ID, OBJ_GET_INFO_BY_FD, ENABLE_STATS = 13, 15, 32
TYPE_PERF_EVENT = 7
INFO_SIZE, INFO_NAME, INFO_RUN_TIME, INFO_RUN_COUNT = 216, 64, 192, 200

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    """The system call; attr is changed in place. OSError when it fails."""
    result = libc.syscall(SYS_BPF, command, attr, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Program:
    """A loaded perf-event program, kept alive until close()."""

    def __init__(self, ident):
        self.ident = ident
        attr = ctypes.create_string_buffer(struct.pack("III", ident, 0, 0), 64)
        self.fd = bpf(PROG_GET_FD_BY_ID, attr)
        info = self.info()
        self.type = struct.unpack_from("I", info)[0]
        self.name = info[INFO_NAME:INFO_NAME + 16].split(b"\0")[0].decode()

    def info(self):
        data = ctypes.create_string_buffer(INFO_SIZE)
        attr = ctypes.create_string_buffer(struct.pack("IIQ", self.fd, INFO_SIZE, ctypes.addressof(data)), 64)
        bpf(OBJ_GET_INFO_BY_FD, attr)
        return data.raw

    def run(self):
        """Nanoseconds and number of runs."""
        return struct.unpack_from("QQ", self.info(), INFO_RUN_TIME)

    def close(self):
        os.close(self.fd)


def programs_of(pid):
    """Ids of the BPF programs that a process holds."""
    ids = set()
    for name in glob.glob("/proc/%d/fdinfo/*" % pid):
        try:
            with open(name) as f:
                ids.update(int(x) for x in re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M))
        except OSError:
            pass                # closed, or the process has ended
    return ids


class Watch:
    """
    Runs a command and counts what its perf-event programs cost, in nanoseconds and runs. first_run is the
    monotonic time at which one had run, output what the command printed.
    """

    def __init__(self, command):
        self.programs = {}
        self.first_run = None
        stats = bpf(ENABLE_STATS, ctypes.create_string_buffer(64))
        self.begin = time.monotonic()
        self.first_line = None
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        drain = threading.Thread(target=self.read_messages, args=(process.stderr,))
        drain.start()
        while process.poll() is None:
            self.look(process.pid)
            time.sleep(0.001 if self.first_run is None else 0.02)
        self.end = time.monotonic()
        drain.join()
        self.output = process.stdout.read()
        runs = [p.run() for p in self.programs.values() if p.type == TYPE_PERF_EVENT]
        self.time = sum(t for t, _ in runs)
        self.count = sum(n for _, n in runs)
        for p in self.programs.values():
            p.close()
        os.close(stats)
        if process.returncode:
            sys.exit("%s: status %d\n%s" % (" ".join(command), process.returncode, self.messages))

    def read_messages(self, stream):
        first = stream.readline()
        self.first_line = time.monotonic()
        self.messages = first + stream.read()

    def look(self, pid):
        for ident in programs_of(pid) - self.programs.keys():
            try:
                self.programs[ident] = Program(ident)
            except OSError:
                continue        # gone again: a feature probe
        if self.first_run is None and any(
                p.run()[1] for p in self.programs.values() if p.type == TYPE_PERF_EVENT):
            self.first_run = time.monotonic()


class Target:
    """Context: a process that stays at so many frames, start-up frames included."""

    def __init__(self, frames, seconds=3600):
        self.command = [os.path.join(WORKLOADS, "fixed"), str(frames - GLIBC_FRAMES), str(seconds)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        time.sleep(0.1)
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def count_samples(path):
    out = subprocess.run([XPROF, "report", "-i", path, "--folded"], capture_output=True, check=True).stdout
    return sum(int(line.rsplit(b" ", 1)[1]) for line in out.splitlines())


def record(path, *arguments):
    subprocess.run([XPROF, "record", "-q", "-o", path, *arguments], check=True, stdin=subprocess.DEVNULL)


def spread(values, form="%.0f"):
    """Median with the range."""
    return (form + " (" + form + ".." + form + ")") % (statistics.median(values), min(values), max(values))


def mean_interval(values):
    """Mean and half the width of its 95 % interval."""
    mean = statistics.fmean(values)
    return mean, 1.96 * statistics.stdev(values) / len(values) ** 0.5


def start():
    """Skips where nothing can be measured; builds the targets."""
    if not os.access(XPROF, os.X_OK):
        sys.exit("SKIP: no %s: build first" % XPROF)
    if os.geteuid() != 0:
        sys.exit("SKIP: sampling needs root")
    subprocess.run(["sh", os.path.join(HERE, "../e2e/build-workloads.sh"), WORKLOADS], check=True)
