#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a sample file by xprof-data(5) alone and prints folded stacks, internal frames included.

It shares nothing with xprof, so what both print alike is what the page says.
"""
import collections
import struct
import subprocess
import sys
import zlib


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def varints(data, at, n):
    values = []
    for _ in range(n):
        value, at = varint(data, at)
        values.append(value)
    return values, at


def chunks(file):
    at = number = 0
    while at < len(file):
        header = file[at:at + 24]
        magic, kind, codec, zero, found, raw, stored, crc = struct.unpack("<4sBBHIIII", header)
        payload = file[at + 24:at + 24 + stored]
        assert magic == bytes.fromhex("89587043") and zero == 0 and found == number
        assert len(payload) == stored <= 1048576 and raw <= 1048576
        assert zlib.crc32(header[:20] + payload) == crc
        if codec == 1:
            payload = subprocess.run(["zstd", "-dc"], input=payload, stdout=subprocess.PIPE,
                                     check=True).stdout
        assert len(payload) == raw
        yield chr(kind), payload
        at += 24 + stored
        number += 1


class Recording:
    def __init__(self):
        self.strings = [b""]
        self.files, self.frames, self.stacks, self.threads, self.samples = [], [], [], [], []
        self.meta, self.counters = {}, {}
        self.time = 0

    def record(self, data, at):
        tag = data[at]
        at += 1
        if tag == 1:
            length, at = varint(data, at)
            self.strings.append(data[at:at + length])
            return at + length
        if tag == 2:
            fields, at = varints(data, at, 2)
            self.files.append([self.strings[i] for i in fields])
        elif tag == 3:
            kind = data[at]
            fields, at = varints(data, at + 1, 6)
            self.frames.append((kind, self.strings[fields[1]]))
        elif tag == 4:
            (up, frame), at = varints(data, at, 2)
            self.stacks.append((len(self.stacks) - up if up else None, frame))
        elif tag == 5:
            (pid, tid, name), at = varints(data, at, 3)
            self.threads.append((pid, tid, self.strings[name]))
        elif tag in (6, 7):
            (key, value), at = varints(data, at, 2)
            if tag == 6:
                self.meta[self.strings[key]] = self.strings[value]
            else:
                self.counters[self.strings[key]] = value
        elif 128 <= tag <= 135:
            at = self.sample(tag, data, at)
        else:
            raise ValueError(f"tag {tag}")
        return at

    def sample(self, tag, data, at):
        (delta, thread, stack), at = varints(data, at, 3)
        self.time += -delta if tag & 4 else delta
        weight = 1
        if tag & 1:
            weight, at = varint(data, at)
        if tag & 2:
            at += 1
        self.samples.append((self.time, self.threads[thread], stack, weight))
        return at

    def read(self, file):
        kinds = ""
        for kind, payload in chunks(file):
            kinds += kind
            if kind == "H":
                assert payload == b"xprof-data\n" + struct.pack("<I", 1)
            elif kind == "D":
                at = 0
                while at < len(payload):
                    at = self.record(payload, at)
            else:
                totals, at = varints(payload, 0, 6)
                assert at == len(payload) and totals == [len(table) for table in (
                    self.strings, self.files, self.frames, self.stacks, self.threads, self.samples)]
        assert kinds[0] == "H" and kinds[-1] == "E" and set(kinds[1:-1]) <= {"D"}

    def folded(self):
        lines = collections.Counter()
        for _, (_, _, comm), stack, weight in self.samples:
            names = []
            while stack is not None:
                stack, frame = self.stacks[stack]
                names.append(self.frames[frame][1])
            lines[b";".join([comm.replace(b" ", b"_")] + names[::-1])] += weight
        return sorted(b"%s %d\n" % line for line in lines.items())


def main():
    recording = Recording()
    with open(sys.argv[1], "rb") as file:
        recording.read(file.read())
    sys.stdout.buffer.writelines(recording.folded())


main()
