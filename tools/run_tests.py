# SPDX-License-Identifier: Apache-2.0
"""Builds, runs the suites that are asked for, and counts: what ./test does after the set-up.

Every test case ends as one result. Something that cannot run (a build that fails, a program that dies
or hangs, a suite that turns out to be empty) is one failure, so that nothing is lost silently. No group of tests
has a limit of its own, only each test: a slow machine takes longer, and a test that hangs is named.
"""

import argparse
import collections
import dataclasses
import functools
import glob
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from testing import processes, programs, scenarios
from testing.pace import Pace
from testing.report import Report, counts

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIOS = os.path.join(ROOT, "tests", "scenario")
HAS_FUZZERS = os.path.exists(os.path.join(ROOT, "tests", "fuzz", "meson.build"))
SUITES = ("style", "unit", "fuzz", "golden", "fixtures", "scenario", "sdk")
UNPRIVILEGED = "nobody"
CORES = os.cpu_count() or 1
# At the same time: of the test programs of a build, and of the files of scenarios for each user. Many of them wait more
# than they work.
PROGRAM_LANES = 2 * CORES
SCENARIO_LANES = 2 * CORES + 1
BUILD_LIMIT_S = 600
LOOK_EVERY_S = 0.5
PACE_EVERY_S = 8
# Files that take long begin first, and several processes share the tests of one: {file: (seconds, shares)}.
LONG = {"pods": (100, 4), "shim_gang": (60, 3), "shim": (50, 2), "logs": (40, 2), "gang": (30, 1), "queue": (30, 1),
        "sharing": (20, 1), "clock": (18, 1), "commands": (16, 1), "stop": (14, 1), "keeping": (13, 1), "success": (13, 1)}
# A run with limits removes the control groups of dead runs that it finds beside it: files that have both take turns.
TOGETHER = ("faults", "limits", "pinning", "recovery", "tracking")


@dataclasses.dataclass(frozen=True)
class Build:
    name: str
    directory: str
    options: tuple
    sanitized: bool = False
    suites: tuple = ("unit", "fuzz", "golden", "fixtures")

    @property
    def program(self):
        return os.path.join(self.directory, "myelin")

    @property
    def shim(self):
        """As pods get it, or compiled like the rest where that is with sanitizers."""
        return os.path.join(self.directory, *(("tests", "shim-checked") if self.sanitized else ("src", "shim", "shim-amd64")))


# Part of the options, so that a build directory that was made before is configured again.
HAS_ARM64 = subprocess.run([os.path.join(ROOT, "tools", "musl-arm64"), "show"], capture_output=True,
                           check=False).returncode == 0
SHIMS = "-Dshim_arm64=" + ("enabled" if HAS_ARM64 else "disabled")
BUILDS = (
    Build("plain", os.path.join(ROOT, "build"), ("-Dtests=true", "-Dwerror=true", SHIMS),
          suites=("style", "unit", "fuzz", "golden", "fixtures")),
    Build("sanitizers", os.path.join(ROOT, "build-asan"),
          # Beyond -Og the sanitizers' own checks make gcc warn of paths that do not exist.
          ("-Db_sanitize=address,undefined", "-Db_lundef=false", "-Doptimization=g",
           "-Dtests=true", "-Dwerror=true", SHIMS),
          sanitized=True),
)


class Groups:
    """Groups of jobs, each with some threads. A group says how it went when its last job is done."""

    def __init__(self, report):
        self.report, self.threads = report, []

    def start(self, title, jobs, lanes, prepare=lambda: None):
        """Each lane calls prepare() once, and hands what that gives to each of its jobs."""
        waiting, begun, left = collections.deque(jobs), time.monotonic(), [min(lanes, len(jobs))]

        def lane():
            try:
                own = prepare()
                while waiting and not processes.closing():
                    waiting.popleft()(own)
            except (IndexError, processes.Interrupted):
                pass  # another lane took the last one; or nothing more is wanted
            except Exception:  # a fault of the runner is a failure, not an end without a word
                self.report.fail(title, traceback.format_exc())
            with self.report.lock:
                left[0] -= 1
                if not left[0] and not processes.closing():
                    self.close(title, begun)

        for _ in range(left[0]):
            self.thread(lane)

    def thread(self, run):
        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()

    def close(self, title, begun):
        results = [r for r in self.report.results if r.name.startswith(title + ": ")]
        if not results:
            self.report.fail(title, "nothing ran")
        self.report.say(f"{title:<34}{counts(results)}  ({time.monotonic() - begun:.1f} s)")

    def wait(self, tick):
        for thread in self.threads:  # which grows meanwhile
            while thread.is_alive():
                thread.join(LOOK_EVERY_S)
                tick()


def compile_build(build, pace):
    """Returns the output of a failed build, else None."""
    begun = time.monotonic()
    with processes.Command(["sh", os.path.join(ROOT, "tools", "setup"), "compile", build.directory, "all", *build.options],
                           shown=True) as running:
        status = running.wait(lambda: time.monotonic() - begun > pace.seconds(BUILD_LIMIT_S))
    if status == 0:
        return None
    log = os.path.join(build.directory, "build.log")
    with open(log if os.path.exists(log) else os.devnull, encoding="utf-8", errors="replace") as file:
        return ("it took too long\n" if status is None else "") + file.read()


def people():
    me = pwd.getpwuid(os.geteuid()).pw_name
    return [me, UNPRIVILEGED] if os.geteuid() == 0 else [me]


def name_of(path):
    return os.path.basename(path).removeprefix("test_").removesuffix(".py")


