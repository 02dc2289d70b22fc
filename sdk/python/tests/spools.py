# SPDX-License-Identifier: Apache-2.0
"""Reads spools for the tests, from what docs/spool.md says and nothing else."""
import collections
import json
import pathlib
import struct

HEADER = struct.Struct("<QIIQIIIIQqqQI52x")
FIELDS = ("magic version header_size size number pid attempt checksum nonce realtime_ns monotonic_ns dropped state")
Header = collections.namedtuple("Header", FIELDS)
Point = collections.namedtuple("Point", "name step value time_us pid")
Record = collections.namedtuple("Record", "kind members")
PREPARED, OPEN, SEALED, CLOSED = range(4)
KINDS = {3: "params", 4: "tags", 5: "summary", 6: "artifact"}
WORD = (1 << 64) - 1


def mix(h, word):
    h = (h ^ word) * 0x9E3779B97F4A7C15
    return (h ^ h >> 64) & WORD


def checksum(h, data):
    data += b"\0" * (-len(data) % 8)
    for (word,) in struct.iter_unpack("<Q", data):
        h = mix(h, word)
    return h & 0xFFFFFFFF


class Segment:
    def __init__(self, path, was_killed):
        self.path, self.data, self.was_killed = path, path.read_bytes(), was_killed
        self.header = Header(*HEADER.unpack_from(self.data))
        fixed = bytearray(self.data[:64])
        fixed[36:40] = b"\0\0\0\0"
        assert self.header.magic == int.from_bytes(b"myspool\0", "little")
        assert (self.header.version, self.header.header_size, self.header.size) == (2, 128, len(self.data))
        assert self.header.checksum == checksum(0, bytes(fixed))
        self.points, self.records = [], []
        self.read()

    def payloads(self):
        at = self.header.header_size
        while at + 8 <= len(self.data):
            (word,) = struct.unpack_from("<Q", self.data, at)
            if word == 0:
                break
            kind, length = word >> 56, word >> 32 & 0xFFFFFF
            payload = self.data[at + 8:at + 8 + length]
            seed = mix(self.header.nonce, at << 32 | word >> 32)
            assert word & 0xFFFFFFFF == checksum(seed, payload), "%s: a bad record at %d" % (self.path, at)
            yield kind, payload
            at += 8 + (length + 7) // 8 * 8
        # One that was killed may have left a payload whose word it could not write any more.
        assert self.was_killed or not self.data[at:].strip(b"\0"), "something follows the last record"

    def read(self):
        names, steps = {}, {}
        for kind, payload in self.payloads():
            if kind == 1:
                names[struct.unpack_from("<I", payload)[0]] = payload[4:].decode("utf-8")
            elif kind == 2:
                n, rest = divmod(len(payload) - 16, 12)
                assert rest == 0
                time_us, step, *fields = struct.unpack("<qq%dd%dI" % (n, n), payload)
                for value, number in zip(fields[:n], fields[n:]):
                    self.add(names[number], step, value, time_us)
                    steps[number] = step
            elif kind == 7:
                value, packed = struct.unpack("<dQ", payload)
                number = packed & 0xFFFF
                steps[number] += 1
                self.add(names[number], steps[number], value, self.header.realtime_ns // 1000 + (packed >> 16))
            else:
                self.records.append(Record(KINDS[kind], json.loads(payload[8:].decode("utf-8"))))

    def add(self, *fields):
        self.points.append(Point(*fields, self.header.pid))


class Spool:
    """All that a directory holds: its segments in their order, process by process. What a process that was killed
    had only begun to make has no header yet."""

    def __init__(self, directory, was_killed=False):
        paths = sorted(pathlib.Path(directory).glob("*.spool"))
        if was_killed:
            paths = [path for path in paths if path.read_bytes()[:128].strip(b"\0")]
        self.segments = [Segment(path, was_killed) for path in paths]
        self.points = [point for segment in self.segments for point in segment.points]
        self.records = [record for segment in self.segments for record in segment.records]

    def series(self, name):
        return [(point.step, point.value) for point in self.points if point.name == name]

    def members(self, kind):
        laid = {}
        for record in self.records:
            if record.kind == kind:
                laid.update(record.members)
        return laid
