# SPDX-License-Identifier: Apache-2.0
"""Commands that cannot hang: each has a session of its own, which is ended as a whole."""

import glob
import os
import signal
import subprocess
import tempfile
import threading
import time

LOOK_EVERY_S = 0.05
SHOWN_LAST_BYTES = 6000
# A status that no command of myelin has, so that no test takes a report for an expected error.
SANITIZER_STATUS = 99

_running, _lock, _closing = set(), threading.Lock(), threading.Event()


class Interrupted(Exception):
    """Somebody wants an end: no further command is started."""


def end_all():
    """Ends every command that runs now, and lets no other begin."""
    _closing.set()
    with _lock:
        for process in _running:
            kill_session(process)


def closing():
    return _closing.is_set()


def kill_session(process):
    """All that has the session of the process, even in other process groups."""
    for pid in [process.pid, *members(process.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def members(session):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                    if file.read().rpartition(")")[2].split()[3] == str(session):
                        found.append(int(entry))
            except (OSError, IndexError):
                continue
    return found


class Command:
    """One that runs. Its output goes through a file: a process that is left behind cannot hold up the end."""

    def __init__(self, command, shown=False, **options):
        self.output_file = tempfile.TemporaryFile()
        if not shown:
            options.update(stdout=self.output_file, stderr=subprocess.STDOUT)
        with _lock:
            if _closing.is_set():
                raise Interrupted
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
            _running.add(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            kill_session(self.process)
            self.process.wait()
        with _lock:
            _running.discard(self.process)
        self.output_file.close()

    def wait(self, overdue):
        """Its status; None where overdue() gave something true before it ended."""
        while True:
            try:
                return self.process.wait(LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                if overdue():
                    return None

    def output(self):
        self.output_file.seek(0)
        return self.output_file.read().decode(errors="replace")


def run(command, limit_s, **options):
    """Returns (status, output); the status is None where it took longer than limit_s() seconds, which may change meanwhile."""
    begun = time.monotonic()
    with Command(command, **options) as running:
        status = running.wait(lambda: time.monotonic() - begun > limit_s())
        output = running.output()
    if _closing.is_set() and status != 0:
        raise Interrupted
    return status, output


def last_of(text):
    return text if len(text) <= SHOWN_LAST_BYTES else "[…]\n" + text[-SHOWN_LAST_BYTES:]


class Sanitizers:
    """Makes the sanitizers write into files, so that a report counts even if a test ignores the status of the program."""

    def __init__(self, directory):
        self.prefix = os.path.join(directory, "report")

    def environment(self):
        common = f"exitcode={SANITIZER_STATUS}:log_path={self.prefix}"
        return {"ASAN_OPTIONS": f"detect_leaks=1:detect_stack_use_after_return=1:{common}",
                "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:{common}"}

    def take(self):
        """The reports that came since the last call."""
        found = []
        for path in sorted(glob.glob(self.prefix + ".*")):
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read())
            os.unlink(path)
        return found
