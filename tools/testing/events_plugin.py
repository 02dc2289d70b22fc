# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: says of each test when it begins and how it ended, and ends one that hangs.

    MYELIN_TEST_EVENTS   the file that gets one JSON object a line
    MYELIN_TEST_LIMIT    a file with the seconds that a single test may take; it may change as the machine gets busier
    MYELIN_TEST_SHARE    "I/N": only every N-th test, from the I-th

What is known is in the file as soon as it is known, so that nothing is lost if pytest itself is ended.
"""
import json
import os
import signal
import time

import pytest

EVENTS = os.environ["MYELIN_TEST_EVENTS"]
LIMIT = os.environ["MYELIN_TEST_LIMIT"]
SHARE, SHARES = map(int, os.environ.get("MYELIN_TEST_SHARE", "0/1").split("/"))
LOOK_EVERY_S = 1


def say(**event):
    with open(EVENTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


class Hung(BaseException):
    """Not an Exception: a test that tries again whatever happens does not swallow it."""


def limit_s():
    with open(LIMIT, encoding="ascii") as file:
        return float(file.read())


class Watch:
    """Looks once a second whether the test that runs has taken longer than it may."""

    begun = None

    def on_alarm(self, _number, _frame):
        if self.begun is None or time.monotonic() - self.begun < (limit := limit_s()):
            return
        self.begun = None  # it gets the time that it needs to tidy up; the runner ends one that does not
        raise Hung(f"the test was ended: it took longer than {limit:.0f} s")


WATCH = Watch()


def pytest_sessionstart():
    signal.signal(signal.SIGALRM, WATCH.on_alarm)
    signal.setitimer(signal.ITIMER_REAL, LOOK_EVERY_S, LOOK_EVERY_S)


def pytest_unconfigure():
    """The interpreter takes its handler away before it ends, and then the signal would kill it."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def pytest_collection_modifyitems(items):
    items[:] = items[SHARE::SHARES]
    say(event="collected", names=[item.nodeid for item in items])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    say(event="start", name=item.nodeid)
    WATCH.begun = time.monotonic()
    yield
    begun, WATCH.begun = WATCH.begun, None
    say(event="end", name=item.nodeid, hung=begun is None)


def say_outcome(report, name, seconds):
    output = report.longreprtext
    if report.skipped and isinstance(report.longrepr, tuple):
        output = report.longrepr[2]
    if report.failed:
        output += "".join(f"\n-- {title}\n{text}" for title, text in report.sections)
    say(event="outcome", name=name, outcome=report.outcome, seconds=seconds, output=output)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        say_outcome(report, report.nodeid, report.duration)


def pytest_collectreport(report):
    if report.outcome != "passed":
        say_outcome(report, report.nodeid or "pytest", 0)
