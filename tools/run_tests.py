# SPDX-License-Identifier: Apache-2.0
"""Builds, runs the suites that are asked for, and counts: what ./test does after the set-up.

Every step ends as a list of results, one for each test case. A step that cannot run (a build
that fails, a program that dies or hangs, a suite that turns out to be empty) is one failure,
so that nothing is lost silently. The output of each failure is shown at the end.
"""

import concurrent.futures
import dataclasses
import functools
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIOS = os.path.join(ROOT, "tests", "scenario")
HAS_FUZZERS = os.path.exists(os.path.join(ROOT, "tests", "fuzz", "meson.build"))
# Of the scenarios, at the same time for each user.
PARTS = 4
# What files of scenarios take, in seconds, where it is more than these: by it they are dealt out, so that all parts end
# together.
FEW_S = 6
SCENARIO_S = {"pods": 155, "shim_gang": 100, "shim": 60, "logs": 50, "gang": 35, "recovery": 35, "queue": 30, "tracking": 22,
              "sharing": 20, "clock": 18, "commands": 16, "stop": 14, "keeping": 13, "success": 13, "search": 11, "code": 10,
              "limits": 10, "pinning": 10}
# A run with limits removes the control groups of dead runs that it finds beside it: files that have both are one part's.
TOGETHER = ("limits", "pinning", "recovery", "tracking")
SUITES = ("style", "unit", "fuzz", "golden", "fixtures", "scenario", "sdk")
STEP_LIMIT_S = 420
SHOWN_BYTES = 16000
SHOWN_FAILURES = 25
UNPRIVILEGED = "nobody"

# A status that no command of myelin has, so that no test takes a report for an expected error.
SANITIZER_STATUS = 99


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


@dataclasses.dataclass
class Result:
    name: str
    outcome: str  # passed, failed or skipped
    output: str = ""


class Report:
    def __init__(self):
        self.results = []

    def steps(self, titled):
        """Runs steps at the same time; each says how it went when it is done."""
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(len(titled)) as pool:
            running = {pool.submit(run): title for title, run in titled}
            try:
                for done in concurrent.futures.as_completed(running):
                    title = running[done]
                    results = done.result() or [Result(title, "failed", "nothing ran")]
                    self.add(title, results, f"{title:<34}{counts(results)}  ({time.monotonic() - start:.1f} s)")
            except BaseException:
                end_sessions()  # else the pool would wait for what they run
                raise

    def add(self, title, results, line):
        """What failed is named at once: whoever watches need not wait for the end."""
        print("\n    failed: ".join([line, *(r.name for r in results if r.outcome == "failed")]), flush=True)
        self.results += [Result(f"{title}: {r.name}", r.outcome, r.output) for r in results]

    def fail(self, name, output):
        print(f"{name:<34}failed", flush=True)
        self.results.append(Result(name, "failed", output))

    def close(self):
        for result in self.results:
            if result.outcome == "skipped":
                reason = (result.output.strip().splitlines() or [""])[0]
                known = not reason or result.name.endswith(reason)
                print(f"skipped  {result.name}" + ("" if known else f" ({reason})"))
        failures = [r for r in self.results if r.outcome == "failed"]
        for result in failures[:SHOWN_FAILURES]:
            print(f"\nFAILED   {result.name}\n{indented(result.output)}")
        for result in failures[SHOWN_FAILURES:]:
            print(f"FAILED   {result.name} (not shown: there are too many)")
        print(f"\n{counts(self.results)}", flush=True)
        passed = any(r.outcome == "passed" for r in self.results)
        return 0 if passed and not failures else 1


def counts(results):
    n = {outcome: sum(r.outcome == outcome for r in results)
         for outcome in ("passed", "failed", "skipped")}
    return (f"{n['passed']} passed, {n['failed']} failed"
            + (f", {n['skipped']} skipped" if n["skipped"] else ""))


