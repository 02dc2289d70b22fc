# SPDX-License-Identifier: Apache-2.0
"""The spool of a process in Python alone: what `_native.c` is with libmyelin, where that could not be
compiled. The same type with the same methods, the same files (docs/spool.md), the same promises; a
call takes some microseconds instead of a fraction of one.

The word that makes a record valid is stored through a view of native 64-bit integers, which is one
store of the processor; `struct.pack_into` would write it byte by byte, and a reader could see half.
"""
import errno
import fcntl
import mmap
import os
import resource
import struct
import sys
import threading
import time
import warnings
import weakref
from typing import Any, Dict, List, Mapping, Optional, Tuple

MAGIC = 0x006C6F6F7073796D
MIXER = 0x9E3779B97F4A7C15
VERSION = 2
HEADER = 128
FIXED = 64  # of the header: what its checksum covers
PREPARED, OPEN, SEALED, CLOSED = range(4)
NAME, POINTS, NEXT = 1, 2, 7
KINDS = range(3, 7)

NAME_MAX, NAMES_MAX, RECORD_MAX = 255, 65536, 1 << 20
PAGE = 4096
SEGMENT_FIRST, SEGMENT_MOST, SEGMENT_GROWTH = 64 << 10, 1 << 20, 4
SEGMENT_LEAST = PAGE  # on a disk without room for more: its header has the count
SEGMENTS_DEFAULT = 1024
LOG_AT_ONCE = 256
PATIENCE_S = 0.25
RETRY_FIRST_S, RETRY_MOST_S = 0.01, 1.0
NEXT_SPAN = 1 << 48
STEP_MIN, STEP_MAX = -(1 << 63) + 1, (1 << 63) - 1
WARNINGS_MOST = 100
WORD = (1 << 64) - 1

HEADER_FORM = struct.Struct("<QIIQIIIIQqqQI52x")
STATE_AT, DROPPED_AT = 72, 64
MADV_POPULATE_WRITE = 23

REASONS = {
    "EINVAL": "this is not a run of myelin: MYELIN_SPOOL is not set",
    "ENAMETOOLONG": "the path in MYELIN_SPOOL is too long",
    "ENOSPC": "the disk of the spool is full",
    "EDQUOT": "the quota of the user is used up",
    "EROFS": "the spool cannot be written: its file system is read-only",
    "EACCES": "the spool cannot be written: permission denied",
    "EPERM": "the spool cannot be written: permission denied",
    "ENOENT": "the spool is gone",
    "ENOTDIR": "the spool is not a directory",
    "EFBIG": "the limit on file sizes (ulimit -f) leaves no room for a segment",
    "EMFILE": "the process has too many open files",
    "ENFILE": "the machine has too many open files",
    "EIO": "the disk of the spool fails",
    "BOUND": "too much waits to be folded: the supervisor does not keep up or is gone",
}


def mix(h: int, word: int) -> int:
    h = (h ^ word) * MIXER
    return (h ^ h >> 64) & WORD


