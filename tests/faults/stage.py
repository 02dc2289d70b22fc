# SPDX-License-Identifier: Apache-2.0
"""What every injected fault is played on: a run that logs points and lines, and the laws that hold whatever happens to it."""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scenario"))

from conftest import MARK, SECONDS, Scenario, keeper_of  # noqa: E402

FINAL = ("succeeded", "failed", "stopped")
POINTS = 300
TASKS = ("master.0", "worker.0")
# By a signal, of a sanitizer, by an assertion: how a program ends that has a fault of its own.
CRASHES = (99, 128 + signal.SIGABRT, 128 + signal.SIGSEGV, 128 + signal.SIGBUS)

TRAINING = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "myelin.h"

/* Logs so many points of "loss"; after each it says so, in the file progress-<task> first, then in a line. */
int main(int argc, char **argv) {
    const int n = atoi(argv[1]);
    struct myelin *m = myelin_open();
    const uint32_t name = myelin_name(m, "loss");
    char path[100];
    int progress;

    snprintf(path, sizeof path, "progress-%s", getenv("MYELIN_TASK"));
    progress = open(path, O_WRONLY | O_CREAT, 0644);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < n; i++) {
        const double value = i;

        myelin_log(m, &name, &value, 1, i, MYELIN_NOW);
        snprintf(path, sizeof path, "%8d", i + 1);
        if (pwrite(progress, path, 8, 0) != 8)
            return 1;
        printf("line %d\n", i);
        usleep(1000);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


def compile_training(directory):
    (directory / "train.c").write_text(TRAINING)
    sdk = ROOT / "sdk/c"
    subprocess.run(["cc", "-O1", "-I", sdk, "-o", directory / "train", directory / "train.c", sdk / "myelin.c", "-lm",
                    "-lpthread"], check=True)
    return directory / "train"


class Broken(AssertionError):
    """A law does not hold."""


def law(holds, text):
    if not holds:
        raise Broken(text)


class Stage(Scenario):
    """One home, in which one fault happens."""

    def __init__(self, directory, training):
        super().__init__(directory)
        self.training = training
        self.measured = collections.Counter()

    # -- commands

    def say(self, *arguments, under=(), status=None, may_end_by=()):
        """A command to its end; it may refuse, but neither hang nor crash, unless a signal is expected."""
        process = self.start(*arguments, under=under, start_new_session=True)
        return self.ended(process, arguments, status, may_end_by)

    def ended(self, process, arguments, status=None, may_end_by=()):
        try:
            out, err = process.communicate(timeout=3 * SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            raise Broken(f"myelin {' '.join(map(str, arguments))} hangs; it said {err.decode(errors='replace')[-1000:]}") from None
        code, text = process.returncode, err.decode(errors="replace")
        law((code >= 0 and code not in CRASHES) or code in may_end_by, f"myelin {' '.join(map(str, arguments))} ended with {code}: {text[-2000:]}")
        law(status is None or code == status, f"myelin {' '.join(map(str, arguments))} ended with {code}, not {status}: {text[-2000:]}")
        return code, out.decode(errors="replace"), text

    def gang(self, points=POINTS, memory=None):
        """With a limit of memory it has control groups, where the machine allows them."""
        given = f"resources:\n  memory: {{requests: 0, limits: {memory}}}\n"
        topology = "default_worker:\n" + textwrap.indent(given, "  ") if memory else ""
        job = self.job(f"{self.training} {points}", framework="pytorch", workers=1, topology=topology)
        if memory:
            job.write_text(job.read_text().replace("environment:\n", "environment:\n" + textwrap.indent(given, "  ")))
        return job

    def finished_run(self):
        """A run that was good."""
        self.say("run", self.gang(60), status=0)

    # -- laws

    def status(self, run=1):
        _, out, _ = self.say("status", str(run), "--json", status=0)
        return json.loads(out)

    def log_lines(self, task, run=1):
        path = self.home / "runs" / str(run) / "logs" / f"{task}.log"
        if path.is_symlink() or not path.is_file():  # a FIFO would wait for a writer
            return []
        return path.read_text().splitlines(keepends=True)

    def points(self, run=1):
        _, out, _ = self.say("metrics", str(run), "--json", status=0)
        return {entry["task"]: entry["count"] for entry in json.loads(out) if entry["name"] == "loss"}

    def progress(self, task):
        """How many points the task has logged, by its own word, which needs no other process."""
        try:
            return int((self.directory / f"progress-{task}").read_text())
        except (OSError, ValueError):
            return 0

    def final_status(self, run=1):
        deadline = time.monotonic() + SECONDS
        # A process that is being killed has its lock for another moment, and a run that never began is new for some seconds.
        while (status := self.status(run))["status"] not in FINAL and time.monotonic() < deadline:
            time.sleep(0.05)
        law(status["status"] in FINAL, f"run {run} is {status['status']}")
        return status

    def hold_run(self, points=POINTS, run=1):
        """The state is final and true, and no point and no line is lost between those that are there."""
        status = self.final_status(run)
        counted = self.points(run)
        for task in TASKS:
            lines = self.log_lines(task, run)
            whole = [line for line in lines if line.endswith("\n")]
            law(whole == [f"line {i}\n" for i in range(len(whole))], f"the log of {task} has a gap")
            logged = self.progress(task)
            law(len(whole) <= logged <= counted.get(task, 0) <= logged + 1,
                f"{task} logged {logged} points, {counted.get(task, 0)} are there, and {len(whole)} lines")
            law(status["status"] != "succeeded" or (len(whole) == points and counted[task] == points),
                f"the run succeeded, but of {task} {len(whole)} lines and {counted.get(task)} points of {points} are there")
        self.measure(run)
        return status

    def measure(self, run=1):
        """Adds what the tasks logged by their own word, and how much of it can be read."""
        counted = self.points(run)
        for task in TASKS:
            logged = self.progress(task)
            lines = [line for line in self.log_lines(task, run) if line.endswith("\n")]
            self.measured["logged"] += logged
            self.measured["lost points"] += max(0, logged - counted.get(task, 0))
            self.measured["lost lines"] += max(0, logged - len(lines))

    def hold_nothing_left(self):
        """No process and no control group."""
        deadline = time.monotonic() + SECONDS
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.measured["looks"] += 1
        self.measured["left processes"] += len(left)
        law(not left, f"processes are left: {left}")
        names = {f"myelin-{uuid}" for uuid in self.uuids()}
        groups = [os.path.join(above, name) for above, below, _ in os.walk("/sys/fs/cgroup") for name in names & {*below}]
        self.measured["left groups"] += len(groups)
        law(not groups, f"control groups are left: {groups}")

    def uuids(self):
        for journal in self.home.glob("runs/*/events.jsonl"):
            if not journal.is_file() or journal.is_symlink():
                continue
            match = re.search(r'"uuid":\s*"([0-9a-f-]{20,})"', journal.read_text(errors="replace")[:65536])
            if match:
                yield match.group(1)

    def hold_next(self):
        """The home works on: a list, and a new run to its end."""
        self.say("ps", "-a", status=0)
        self.say("run", self.job("echo next", name="next.yml"), status=0)

    def started_gang(self, chance):
        """A run that has begun, and the process that follows it; one of two has control groups."""
        process = self.start("run", self.gang(memory=chance.choice([None, 64])), start_new_session=True)
        self.wait_for("home/runs/1/lock", seconds=SECONDS)
        return process

    def keeper_and_supervisor(self):
        """Of run 1; waits until both are there."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                return keeper_of(self)
            except (OSError, ValueError, IndexError):
                time.sleep(0.002)
        raise Broken("run 1 has no supervisor")

    def end(self):
        """Ends what a broken law has left."""
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def scratch():
    return tempfile.TemporaryDirectory(prefix="myelin-faults.", ignore_cleanup_errors=True)


__all__ = ["MARK", "POINTS", "SECONDS", "TASKS", "Broken", "Stage", "compile_training", "law", "scratch"]
