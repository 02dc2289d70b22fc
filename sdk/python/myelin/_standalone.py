# SPDX-License-Identifier: Apache-2.0
"""A run that `init` makes outside of `myelin run`: a directory as every run has one (docs/run-directory.md),
locked while this process lives, with a journal of one task, master.0, which is this process.

Its end is written when Python exits. A process that is killed writes none: its lock is free then, and
the next `myelin` that looks at the run does it.
"""
import fcntl
import json
import os
import pwd
import shutil
import socket
import struct
import sys
import sysconfig
import threading
import time
import traceback
import uuid
from typing import Any, Dict, Optional, Set, Tuple

from ._plain import plain

TASK = "master.0"
F_OFD_SETLK = 37
ID_TRIES, ID_LAST = 10000, 999999999
ROOM = 32 * 1024  # for a journal, so that its end can be written on a full disk
REASON_MOST = 400
EXIT_INTERRUPTED = 130


class Journal:
    """events.jsonl: one JSON object a line, appended."""

    def __init__(self, path: str) -> None:
        self.started, self.seq = time.monotonic(), 0
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o666)
        _keep_room(self.fd)

    def add(self, event: str, **members: Any) -> None:
        self.seq += 1
        now = time.time_ns() // 1000
        line = {
            "seq": self.seq,
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000000)) + ".%06dZ" % (now % 1000000),
            "elapsed": round(time.monotonic() - self.started, 6),
            "event": event,
        }  # type: Dict[str, Any]
        line.update(members)
        os.write(self.fd, (json.dumps(plain(line), ensure_ascii=False, separators=(",", ":")) + "\n").encode())

    def sync(self) -> None:
        os.fdatasync(self.fd)


def _keep_room(fd: int) -> None:
    """Reserves without growing the file, which Python has no call for."""
    import ctypes

    keep_size = 1
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.fallocate(fd, keep_size, ctypes.c_longlong(0), ctypes.c_longlong(ROOM))
    except (OSError, AttributeError):
        pass  # a full disk may cost the end of the journal: nothing more


def home_of(given: Optional[str]) -> str:
    home = given or os.environ.get("MYELIN_HOME")
    if home:
        return os.path.abspath(home)
    user = os.environ.get("HOME")
    if not user:
        try:
            user = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            raise OSError("there is no home directory to keep runs in: set MYELIN_HOME") from None
    return os.path.join(os.path.abspath(user), ".myelin")


def make_directory(home: str) -> str:
    """The next free number of the home."""
    runs = os.path.join(home, "runs")
    if not os.path.isdir(home):
        os.makedirs(home, 0o700, exist_ok=True)
    if not os.path.isdir(runs):
        if os.stat(home).st_mode & 0o022 and os.stat(home).st_uid != os.geteuid():
            raise OSError("the home '%s' is shared and has no directory for runs: its owner makes it" % home)
        os.makedirs(runs, 0o700, exist_ok=True)
    runs = os.path.realpath(runs)
    _check_safe(home, runs)
    number = _id_before_next({int(name) for name in os.listdir(runs) if _is_id(name)}, _last_run(home))
    for _ in range(ID_TRIES):
        number += 1
        path = os.path.join(runs, str(number))
        try:
            os.mkdir(path)
            return path
        except FileExistsError:
            continue
    raise OSError("no run number is free in '%s'" % runs)


def _check_safe(home: str, runs: str) -> None:
    """No member of a shared home may be able to replace the runs of others: see home_check_safe in src/store/sharing.c."""
    outer, inner = os.stat(home), os.stat(runs)
    for path, mode in ((home, outer.st_mode), (runs, inner.st_mode)):
        if mode & 0o022 and not mode & 0o1000:
            raise OSError("'%s' is shared, and every member could replace what others have in it: `chmod +t` prevents that" % path)
    if (outer.st_mode | inner.st_mode) & 0o022 and inner.st_uid not in (0, outer.st_uid, os.geteuid()):
        raise OSError("'%s' is shared and belongs to a member, who could replace the runs of others: `chown root` prevents that" % runs)


def _id_before_next(ids: Set[int], last: int) -> int:
    """The highest number, unless none follows it: see rundir_id_before_next in src/store/rundir.h."""
    return max([number for number in ids | {last, 0} if number < ID_LAST and number + 1 not in ids])