def checksum(seed: int, payload: bytes) -> int:
    h = seed
    for word in struct.unpack("<%dQ" % ((len(payload) + 7) // 8), payload + b"\0" * (-len(payload) % 8)):
        h = (h ^ word) * MIXER
        h = (h ^ h >> 64) & WORD
    return h & 0xFFFFFFFF


def hash_of(text: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in text:
        h = ((h ^ byte) * 0x100000001B3) & WORD
    return h


def room_for(length: int) -> int:
    return 8 + ((length + 7) & ~7)


def clean_name(name: str) -> bytes:
    """As it is kept: a long one ends in '~' and the hash of all its bytes, so that two which begin alike stay two."""
    raw = name.encode("utf-8", "replace")
    most = NAME_MAX - 17 if len(raw) > NAME_MAX else NAME_MAX
    text = bytes(0x3F if byte < 0x20 or byte == 0x7F else byte for byte in raw)
    if len(raw) <= NAME_MAX:
        return text
    while (text[most] & 0xC0) == 0x80:
        most -= 1
    return text[:most] + b"~%016x" % hash_of(raw)


def number_from_environment(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() and int(text) < 1 << 32 else otherwise


class _Name:
    __slots__ = ("number", "text", "room", "defined", "auto_step", "written")

    def __init__(self, number: int, text: bytes) -> None:
        self.number, self.text = number, text
        self.room = room_for(4 + len(text))
        self.defined = 0  # the nonce of the segment that has its NAME record
        self.auto_step = 0
        self.written = 0  # the last step in that segment


class _Segment:
    """A file that is allocated, locked, mapped and touched before it is needed."""

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        try:
            os.posix_fallocate(self.fd, 0, size)
            try:
                # Of this process alone: a child does not hold it, exec and every death end it.
                fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                pass  # where there are no locks, the process number has to do
            self.map = mmap.mmap(self.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            self.touch()
        except (OSError, ValueError):
            os.unlink(path)
            os.close(self.fd)
            raise
        status = os.fstat(self.fd)
        self.identity = status.st_dev, status.st_ino
        self.words = memoryview(self.map).cast("Q")
        self.nonce = self.epoch_us = 0

    def touch(self) -> None:
        """A page that the disk has no room for is an error here, not a signal later."""
        if not hasattr(self.map, "madvise"):
            os.pwrite(self.fd, b"\0" * self.size, 0)  # Python 3.7
            return
        try:
            self.map.madvise(MADV_POPULATE_WRITE)
        except OSError as error:
            if error.errno == errno.EFAULT:  # the disk failed, or had no room for a page
                raise OSError(errno.EIO, os.strerror(errno.EIO)) from None
            # others: an older kernel, which does without

    def release(self) -> None:
        """Also in the child of a fork, whose copy of the mapping it is then: the parent's stays."""
        self.words.release()
        # A program may have closed our descriptors, and got their numbers for files of its own. The mapping has
        # one too, which cannot be asked for: where ours is gone it is left alone for good.
        try:
            status = os.fstat(self.fd)
            is_ours = (status.st_dev, status.st_ino) == self.identity
        except OSError:
            is_ours = False
        if is_ours:
            self.map.close()
            os.close(self.fd)
        else:
            _abandoned.append(self.map)


class Spool:
    """Where a process logs: Spool(directory=None, attempt=0)."""

    __slots__ = (
        "_directory", "_attempt", "_most", "_names", "_by_text", "_failure", "_lock", "_busy", "_stuck", "_current",
        "_next", "_at", "_prepare_at", "_dropped", "_told", "_pid", "_started", "_number", "_oldest", "_retry",
        "_pause", "_count_due", "_warned", "_open", "__weakref__",
    )

    def __init__(self, directory: Optional[Any] = None, attempt: int = 0) -> None:
        self._attempt = attempt
        self._most = number_from_environment("MYELIN_SPOOL_SEGMENTS", SEGMENTS_DEFAULT)
        self._names = {}  # type: Dict[str, _Name]
        self._by_text = {}  # type: Dict[bytes, _Name]
        self._warned = set()  # type: set
        self._failure = None  # type: Optional[str]
        self._directory = os.path.abspath(os.fsdecode(directory)) if directory else ""
        if not self._directory:
            self._failure = "EINVAL"
        elif len(os.fsencode(self._directory)) >= 3800:
            self._failure, self._directory = "ENAMETOOLONG", ""
        self._open = True
        self._begin()
        _spools.add(self)

    def _begin(self) -> None:
        """What belongs to one process: at first, and again in the child of a fork."""
        self._lock = threading.RLock()
        self._busy = self._stuck = False
        self._current = None  # type: Optional[_Segment]
        self._next = None  # type: Optional[_Segment]
        self._at = self._prepare_at = 0
        self._dropped = self._told = 0
        self._pid = self._started = self._number = self._oldest = 0
        self._retry = self._pause = 0.0
        self._count_due = False  # a try has failed since the count was written

    def _forked(self) -> None:
        for segment in (self._current, self._next):
            if segment is not None:
                segment.release()
        self._begin()

    # ---- the lock: nothing waits for long, and a handler cannot wait for the call that it interrupts

    def _take(self) -> bool:
        """A handler finds the lock to be its own thread's, and `_busy` when a record is being written; before
        and after that its own goes first, or next."""
        if not self._lock.acquire(False):
            if self._stuck or not self._lock.acquire(True, PATIENCE_S):
                self._stuck = True
                return False
        if self._busy:
            self._lock.release()
            return False
        self._busy = True
        return True

    def _give(self) -> None:
        if self._dropped != self._told and self._current is not None:
            self._current.words[DROPPED_AT // 8] = self._told = self._dropped
        elif self._dropped != self._told and self._count_due:
            self._count_due = False
            self._write_count()
        self._stuck = self._busy = False
        self._lock.release()

    # ---- the count of a process that has no segment yet: a link whose target is the number. It takes no block of
    # the disk, and it lies beside the folder of the task, which may not exist.

    def _count_path(self) -> str:
        return "%s.dropped-%d-%x" % (self._directory, self._pid, self._started)

    def _write_count(self) -> None:
        if self._current is not None or self._dropped == self._told or not self._directory:
            return
        if not self._started:
            self._pid, self._started = os.getpid(), time.time_ns()
        try:
            os.symlink("%d" % self._dropped, self._count_path() + ".part")
            os.rename(self._count_path() + ".part", self._count_path())
            self._told = self._dropped
        except OSError:
            pass

    # ---- segments

    def _path(self, number: int) -> str:
        return "%s/%d-%x-%06d.spool" % (self._directory, self._pid, self._started, number)

    def _is_bound_reached(self, number: int) -> bool:
        while self._oldest < number and not os.path.lexists(self._path(self._oldest)):
            self._oldest += 1
        return number - self._oldest >= self._most

    def _make_sized(self, number: int, size: int) -> None:
        while True:
            try:
                made = _Segment(self._path(number), size)
                break
            except FileExistsError:
                if number:
                    raise
                self._started += 1  # another handle of this process began in the same nanosecond
            except FileNotFoundError:
                if number:
                    raise
                os.mkdir(self._directory, 0o755)  # made by the first process of a task that logs
        nonce = (((self._started ^ (self._pid << 40)) & WORD) + number) * MIXER & WORD
        nonce ^= nonce >> 29
        made.nonce = nonce or 1
        realtime = time.time_ns()
        made.epoch_us = realtime // 1000
        fields = [MAGIC, VERSION, HEADER, size, number, self._pid, self._attempt, 0, made.nonce, realtime,
                  time.clock_gettime_ns(time.CLOCK_MONOTONIC), 0, PREPARED]
        fields[7] = checksum(0, HEADER_FORM.pack(*fields)[:FIXED])
        made.map[:HEADER] = HEADER_FORM.pack(*fields)
        self._next = made

    def _make(self, number: int, room: int) -> bool:
        """Makes the next segment, with room for a record of this size. Fails at once while a failure is fresh."""
        now = time.monotonic()
        if now < self._retry:
            return False
        need = (HEADER + room + PAGE - 1) & ~(PAGE - 1)
        size = max(need, min(SEGMENT_MOST, SEGMENT_FIRST * SEGMENT_GROWTH ** min(number, 8)))
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if limit != resource.RLIM_INFINITY and limit < size:
            size = limit & ~(PAGE - 1)
        self._failure = self._try_make(number, size, need)
        if self._failure is None:
            self._retry = self._pause = 0.0
            return True
        self._pause = min(self._pause * 2, RETRY_MOST_S) if self._pause else RETRY_FIRST_S
        self._retry = now + self._pause
        self._count_due = True
        return False

    def _try_make(self, number: int, size: int, need: int) -> Optional[str]:
        if size < need:
            return "EFBIG"
        if self._is_bound_reached(number):
            return "BOUND"
        sizes = [size] + ([SEGMENT_FIRST] if size > SEGMENT_FIRST >= need else [])
        # The first one also counts what is dropped. Later ones leave the rest of the disk to the supervisor,
        # which frees segments only if it can write.
        if self._current is None and need <= SEGMENT_LEAST < size:
            sizes.append(SEGMENT_LEAST)
        failure = None  # type: Optional[str]
        for size in sizes:
            try:
                self._make_sized(number, size)
                return None
            except OSError as error:
                failure = errno.errorcode.get(error.errno or 0, "EIO")
                if failure != "ENOSPC":
                    break
            except (ValueError, MemoryError):
                failure = "EIO"
                break
        return failure

    def _discard_next(self) -> None:
        if self._next is not None:
            path = self._next.path
            self._next.release()
            self._next = None
            try:
                os.unlink(path)
            except OSError:
                pass

    def _end_current(self, state: int) -> None:
        if self._current is not None:
            self._current.words[DROPPED_AT // 8] = self._dropped
            self._current.words[STATE_AT // 8] = state
            self._current.release()
            self._current = None

    def _rotate(self, room: int) -> bool:
        number = self._number + 1 if self._current is not None else self._number
        if not self._started:
            self._pid, self._started = os.getpid(), time.time_ns()
        if self._next is not None and HEADER + room > self._next.size:
            self._discard_next()
        if self._next is None and not self._make(number, room):
            return False
        self._end_current(SEALED)
        had_count = number == 0 and self._told > 0
        self._current, self._next = self._next, None
        assert self._current is not None
        self._number, self._at, self._prepare_at = number, HEADER, self._current.size // 2
        self._current.words[DROPPED_AT // 8] = self._told = self._dropped
        self._current.words[STATE_AT // 8] = OPEN
        if had_count:
            try:
                os.unlink(self._count_path())  # the header has the count from now on
            except OSError:
                pass
        return True

    # ---- records, under the lock

    def _commit(self, segment: _Segment, kind: int, payload: bytes) -> None:
        """The payload first; the word that makes it valid comes last."""
        at, head = self._at, kind << 24 | len(payload)
        segment.map[at + 8:at + 8 + len(payload)] = payload
        segment.words[at >> 3] = head << 32 | checksum(mix(segment.nonce, at << 32 | head), payload)
        self._at = at + room_for(len(payload))

    def _write_next(self, segment: _Segment, name: _Name, value: float, step: Optional[int], time_us: int) -> bool:
        """One point that is what a reader expects next of its name takes 24 bytes instead of 40."""
        since = time_us - segment.epoch_us
        if name.defined != segment.nonce or not 0 <= since < NEXT_SPAN or self._at + 24 > segment.size:
            return False
        if step is None:
            step = name.auto_step
        if step - 1 != name.written:
            return False
        self._commit(segment, NEXT, struct.pack("<dQ", value, since << 16 | name.number))
        name.written = step
        name.auto_step = min(step + 1, STEP_MAX)
        return True

    def _write_points(self, points: List[Tuple[_Name, float]], step: Optional[int], time_us: int) -> bool:
        nonce = self._current.nonce if self._current is not None else 0
        n = len(points)
        fresh = room = room_for(16 + 12 * n)
        for name, _ in points:
            fresh += name.room
            room += 0 if name.defined == nonce else name.room
        if step is None:
            step = max(name.auto_step for name, _ in points)
        for name, _ in points:
            name.auto_step = min(step + 1, STEP_MAX)
        if (self._current is None or self._at + room > self._current.size) and not self._rotate(fresh):
            return False
        segment = self._current
        assert segment is not None
        for name, _ in points:
            if name.defined != segment.nonce:
                self._commit(segment, NAME, struct.pack("<I", name.number) + name.text)
                name.defined = segment.nonce
            name.written = step
        self._commit(segment, POINTS, struct.pack("<qq%dd%dI" % (n, n), time_us, step, *(
            [value for _, value in points] + [name.number for name, _ in points])))
        return True

    def _write(self, points: List[Tuple[_Name, float]], step: Optional[int], time_us: int) -> bool:
        segment = self._current
        written = (segment is not None and len(points) == 1
                   and self._write_next(segment, points[0][0], points[0][1], step, time_us)
                   ) or self._write_points(points, step, time_us)
        if self._at >= self._prepare_at and self._next is None and self._current is not None:
            self._make(self._number + 1, 0)  # a failure counts only when the current one is full
        return written

    # ---- what a call is given

    def _name(self, name: str) -> Optional[_Name]:
        known = self._names.get(name)
        if known is None and name:
            text = clean_name(name)
            known = self._by_text.get(text)
            if known is None:
                if len(self._by_text) >= NAMES_MAX:
                    return None
                known = self._by_text[text] = _Name(len(self._by_text), text)
            self._names[name] = known
        return known

    def _number_from(self, name: str, value: Any) -> Optional[float]:
        try:
            if isinstance(value, (str, bytes, bytearray)):
                raise TypeError("must be real number, not " + type(value).__name__)
            return float(value)
        except Exception as error:  # it is data, and must not end a training
            if name not in self._warned and len(self._warned) < WARNINGS_MOST:
                self._warned.add(name)
                warnings.warn("the value of '%s' is not a number (%s): it is not kept (%s)"
                              % (name, type(value).__name__, error), RuntimeWarning, stacklevel=3)
            return None

    def log(*args: Any, **metrics: Any) -> None:
        """Logs numbers under their names: run.log(loss=0.3, step=7), or run.log({'val/loss': 0.3}).

        Without a step each name counts its own, from 0. What was logged is kept even if the process
        is killed the moment this returns. A value that is not a number is not kept, counted in
        `dropped`, and told once by a RuntimeWarning."""
        self = args[0]  # not a parameter: `self` may be the name of a metric
        if len(args) > 2:
            raise TypeError("log() takes one dictionary, and metrics as keywords (%d arguments were given)"
                            % (len(args) - 1))
        step = _step(metrics.pop("step", None))
        given = list(metrics.items())
        if len(args) == 2:
            given = _pairs(args[1]) + given
        if not self._open or not self._directory:
            return
        points, lost = [], 0
        for name, value in given:
            number = value if type(value) is float else self._number_from(name, value)
            if number is None:
                lost += 1
            else:
                points.append((name, number))
        time_us = time.time_ns() // 1000
        if not self._take():
            self._dropped += lost + len(points)
            return
        try:
            self._dropped += lost
            self._log(points, step, time_us)
        finally:
            self._give()

    def _log(self, points: List[Tuple[str, float]], step: Optional[int], time_us: int) -> None:
        known = []
        for name, value in points:
            found = self._name(name)
            if found is None:
                self._dropped += 1
            else:
                known.append((found, value))
        for i in range(0, len(known), LOG_AT_ONCE):
            some = known[i:i + LOG_AT_ONCE]
            if not self._write(some, step, time_us):
                self._dropped += len(some)

    def _record(self, kind: int, json: bytes) -> bool:
        """Keeps a JSON object; whether it was kept."""
        if not self._open or not self._directory:
            return False
        payload = struct.pack("<q", time.time_ns() // 1000) + json
        kept = False
        if not self._take():
            self._dropped += 1
            return False
        try:
            room = room_for(len(payload))
            if kind in KINDS and len(json) <= RECORD_MAX and (
                    (self._current is not None and self._at + room <= self._current.size) or self._rotate(room)):
                assert self._current is not None
                self._commit(self._current, kind, payload)
                kept = True
            else:
                self._dropped += 1
        finally:
            self._give()
        return kept

    def _close(self) -> None:
        """Ends the chain of this process. Later calls do nothing."""
        if self._open:
            self._open = False
            self._write_count()
            self._discard_next()
            self._end_current(CLOSED)

    @property
    def dropped(self) -> int:
        """How many points this process could not keep."""
        return self._dropped

    @property
    def reason(self) -> Optional[str]:
        """Why nothing is kept at present, or None."""
        if self._failure is None or not self._open:
            return None
        return REASONS.get(self._failure, "the spool cannot be written")


def _step(given: Any) -> Optional[int]:
    if given is None:
        return None
    if not hasattr(type(given), "__index__"):
        raise TypeError("'%s' object cannot be interpreted as an integer" % type(given).__name__)
    step = given.__index__()
    if not STEP_MIN <= step <= STEP_MAX:
        raise OverflowError("the step does not fit into 64 bits")
    return int(step)


def _pairs(metrics: Mapping[str, Any]) -> List[Tuple[str, Any]]:
    if not hasattr(metrics, "keys"):
        raise TypeError("log() takes metrics as keywords, or as a dictionary, not %s" % type(metrics).__name__)
    pairs = list(dict(metrics).items())
    for name, _ in pairs:
        if not isinstance(name, str):
            raise TypeError("the name of a metric is a text, not %s" % type(name).__name__)
    return pairs


_abandoned = []  # type: List[mmap.mmap]
_spools = weakref.WeakSet()  # type: weakref.WeakSet


def _in_child() -> None:
    for spool in list(_spools):
        spool._forked()


if sys.byteorder != "little":
    raise ImportError("the spool is little-endian")
os.register_at_fork(after_in_child=_in_child)
