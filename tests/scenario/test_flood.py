# SPDX-License-Identifier: Apache-2.0
"""A task that writes without end is not held up, does not fill the disk or the memory, and what is lost is told.

    SCENARIO_FLOOD_BYTES   how much is written (default: 1 GB)
"""
import json
import os
import pathlib
import re
import time

import pytest

from conftest import SECONDS, keeper_of

FLOOD = int(os.environ.get("SCENARIO_FLOOD_BYTES", 1_000_000_000))
LIMIT = 64 << 20
PATIENCE = SECONDS * max(1, FLOOD // 1_000_000_000)
MEMORY_MOST_KB = 32 * 1024  # by which the supervisor may grow, whatever comes

# Each line is 100 bytes, so that the flood is made faster than it is read.
POUR = f"""
    echo first
    touch up; while [ ! -e go ]; do sleep 0.02; done
    yes {"x" * 99} | head -c {FLOOD}
    touch poured; while [ ! -e end ]; do sleep 0.02; done
    echo last
    exit 7
"""
WRITTEN = len("first\n") + FLOOD + len("last\n")


def call(scenario, *arguments):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(errors="replace"), err.decode()


def peak_kb(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def wait_for_end(scenario, run):
    deadline = time.monotonic() + PATIENCE
    while True:
        told = json.loads(call(scenario, "status", run, "--json")[1])
        if told["status"] in ("succeeded", "failed", "stopped"):
            return told
        assert time.monotonic() < deadline, told
        time.sleep(0.02)


def test_a_flood_blocks_nobody_takes_no_memory_and_its_loss_is_told(scenario):
    status, run, err = call(scenario, "run", "-d", scenario.job(scenario.script(POUR)), "--log-limit", "64M")
    assert status == 0, err
    run = run.strip()
    scenario.wait_for("up")
    _, supervisor = keeper_of(scenario, run)
    before = peak_kb(supervisor)
    began = time.monotonic()
    (scenario.directory / "go").touch()
    scenario.wait_for("poured", seconds=PATIENCE)
    took, grown = time.monotonic() - began, peak_kb(supervisor) - before
    print(f"{FLOOD} bytes in {took:.2f} s; the supervisor: {before} kB before, {grown} kB more at its peak")
    assert grown < MEMORY_MOST_KB
    (scenario.directory / "end").touch()
    told = wait_for_end(scenario, run)

    log = scenario.home / "runs" / run / "logs" / "master.0.log"
    assert log.stat().st_size == LIMIT
    assert told["tasks"][0]["log_bytes_lost"] == WRITTEN - LIMIT, told
    lost = f"{(WRITTEN - LIMIT) / (1 << 20):.1f} MiB" if WRITTEN - LIMIT < 1 << 30 else f"{(WRITTEN - LIMIT) / (1 << 30):.1f} GiB"
    assert lost in call(scenario, "status", run)[1]
    assert call(scenario, "logs", run, "--tail", "1")[1].endswith(f"[… {WRITTEN - LIMIT} bytes were lost here …]\n")
    notices = [line for line in log.parent.with_name("events.jsonl").read_text().splitlines() if '"notice"' in line]
    assert len(notices) == 1 and f"limit of {LIMIT} bytes (--log-limit)" in notices[0], notices
    assert told["exit_status"] == 7, told
    deadline = time.monotonic() + 10
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.01)  # who wrote the end leaves right after
    assert not scenario.left()


def test_each_task_has_the_limit_for_itself(scenario):
    cmd = scenario.script("head -c $((1000 * (RANK + 1))) /dev/zero; exit 0")
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=2), "--log-limit", "2000B", "--json")
    assert ended.status == 0, ended
    lost = [task.get("log_bytes_lost", 0) for task in json.loads(ended.out)["tasks"]]
    assert lost == [0, 0, 1000], ended
    sizes = sorted(path.stat().st_size for path in (scenario.home / "runs/1/logs").glob("*.log"))
    assert sizes == [1000, 2000, 2000]


def test_of_a_task_whose_output_was_not_kept_it_is_not_said_that_it_wrote_nothing(scenario):
    ended = scenario.run(scenario.job(scenario.script("echo words; exit 3")), "--log-limit", "0")
    assert ended.status == 3 and "wrote nothing" not in ended.err, ended
    assert "exited with code 3; the last line it wrote: words" in ended.err, "the end of it is kept in memory"
    assert "nothing that master.0 wrote could be kept" in ended.err, ended
    assert "  nothing that master.0 wrote could be kept\n" in ended.err, ended


def test_each_task_that_loses_output_is_told_of_as_long_as_they_are_few(scenario):
    cmd = scenario.script("[ $RANK = 0 ] || head -c 100 /dev/zero")
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=2), "--log-limit", "50B")
    told = sorted(line for line in ended.err.splitlines() if "has reached its limit" in line)
    assert ended.status == 0 and [line.split()[4] for line in told] == ["worker.0", "worker.1"], ended
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=20), "--log-limit", "50B")
    assert ended.err.count("has reached its limit") == 8, ended
    assert ended.err.count("more logs cannot be kept whole") == 1, ended


@pytest.mark.parametrize("given, kept", [("0", 0), ("100B", 100), ("1K", 1024), ("1.5KiB", 1536), ("1M", 3000), ("1T", 3000)])
def test_a_limit_is_given_in_bytes_or_larger_units(scenario, given, kept):
    ended = scenario.run(scenario.job(scenario.script("head -c 3000 /dev/zero")), "--log-limit", given)
    assert ended.status == 0, ended
    assert (scenario.home / "runs/1/logs/master.0.log").stat().st_size == kept


@pytest.mark.parametrize("given", ["", "-1", "x", "10", "10X", "1GB", "1e400", "nan", "1 G", "9999999T"])
def test_what_is_no_size_is_refused_before_anything_starts(scenario, given):
    ended = scenario.run(scenario.job(scenario.script("touch started")), f"--log-limit={given}")
    assert ended.status == 125 and "--log-limit takes a size with a unit" in ended.err, ended
    assert not (scenario.directory / "started").exists()