def indented(text):
    if len(text) > SHOWN_BYTES:
        half = SHOWN_BYTES // 2
        text = text[:half] + "\n[…]\n" + text[-half:]
    return "\n".join("    " + line for line in text.rstrip().splitlines())


sessions = set()  # of commands that run now


def end_sessions():
    for process in list(sessions):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def run_limited(command, **options):
    """Returns (status, output). A command that takes too long is ended with all of its session. The
    output goes through a file: a process that is left behind cannot hold up the end."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True, **options)
        sessions.add(process)
        try:
            status, remark = process.wait(timeout=STEP_LIMIT_S), ""
        except subprocess.TimeoutExpired:
            status, remark = -1, f"\nstopped after {STEP_LIMIT_S} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            sessions.discard(process)
        output.seek(0)
        return status, output.read().decode(errors="replace") + remark


class Sanitizers:
    """Has the sanitizers write into files, so that a report counts even where a test ignores the
    status of the program."""

    def __init__(self, directory):
        self.prefix = os.path.join(directory, "report")

    def environment(self):
        common = f"exitcode={SANITIZER_STATUS}:log_path={self.prefix}"
        return {"ASAN_OPTIONS": f"detect_leaks=1:detect_stack_use_after_return=1:{common}",
                "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:{common}"}

    def results(self):
        return [Result("report of a sanitizer", "failed", read(path))
                for path in sorted(glob.glob(self.prefix + ".*"))]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def compile_build(build):
    """Returns the output of a failed build, else None."""
    status = subprocess.run(["sh", os.path.join(ROOT, "tools", "setup"), "compile", build.directory,
                             "all", *build.options], check=False).returncode
    return None if status == 0 else read_if_there(os.path.join(build.directory, "build.log"))


def read_if_there(path):
    return read(path) if os.path.exists(path) else ""


def meson_tests(build):
    """{name: suites} of the tests that the build has."""
    listed = subprocess.run(["meson", "introspect", "--tests", build.directory], check=True,
                            capture_output=True).stdout
    return {test["name"]: {suite.split(":")[-1] for suite in test["suite"]}
            for test in json.loads(listed)}


TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*skip\b\s*(.*))?$", re.I)
TAP_PLAN = re.compile(r"^1\.\.(\d+)", re.M)


def results_of_meson_test(test):
    """One record of meson's log: a program that prints TAP has many results, any other has one.

    The unit tests are no `tap` tests for meson, which takes the `not ok 3 # SKIP` that cmocka
    1.1 prints for a failure; so it is here that the plan is held against what ran."""
    stdout = test.get("stdout") or ""
    output = stdout + (test.get("stderr") or "")
    verdict = {"OK": "passed", "SKIP": "skipped"}.get(test["result"], "failed")
    name = test["name"].split(" / ")[-1]
    results = []
    for bad, case, reason in (m.groups() for m in map(TAP_LINE.match, stdout.splitlines()) if m):
        outcome = "passed" if not bad else "failed"
        if reason is not None:
            outcome = "skipped"
        results.append(Result(f"{name}: {case or reason}", outcome,
                              output if outcome == "failed" else reason or ""))
    planned = sum(map(int, TAP_PLAN.findall(stdout)))
    if planned != len(results):
        results.append(Result(name, "failed", f"{len(results)} of {planned} cases ran; "
                                              f"status {test.get('returncode')}\n{output}"))
    elif not results or (verdict == "failed" and all(r.outcome != "failed" for r in results)):
        results.append(Result(name, verdict,
                              f"{test['result']}, status {test.get('returncode')}\n{output}"))
    return results


def run_meson(build, names):
    log = "selected"
    path = os.path.join(build.directory, "meson-logs", log + ".json")
    if os.path.exists(path):
        os.unlink(path)
    with tempfile.TemporaryDirectory(prefix="myelin-test.") as scratch:
        sanitizers = Sanitizers(scratch)
        environment = dict(os.environ, **(sanitizers.environment() if build.sanitized else {}))
        status, output = run_limited(
            ["meson", "test", "-C", build.directory, "--no-rebuild", "--logbase", log, "--num-processes",
             str(3 * (os.cpu_count() or 1)), *names],  # some of them wait more than they work
            env=environment)
        records = [json.loads(line) for line in read_if_there(path).splitlines()]
        results = [r for test in records for r in results_of_meson_test(test)]
        if len(records) < len(names):
            results.append(Result("meson test", "failed",
                                  f"{len(records)} of {len(names)} programs ran\n{output}"))
        elif status != 0 and all(r.outcome != "failed" for r in results):
            results.append(Result("meson test", "failed", f"status {status}\n{output}"))
        return results + sanitizers.results()


class Person:
    """Someone who runs the scenarios, with a home, a place for temporary files and a copy of the
    checkout of their own: nothing of the caller is touched, and an unprivileged user can read all
    of it wherever the checkout is."""

    def __init__(self, scratch, name, label=""):
        self.name = name
        self.home = os.path.join(scratch, name + label)
        self.checkout = os.path.join(self.home, "checkout")
        self.temporary = os.path.join(self.home, "tmp")
        os.mkdir(self.home)
        os.mkdir(self.temporary)
        shutil.copytree(ROOT, self.checkout, symlinks=True,
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
        shutil.copy2(program, own)
        os.chmod(own, 0o755)
        return own

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MYELIN", "XDG_", "SUDO_"))}
        return dict(kept, HOME=self.home, TMPDIR=self.temporary, USER=self.name, LOGNAME=self.name,
                    PYTHONDONTWRITEBYTECODE="1")


def people():
    me = pwd.getpwuid(os.geteuid()).pw_name
    return [me, UNPRIVILEGED] if os.geteuid() == 0 else [me]


def run_pytest(build, person, selection):
    report = os.path.join(person.temporary, "report.xml")
    sanitizers = Sanitizers(person.temporary)
    environment = dict(person.environment(), MYELIN=person.take(build.program), MYELIN_SHIM=person.take(build.shim))
    if build.sanitized:
        environment.update(sanitizers.environment())
    status, output = run_limited(
        ["/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q",
         f"--junit-xml={report}", *selection],
        cwd=person.checkout, env=environment, **person.identity)
    results = []
    if os.path.exists(report):
        results = [result_of_case(case) for case in ElementTree.parse(report).iter("testcase")]
        os.unlink(report)
    if status != 0 and all(r.outcome != "failed" for r in results):
        results.append(Result("pytest", "failed", f"status {status}\n{output}"))
    results += sanitizers.results()
    for path in glob.glob(sanitizers.prefix + ".*"):
        os.unlink(path)
    return results


def result_of_case(case):
    name = f"{case.get('classname', '').split('.')[-1]}: {case.get('name')}"
    for child in case:
        if child.tag in ("failure", "error"):
            return Result(name, "failed", child.text or child.get("message") or "")
        if child.tag == "skipped":
            return Result(name, "skipped", child.get("message") or "")
    return Result(name, "passed")


def scenario_selection(names):
    """pytest's arguments for the names that are no meson tests."""
    if not names:
        return sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(SCENARIOS, "test_*.py")))
    files = []
    for name in names:
        path = os.path.join("tests", "scenario", f"test_{name}.py")
        if not os.path.exists(os.path.join(ROOT, path)):
            return ["tests/scenario", "-k", " or ".join(names)]
        files.append(path)
    return files