def scenario_jobs(names):
    """What pytest is started with, the longest first: (its arguments, more environment)."""
    if any(not os.path.exists(os.path.join(SCENARIOS, f"test_{name}.py")) for name in names):
        return [(["tests/scenario", "-k", " or ".join(names)], {})]
    files = sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(SCENARIOS, "test_*.py"))
                   if not names or name_of(path) in names)
    together = [path for path in files if name_of(path) in TOGETHER]
    jobs = [(together, {})] if together else []
    for path in sorted(set(files) - set(together), key=lambda path: (-LONG.get(name_of(path), (0, 1))[0], path)):
        shares = LONG.get(name_of(path), (0, 1))[1]
        jobs += [([path], {"MYELIN_TEST_SHARE": f"{share}/{shares}"}) for share in range(shares)]
    return jobs


class Runner:
    def __init__(self, report, pace, arguments, scratch):
        self.report, self.pace, self.scratch, self.arguments = report, pace, scratch, arguments
        self.groups = Groups(report)
        self.suites = [a for a in arguments if a in SUITES] or ([] if arguments else list(SUITES))
        self.names = [a for a in arguments if a not in SUITES]
        self.limit_file = os.path.join(scratch, "limit")
        self.write_limit()
        self.looked = time.monotonic()

    def run(self):
        self.groups.thread(self.direct)
        self.groups.wait(self.tick)

    def tick(self):
        if time.monotonic() - self.looked > PACE_EVERY_S:
            self.pace.renew()
            self.write_limit()
            self.looked = time.monotonic()
        self.report.tick()

    def write_limit(self):
        with open(self.limit_file + ".new", "w", encoding="ascii") as file:
            file.write(str(self.pace.seconds(scenarios.TEST_LIMIT_S)))
        os.chmod(self.limit_file + ".new", 0o644)
        os.rename(self.limit_file + ".new", self.limit_file)

    def direct(self):
        """The tests of a build begin when it is made, while the next one is compiled."""
        wanted = [b for b in BUILDS if self.suites != ["style"] or self.names or "style" in b.suites]
        try:
            for i, build in enumerate(wanted):
                self.report.start("build", f"build, {build.name}")
                failure = compile_build(build, self.pace)
                self.report.end("build")
                if failure is not None:
                    self.report.fail(f"build, {build.name}", failure)
                else:
                    self.start_tests(build, i)
        except processes.Interrupted:
            pass
        except Exception:
            self.report.fail("test", traceback.format_exc())

    def start_tests(self, build, number):
        tests = programs.known(build.directory)
        for suite in build.suites:
            chosen = [t for n, t in tests.items() if suite in t["suite"] and (suite in self.suites or n in self.names)]
            if chosen:
                chosen.sort(key=lambda test: -test.get("priority", 0))
                title = f"{suite}, {build.name}"
                self.groups.start(title, [functools.partial(self.program, title, build, test) for test in chosen], PROGRAM_LANES)
            elif suite in self.suites and (suite != "fuzz" or "fuzz" in self.arguments or HAS_FUZZERS):
                self.report.fail(f"{suite}, {build.name}", "there are no tests of this suite")
        unknown = [n for n in self.names if n not in tests]
        if "scenario" in self.suites or unknown:
            self.start_scenarios(build, number, [] if "scenario" in self.suites else unknown)
        if "sdk" in self.suites and number == 0:
            for name in people():
                self.start_pytest(f"sdk, {name}", build, name, [(["sdk/python/tests"], {})])

    def program(self, title, build, test, _own):
        programs.run(self.report, self.pace, title, test, build.sanitized)

    def start_scenarios(self, build, number, names):
        """If two people run them, each takes one build: root the one with sanitizers, the other the plain one. That shows
        what all four together would, in half of the time."""
        everybody = people()
        for i, name in enumerate(everybody):
            if len(everybody) == 1 or (i + 1) % len(BUILDS) == number:
                self.start_pytest(f"scenario, {build.name}, {name}", build, name, scenario_jobs(names))

    def start_pytest(self, title, build, name, jobs):
        tools = {"MYELIN": build.program, "MYELIN_SHIM": build.shim}

        def job(selection, more, person):
            scenarios.Session(self.report, self.pace, title, person, self.limit_file).run(
                selection, tools, build.sanitized, more)

        self.groups.start(title, [functools.partial(job, *given) for given in jobs], SCENARIO_LANES,
                          lambda: scenarios.Person(ROOT, self.scratch, name))


def arguments_of(argv):
    parser = argparse.ArgumentParser(prog="./test", allow_abbrev=False)
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="show the N tests that took longest")
    parser.add_argument("--skips", action="store_true", help="show what was skipped, by reason")
    parser.add_argument("names", nargs="*", metavar="SUITE | NAME")
    return parser.parse_intermixed_args(argv)


def main(argv):
    options = arguments_of(argv)
    pace = Pace()
    report = Report(pace, options.slowest, options.skips)
    with tempfile.TemporaryDirectory(prefix="myelin-test.", ignore_cleanup_errors=True) as scratch:
        os.chmod(scratch, 0o755)
        runner = Runner(report, pace, options.names, scratch)
        try:
            runner.run()
        except (SystemExit, KeyboardInterrupt):
            # What is known by now is shown: a run that takes too long is the one whose failures are wanted.
            processes.end_all()
            for thread in runner.groups.threads:
                thread.join(30)
            report.fail("test", "it was broken off: the other tests did not run")
            report.close()
            raise
    return report.close()


def end_on_request(number, _frame):
    """Unwinds, so that what was started is ended and the temporary files go."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_on_request)
    # A shell starts background jobs with both ignored, and everything that is tested would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, end_on_request)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ntest: interrupted", file=sys.stderr)
        sys.exit(130)
