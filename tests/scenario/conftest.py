# SPDX-License-Identifier: Apache-2.0
"""The stage on which scenarios play: the real program, a home of its own, nothing that can hang.

    MYELIN                   the program under test (default: build/myelin of this checkout)
    MYELIN_SCENARIO_SECONDS  what no single run of a scenario takes (default: 20)

Every process of a scenario carries its mark in the environment. The moment that `myelin run`
returns, none of them may be left.
"""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("MYELIN", ROOT / "build" / "myelin")).resolve()
MARK = "MYELIN_SCENARIO_MARK"
SECONDS = int(os.environ.get("MYELIN_SCENARIO_SECONDS", "20"))

# All that a scenario takes from outside, so that it plays the same everywhere.
INHERITED = ["HOME", "LANG", "TMPDIR", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"]

# Debian's interpreter: version managers put slow wrappers first in the PATH.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def pytest_configure(config):
    if not os.access(PROGRAM, os.X_OK):
        raise pytest.UsageError(f"no program at {PROGRAM}; build it, or set MYELIN")


class Ended:
    """What is left of a `myelin` that has ended: its exit status, its words, how long it took."""

    def __init__(self, status, out, err, seconds):
        self.status, self.out_bytes, self.err_bytes, self.seconds = status, out, err, seconds

    @property
    def out(self):
        return self.out_bytes.decode(errors="replace")

    @property
    def err(self):
        return self.err_bytes.decode(errors="replace")

    def lines_of(self, task):
        """What one task wrote, without the prefix."""
        pairs = (line.split("│", 1) for line in self.out.split("\n") if "│" in line)
        return [text[1:] for name, text in pairs if name.strip() == task]

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\n-- out:\n{self.out[-3000:]}\n-- err:\n{self.err[-3000:]}"


class Scenario:
    """One test's stage: files in its directory, and `myelin` started there."""

    def __init__(self, directory):
        self.directory = directory
        self.mark = uuid.uuid4().hex
        self.home = directory / "home"
        self.environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self.environment.update(
            {
                MARK: self.mark,
                "MYELIN_HOME": str(self.home),
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
        )

    # -- files

    def write(self, name, text):
        path = self.directory / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path

    def script(self, text, name="task.sh"):
        """A shell script, and the command that runs it without a shell in between."""
        return f"sh {self.write(name, text)}"

    def python(self, text, name="task.py"):
        return f"{PYTHON} {self.write(name, text)}"

    def job(self, cmd, framework=None, workers=0, ps=0, head="", topology="", name="job.yml"):
        """A polyaxonfile. `head` goes to its top level, `topology` into replicas."""
        lines = ["version: 1", "kind: experiment"]
        if framework:
            lines += [f"framework: {framework}", "environment:", "  replicas:", f"    n_workers: {workers}"]
            lines += [f"    n_ps: {ps}"] if ps else []
            lines += [f"    {line}" for line in topology.splitlines()]
        lines += textwrap.dedent(head).splitlines()
        if cmd is not None:
            lines += ["run:", "  cmd: |", *(f"    {line}" for line in cmd.splitlines())]
        return self.write(name, "\n".join(lines) + "\n")

    def wait_for(self, pattern, count=1, seconds=SECONDS):
        """Waits until files of that pattern exist, and gives them, sorted."""
        deadline = time.monotonic() + seconds
        while True:
            found = sorted(self.directory.glob(pattern))
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, f"{len(found)} of {count} files {pattern} after {seconds} s"
            time.sleep(0.01)

    # -- processes

    def start(self, *arguments, under=(), **options):
        """Starts `myelin`; `under` is a command that starts it in its turn."""
        options.setdefault("cwd", self.directory)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("env", self.environment)
        process = subprocess.Popen([*under, str(PROGRAM), *map(str, arguments)], **options)
        process.started = time.monotonic()
        return process

    def finish(self, process, seconds=SECONDS, outlived_by_s=0):
        """Waits for its end, and holds it to the law that nothing of it is left; `outlived_by_s` is for tasks that the kernel
        ends because their supervisor was killed: nobody waits for that."""
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            ended = Ended("still running", out or b"", err or b"", time.monotonic() - process.started)
            pytest.fail(f"not done after {seconds} s: {ended!r}")
        ended = Ended(process.returncode, out or b"", err or b"", time.monotonic() - process.started)
        deadline = time.monotonic() + outlived_by_s
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not left, f"processes were left: {left}\n{ended!r}"
        return ended

    def run(self, *arguments, seconds=SECONDS, **options):
        """`myelin run …`, to its end."""
        return self.finish(self.start("run", *arguments, **options), seconds)

    def left(self):
        """The processes that carry this scenario's mark: id -> command line."""
        needle = f"{MARK}={self.mark}".encode()
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/environ", "rb") as file:
                        if needle in file.read().split(b"\0"):
                            with open(f"/proc/{entry}/cmdline", "rb") as line:
                                found[int(entry)] = line.read().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue  # it has ended, or is another user's
        return found

    def clean(self):
        """Ends what is left, and tells it; a keeper that has told the end gets the moment that it takes to exit."""
        deadline = time.monotonic() + SECONDS / 10
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left


@pytest.fixture
def scenario(tmp_path):
    stage = Scenario(tmp_path)
    yield stage
    left = stage.clean()
    assert not left, f"processes were left: {left}"


def compile_logger(tmp_path_factory, text):
    """A C program that logs by libmyelin, where every user can run it."""
    where = tmp_path_factory.mktemp("logger")
    where.chmod(0o755)
    where.parent.chmod(0o755)
    (where / "log.c").write_text(text)
    sdk = pathlib.Path(__file__).resolve().parents[2] / "sdk" / "c"
    subprocess.run(
        ["cc", "-O1", "-I", sdk, "-o", where / "log", where / "log.c", sdk / "myelin.c", "-lm", "-lpthread"], check=True
    )
    return where / "log"


# -- processes


def keeper_of(scenario, run=1):
    """The process that the run's lock names, and its child: keeper and supervisor."""
    keeper = int((scenario.home / "runs" / str(run) / "lock").read_text())
    children = pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return keeper, int(children[0])


def state_of(pid):
    """As /proc has it in one letter; "X" where it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def lives(pid):
    """A process that nobody has reaped yet does not; one that is about to end may still have its locks."""
    return state_of(pid) not in "ZX"


def kill_both(scenario, run=1):
    """The supervisor and its keeper at one blow."""
    both = keeper_of(scenario, run)
    os.kill(both[0], signal.SIGSTOP)
    for pid in reversed(both):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while any(map(lives, both)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