def parts(selection):
    """The files, dealt out by what they take; a selection by names is left whole."""
    if len(selection) < PARTS or "-k" in selection:
        return [selection]
    name = lambda path: os.path.basename(path).removeprefix("test_").removesuffix(".py")
    seconds = lambda files: sum(SCENARIO_S.get(name(path), FEW_S) for path in files)
    bundles = [[path] for path in selection if name(path) not in TOGETHER]
    bundles.append([path for path in selection if name(path) in TOGETHER])
    dealt = [[] for _ in range(PARTS)]
    for bundle in sorted(bundles, key=seconds, reverse=True):
        min(dealt, key=seconds).extend(bundle)
    return dealt


def main(arguments):
    report = Report()
    try:
        run_suites(report, arguments)
    except (SystemExit, KeyboardInterrupt):
        # What is known by now is told: a run that takes too long is the one whose failures are wanted.
        print()
        report.fail("test", "it was broken off: what follows was not run")
        report.close()
        raise
    return report.close()


def run_suites(report, arguments):
    suites = [a for a in arguments if a in SUITES] or ([] if arguments else list(SUITES))
    names = [a for a in arguments if a not in SUITES]
    wanted = [b for b in BUILDS if suites != ["style"] or names or "style" in b.suites]
    built, known = [], set()
    # The next one is compiled while the tests of the last wait for each other.
    pool = concurrent.futures.ThreadPoolExecutor(1)
    try:
        compiling = [pool.submit(compile_build, build) for build in wanted]
        for build, outcome in zip(wanted, compiling):
            failure = outcome.result()
            if failure is None:
                built.append(build)
                known |= programs(report, build, suites, names, arguments)
            else:
                report.fail(f"build, {build.name}", failure)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # who breaks it off does not wait for the compiler

    unknown = [n for n in names if n not in known]
    has_scenarios = "scenario" in suites or unknown
    if not built and (has_scenarios or "sdk" in suites):
        report.fail("scenario and sdk", "there is no program to run them with")
        return
    with tempfile.TemporaryDirectory(prefix="myelin-test.") as scratch:
        os.chmod(scratch, 0o755)
        steps = scenarios(report, built, [] if "scenario" in suites else unknown, scratch) if has_scenarios else []
        steps += sdk(built, scratch) if "sdk" in suites else []
        if steps:
            report.steps(steps)


