# SPDX-License-Identifier: Apache-2.0
"""Files of pytest that drive the real program, each as one of the people who may use it."""

import itertools
import json
import os
import pwd
import shutil
import time

from testing import processes
from testing.report import Result

# On a quiet machine. A test that takes longer hangs.
TEST_LIMIT_S = 120
# What pytest may take before its first test, between two, and after its last.
BETWEEN_S = 120
_numbers = itertools.count(1)


class Person:
    """Someone who runs the scenarios, with a home, a place for temporary files and a copy of the checkout of their own:
    nothing of the caller is touched, and an unprivileged user can read all of it wherever the checkout is."""

    def __init__(self, root, scratch, name):
        self.name = name
        self.home = os.path.join(scratch, f"{name}-{next(_numbers)}")
        self.checkout = os.path.join(self.home, "checkout")
        self.temporary = os.path.join(self.home, "tmp")
        os.mkdir(self.home)
        os.mkdir(self.temporary)
        shutil.copytree(root, self.checkout, symlinks=True,
                        ignore=shutil.ignore_patterns(".git", "build", "build-*", "__pycache__"))
        self.identity = {}
        if name != pwd.getpwuid(os.geteuid()).pw_name:
            entry = pwd.getpwnam(name)
            self.identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            for folder, folders, files in os.walk(self.home):
                for path in [folder, *(os.path.join(folder, f) for f in folders + files)]:
                    os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)

    def take(self, program):
        own = os.path.join(self.home, "bin", os.path.basename(program))
        os.makedirs(os.path.dirname(own), exist_ok=True)
        if not os.path.exists(own):
            shutil.copy2(program, own)
            os.chmod(own, 0o755)
        return own

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MYELIN", "XDG_", "SUDO_"))}
        return dict(kept, HOME=self.home, TMPDIR=self.temporary, USER=self.name, LOGNAME=self.name,
                    PYTHONDONTWRITEBYTECODE="1")


class Events:
    """What the plugin has written so far, read once."""

    def __init__(self, path):
        self.path, self.offset = path, 0

    def take(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                whole = file.read().rpartition(b"\n")[0]
        except OSError:
            return []
        self.offset += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]


class Session:
    """One pytest over some files, started again without a test that hung it."""

    def __init__(self, report, pace, group, person, limit_file):
        self.report, self.pace, self.group, self.person, self.limit_file = report, pace, group, person, limit_file
        self.sanitizers = processes.Sanitizers(person.temporary)
        self.selection = []
        self.open = None  # the test that runs
        self.since = 0.0
        self.collected, self.ended, self.seen = [], set(), {}

    def run(self, selection, programs, sanitized, more):
        """`programs` maps variables to programs; `more` is added to the environment."""
        self.selection = selection
        environment = dict(self.person.environment(), **more, MYELIN_TEST_LIMIT=self.limit_file,
                           PYTHONPATH=os.path.join(self.person.checkout, "tools", "testing"),
                           MYELIN_SCENARIO_SECONDS=str(int(self.pace.seconds(20))))
        environment.update({name: self.person.take(path) for name, path in programs.items()})
        if sanitized:
            environment.update(self.sanitizers.environment())
        key = (self.group, self.person.home)
        try:
            while self.once(selection, environment, key):
                selection = [name for name in self.collected if name not in self.ended]
                environment.pop("MYELIN_TEST_SHARE", None)
                if not selection:
                    break
        finally:
            self.report.end(key)

    def once(self, selection, environment, key):
        """Whether there may be tests that it left out."""
        path = os.path.join(self.person.temporary, f"events.{next(_numbers)}")
        events, before = Events(path), len(self.ended)
        self.open, self.since = None, time.monotonic()
        self.report.start(key, f"{self.group}: {short(selection[0])}")
        command = ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-p", "events_plugin", "-q", *selection]
        with processes.Command(command, cwd=self.person.checkout, env=dict(environment, MYELIN_TEST_EVENTS=path),
                               **self.person.identity) as running:
            status = running.wait(lambda: self.follow(events, key) or self.overdue())
            output = processes.last_of(running.output())
        self.follow(events, key)
        self.reports_of_sanitizers("after the last test")
        if status == 0 or processes.closing():
            if processes.closing() and self.open:
                self.result(self.open, "failed", f"it ran when the tests were broken off\n{output}")
            return False
        if self.open:
            how = "was ended: it hung, and did not end when it was interrupted" if status is None else f"ended pytest with {status}"
            self.result(self.open, "failed", f"the test {how}; the last output is\n{output}")
            self.ended.add(self.open)
        elif "failed" not in self.seen.values():
            self.result("pytest", "failed", f"status {status}\n{output}")
        return len(self.ended) > before

    def overdue(self):
        """The plugin ends a test that hangs; this is for one that it cannot end."""
        limit = 2 * TEST_LIMIT_S if self.open else BETWEEN_S
        return time.monotonic() - self.since > self.pace.seconds(limit)

    def follow(self, events, key):
        for event in events.take():
            self.since = time.monotonic()
            name = event.get("name")
            if event["event"] == "collected":
                self.collected = self.collected or event["names"]
            elif event["event"] == "start":
                self.open = name
                self.report.start(key, f"{self.group}: {short(name)}")
            elif event["event"] == "end":
                self.open = None
                self.ended.add(name)
                self.reports_of_sanitizers(short(name))
            else:
                self.result(name, event["outcome"], event["output"])
                self.report.took(f"{self.group}: {short(name)}", event["seconds"])

    def reports_of_sanitizers(self, when):
        for text in self.sanitizers.take():
            self.result(f"{when}: report of a sanitizer", "failed", text)

    def result(self, name, outcome, output):
        self.seen[name] = outcome
        self.report.add(self.group, Result(short(name), outcome, output))


def short(name):
    """tests/scenario/test_pods.py::test_a_run[x] -> pods: test_a_run[x]"""
    path, _, test = name.partition("::")
    stem = os.path.basename(path).removeprefix("test_").removesuffix(".py")
    return f"{stem}: {test}" if test else stem