def _last_run(home: str) -> int:
    """The highest number that was removed, as far as that is known."""
    try:
        fd = os.open(os.path.join(home, "last-run"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        text = os.read(fd, 16)
    except OSError:
        return 0
    finally:
        os.close(fd)
    return int(text) if len(text) == 10 and text[:9].isdigit() and text[9:] == b"\n" else 0


def _is_id(name: str) -> bool:
    return 0 < len(name) < 10 and name[0] in "123456789" and all(digit in "0123456789" for digit in name)


def take_lock(path: str) -> int:
    """A lock of the open file, not of the process: see src/store/owner.h."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(fd, F_OFD_SETLK, whole)
        os.write(fd, b"%d\n" % os.getpid())
    except OSError:
        os.close(fd)
        raise
    return fd


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def _login() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _command() -> str:
    """As it was typed, as far as the kernel knows."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return os.fsdecode(file.read(64 * 1024).rstrip(b"\0").replace(b"\0", b" "))
    except OSError:
        return " ".join(sys.argv)


class Standalone:
    """One such run. OSError where it cannot be made."""

    def __init__(self, name: Optional[str], home: Optional[str]) -> None:
        self.error = None  # type: Optional[BaseException]
        self.directory = directory = make_directory(home_of(home))
        self.id, self.uuid = os.path.basename(directory), uuid.uuid4().hex
        self.outputs = os.path.join(directory, "outputs")
        self.spool = os.path.join(directory, "spool", TASK)
        self.lock = None  # type: Optional[int]
        try:
            for path in (self.outputs, os.path.join(directory, "logs"), self.spool):
                os.makedirs(path)
            self.lock = take_lock(os.path.join(directory, "lock"))
            self.journal = Journal(os.path.join(directory, "events.jsonl"))
            self._write_start(name)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            if self.lock is not None:
                os.close(self.lock)
            raise
        self._enter_environment()
        self._watch()
        os.register_at_fork(after_in_child=self._leave_to_parent)

    def _write_start(self, name: Optional[str]) -> None:
        add = self.journal.add
        add("created", uuid=self.uuid, name=name, owner=_login(), host=socket.gethostname(), boot_id=_boot_id(),
            framework=None, command=_command(), directory=os.getcwd(), counts={"master": 1, "worker": 0, "ps": 0},
            made_by="init")
        add("status", status="starting")
        add("task", rank=0, status="running", pid=os.getpid())
        add("status", status="running")
        self.journal.sync()

    def _enter_environment(self) -> None:
        """Processes that this one starts, such as those of `multiprocessing`, belong to the run."""
        self.variables = {
            "MYELIN_SPOOL": self.spool,
            "MYELIN_RUN_ID": self.id,
            "MYELIN_RUN_UUID": self.uuid,
            "MYELIN_TASK": TASK,
            "MYELIN_RANK": "0",
            "MYELIN_WORLD_SIZE": "1",
            "MYELIN_OUTPUTS_PATH": self.outputs,
        }
        os.environ.update(self.variables)

    def _watch(self) -> None:
        """How Python ends is told to nobody at exit: the exception, and the status of sys.exit, are noted before."""
        self.former_hook, self.former_exit = sys.excepthook, sys.exit

        def hook(kind: Any, error: BaseException, trace: Any) -> None:
            self.error = error
            self.former_hook(kind, error, trace)

        def exit_(status: Any = None) -> Any:
            if threading.current_thread() is threading.main_thread():  # elsewhere it ends a thread
                self.error = SystemExit(status)
            self.former_exit(status)

        self.hook, self.exit = hook, exit_
        sys.excepthook, sys.exit = hook, exit_  # type: ignore

    def _unwatch(self) -> None:
        if sys.excepthook is self.hook:
            sys.excepthook = self.former_hook
        if sys.exit is self.exit:
            sys.exit = self.former_exit  # type: ignore

    def _leave_to_parent(self) -> None:
        """In the child of a fork: the run lives as long as its own process, not as long as a loader's."""
        if self.lock is not None:
            os.close(self.lock)
            os.close(self.journal.fd)
            self.lock = None

    def end(self, error: Optional[BaseException]) -> None:
        if self.lock is None:
            return
        self._unwatch()
        for variable, value in self.variables.items():
            if os.environ.get(variable) == value:
                del os.environ[variable]
        try:
            self._write_end(error)
        except OSError as problem:
            sys.stderr.write("myelin: the end of run %s could not be written: %s\n" % (self.id, problem))
        os.close(self.journal.fd)
        os.close(self.lock)
        self.lock = None

    def _write_end(self, error: Optional[BaseException]) -> None:
        add = self.journal.add
        state, code, members = end_of(error)
        add("task", rank=0, status=state, exit_code=code)
        add("status", status=state, exit_status=code, **members)
        self.journal.sync()


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def end_of(error: Optional[BaseException]) -> Tuple[str, int, Dict[str, Any]]:
    """The state, the exit code, and what else the last line of the journal says."""
    if error is None or (isinstance(error, SystemExit) and _exit_code(error) == 0):
        return "succeeded", 0, {}
    if isinstance(error, KeyboardInterrupt):
        return "stopped", EXIT_INTERRUPTED, {"reason": "it was interrupted"}
    if isinstance(error, SystemExit):
        text = ": %s" % error.code if isinstance(error.code, str) else ""
        reason = "%s exited with code %d%s" % (TASK, _exit_code(error), text)
        return "failed", _exit_code(error), {"reason": reason[:REASON_MOST], "first_failed": 0, "kind": "exit_code"}
    text = traceback.format_exception_only(type(error), error)[-1].strip()
    members = {"first_failed": 0, "kind": "python_exception"}  # type: Dict[str, Any]
    place = place_of(error)
    where = ""
    if place:
        members["place"] = "%s:%d" % place[:2]
        where = " (%s, line %d%s)" % (os.path.basename(place[0]), place[1],
                                      "" if place[2] == "<module>" else ", in " + place[2])
    members["reason"] = "%s raised %s%s" % (TASK, text[:REASON_MOST], where)
    return "failed", 1, members


def place_of(error: BaseException) -> Optional[Tuple[str, int, str]]:
    """The innermost frame of the user's own code."""
    own = os.path.dirname(os.path.abspath(__file__))
    foreign = [own] + [path for path in map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")) if path]
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        path = os.path.abspath(frame.filename)
        if not frame.filename.startswith("<") and not any(path.startswith(f + os.sep) for f in foreign):
            found = path, frame.lineno or 0, frame.name
    return found
