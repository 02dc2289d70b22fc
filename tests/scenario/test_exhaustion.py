# SPDX-License-Identifier: Apache-2.0
"""A machine without files or memory to spare: a command says so, and neither hangs nor crashes."""
import json
import os
import re
import signal
import time

import pytest

from conftest import SECONDS


def call(scenario, *arguments, **options):
    """One command to its end: (exit status, output, messages). A run may outlive it."""
    process = scenario.start(*arguments, **options)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("limit", [4, 6, 7, 8, 9, 11, 14, 16])
def test_with_too_few_open_files_a_run_is_refused_and_nothing_is_left(scenario, limit):
    ended = scenario.run(scenario.job("echo hello"), under=["prlimit", f"--nofile={limit}"])
    assert ended.status == 125 and re.search(f"open files: .* the limit is {limit} ", ended.err), ended
    assert not list(scenario.home.glob("runs/*"))


def test_a_run_that_cannot_be_watched_for_want_of_files_goes_on(scenario):
    job = scenario.job(scenario.script("touch up; while [ ! -e end ]; do sleep 0.02; done"))
    process = scenario.start("run", job)
    scenario.wait_for("up")
    status, _, err = call(scenario, "attach", "1", under=["prlimit", "--nofile=6"])
    assert status == 125 and "open files" in err, err
    (scenario.directory / "end").touch()
    assert scenario.finish(process).status == 0


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers need more address space than there is")
def test_without_memory_a_run_says_so(scenario):
    """From too little for the program itself up to enough for the run."""
    statuses = set()
    for pages in range(1500, 2700, 25):
        status, _, err = call(scenario, "run", scenario.job("echo hello"), under=["prlimit", f"--as={pages << 12}"])
        statuses.add(status)
        assert status in (0, 125, 127, -signal.SIGABRT), (pages, status, err)
        if status == -signal.SIGABRT:
            assert "myelin: out of memory" in err, (pages, err)
        elif status:
            assert re.search("memory|cannot allocate|shared librar", err), (pages, err)
    assert -signal.SIGABRT in statuses
    deadline = time.monotonic() + SECONDS
    while scenario.left() and time.monotonic() < deadline:  # a keeper that records the end of its supervisor
        time.sleep(0.02)


@pytest.mark.parametrize("journal", [None, "", '{"seq":1,"time":"20'])
def test_a_run_whose_maker_was_killed_is_shown_as_failed(scenario, journal):
    assert scenario.run(scenario.job("echo hello")).status == 0
    left = scenario.home / "runs/2"
    for name in ("outputs", "logs", "spool"):
        (left / name).mkdir(parents=True)
    (left / "lock").touch()
    if journal is not None:
        (left / "events.jsonl").write_text(journal)
    os.utime(left, (0, 0))
    shown = json.loads(call(scenario, "status", "2", "--json")[1])
    assert (shown["status"], shown["exit_status"]) == ("failed", 125), shown
    assert "never began" in shown["reason"]
    assert "never began" in call(scenario, "status", "2")[1]
    assert "a run that never began" in call(scenario, "gc")[1]


def test_a_run_whose_journal_was_removed_is_shown_as_failed_and_stays(scenario):
    assert scenario.run(scenario.job("echo hello")).status == 0
    (scenario.home / "runs/1/events.jsonl").unlink()
    os.utime(scenario.home / "runs/1", (0, 0))
    shown = json.loads(call(scenario, "status", "1", "--json")[1])
    assert shown["status"] == "failed" and "removed or damaged" in shown["reason"], shown
    assert "never began" not in call(scenario, "gc")[1]