def programs(report, build, suites, names, arguments):
    """The test programs of a build; returns the names of all that there are."""
    tests = meson_tests(build)
    # meson takes a name without its suite; every suite is a step of its own.
    for suite in build.suites:
        chosen = [n for n, of in tests.items() if suite in of and (suite in suites or n in names)]
        if chosen:
            report.steps([(f"{suite}, {build.name}", functools.partial(run_meson, build, chosen))])
        elif suite in suites and (suite != "fuzz" or "fuzz" in arguments or HAS_FUZZERS):
            report.fail(f"{suite}, {build.name}", "there are no tests of this suite")
    return set(tests)


def sdk(built, scratch):
    """The Python package, compiled for Debian's interpreter, and its twin in Python alone."""
    return [(f"sdk, {name}", functools.partial(run_pytest, built[0], Person(scratch, name, "-sdk"), ["sdk/python/tests"]))
            for name in people()]


def scenarios(report, built, names, scratch):
    if not glob.glob(os.path.join(SCENARIOS, "test_*.py")):
        report.fail("scenario", f"no tests in {SCENARIOS}")
        return []
    selection = scenario_selection(names)
    # Where two people run them, each takes one build, at the same time: root the sanitizers', the
    # other the plain one. That shows what all four together would, in a quarter of the time.
    # They wait more than they work, so each runs them in several parts at once.
    everybody = people()
    steps = []
    for i, name in enumerate(everybody):
        for build in built if len(everybody) == 1 else [built[(i + 1) % len(built)]]:
            steps += [(f"scenario, {build.name}, {name}, {part}",
                       functools.partial(run_pytest, build, Person(scratch, name, f"-{build.name}-{part}"), files))
                      for part, files in enumerate(parts(selection), 1)]
    return steps


def end_on_request(number, _frame):
    """Unwinds, so that what was started is ended and the temporary files go."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end_on_request)
    # Who starts this in the background has both ignored, and whatever is tested would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, end_on_request)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\ntest: interrupted", file=sys.stderr)
        sys.exit(130)
