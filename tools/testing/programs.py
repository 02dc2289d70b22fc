# SPDX-License-Identifier: Apache-2.0
"""The test programs that meson builds or knows: unit tests, fuzzers, checks. A program that prints TAP has many results."""

import json
import os
import re
import subprocess
import tempfile
import time

from testing import processes
from testing.report import Result

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*(.*?)(?:\s*#\s*skip\b\s*(.*))?$", re.I)
TAP_PLAN = re.compile(r"^1\.\.(\d+)", re.M)
SKIPPED = 77  # the status by which a program says that it cannot run here


def known(directory):
    """What meson knows of the tests of a build: {name: its record}."""
    listed = subprocess.run(["meson", "introspect", "--tests", directory], check=True, capture_output=True).stdout
    tests = {}
    for test in json.loads(listed):
        test["suite"] = {suite.split(":")[-1] for suite in test["suite"]}
        tests[test["name"]] = test
    return tests


def results_of(name, status, output):
    """Holds the plan against what ran: the `not ok 3 # SKIP` that cmocka 1.1 prints is no failure.
    A status of None is a program that was ended because it took too long."""
    results = []
    for bad, case, reason in (m.groups() for m in map(TAP_LINE.match, output.splitlines()) if m):
        outcome = "skipped" if reason is not None else "failed" if bad else "passed"
        results.append(Result(f"{name}: {case or reason}", outcome, output if outcome == "failed" else reason or ""))
    planned = sum(map(int, TAP_PLAN.findall(output)))
    verdict = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
    said = "it was ended: it took too long" if status is None else f"status {status}"
    if planned != len(results):
        results.append(Result(name, "failed", f"{len(results)} of {planned} cases ran; {said}\n{processes.last_of(output)}"))
    elif not results or (verdict == "failed" and all(r.outcome != "failed" for r in results)):
        results.append(Result(name, verdict, f"{said}\n{output}"))
    return results


def run(report, pace, group, test, sanitized):
    """One program; its results go to the report."""
    name = test["name"]
    report.start((group, name), f"{group}: {name}")
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="myelin-test.") as scratch:
            sanitizers = processes.Sanitizers(scratch)
            environment = dict(os.environ, **test["env"], **(sanitizers.environment() if sanitized else {}))
            status, output = processes.run(test["cmd"], lambda: pace.seconds(test["timeout"]), env=environment,
                                           cwd=test["workdir"] or None)
            results = results_of(name, status, output)
            results += [Result(f"{name}: report of a sanitizer", "failed", text) for text in sanitizers.take()]
    except OSError as problem:
        results = [Result(name, "failed", str(problem))]
    finally:
        report.end((group, name))
    report.took(f"{group}: {name}", time.monotonic() - begun)
    for result in results:
        report.add(group, result)
