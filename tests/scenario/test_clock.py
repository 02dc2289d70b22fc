# SPDX-License-Identifier: Apache-2.0
"""Somebody sets the wall clock while runs go on, by hours, back and forward: what is measured, ordered and waited for
does not notice.

The jump is played by a library that is loaded before all others and shifts the wall clock, and only that one, by
what stands in a file."""
import json
import os
import re
import struct
import subprocess
import time

import pytest
from conftest import kill_both

SHIFT = """
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    static long shift(void) {
        char text[32] = "";
        int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
            if (read(fd, text, sizeof text - 1) < 0)
                text[0] = 0;
            close(fd);
        }
        return atol(text);
    }

    int clock_gettime(clockid_t clock, struct timespec *out) {
        int status = (int)syscall(SYS_clock_gettime, clock, out);

        if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
            out->tv_sec += shift();
        return status;
    }

    time_t time(time_t *out) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        if (out)
            *out = now.tv_sec;
        return now.tv_sec;
    }

    int gettimeofday(struct timeval *out, void *zone) {
        struct timespec now;

        (void)zone;
        clock_gettime(CLOCK_REALTIME, &now);
        out->tv_sec = now.tv_sec;
        out->tv_usec = now.tv_nsec / 1000;
        return 0;
    }
"""
HOUR = 3600
JUMPS = pytest.mark.parametrize("jump", [-5 * HOUR, 5 * HOUR], ids=["back", "forward"])
# How much of the time that a busy machine takes may be missed here.
SLACK = 60


class Clock:
    """The wall clock as a scenario's processes see it."""

    def __init__(self, scenario):
        source = scenario.write("shift.c", SHIFT)
        library = scenario.directory / "shift.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        self.file = scenario.directory / "shift"
        self.set(0)
        scenario.environment.update(LD_PRELOAD=str(library), CLOCK_SHIFT=str(self.file))
        # The sanitizer wants to be the first library; that matters only for functions that it replaces itself.
        sanitizer = scenario.environment.get("ASAN_OPTIONS", "")
        scenario.environment["ASAN_OPTIONS"] = f"{sanitizer}:verify_asan_link_order=0".lstrip(":")

    def set(self, seconds):
        part = self.file.with_suffix(".part")
        part.write_text(str(seconds))
        part.rename(self.file)


@pytest.fixture
def clock(scenario):
    yield Clock(scenario)
    for number in [name for name in os.listdir(scenario.home / "runs") if name.isdigit()]:
        scenario.start("kill", number).communicate(timeout=20)
    deadline = time.monotonic() + 5
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)


def call(scenario, *arguments, status=0):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=20)
    assert process.returncode == status, (arguments, out, err)
    return out.decode()


def begin(scenario, text, *arguments, **options):
    job = scenario.job(scenario.script(text), **options)
    return call(scenario, "run", "-d", job, *arguments).strip()


def journal(scenario, run="1"):
    return [json.loads(line) for line in (scenario.home / "runs" / run / "events.jsonl").read_text().splitlines()]


def hours(line):
    return int(line["time"][8:10]) * 24 + int(line["time"][11:13])


GATED = "echo before; touch up; while [ ! -e go ]; do sleep 0.02; done; echo after; while [ ! -e end ]; do sleep 0.02; done"


def jumped(scenario, clock, jump):
    """A run in whose middle the clock jumps, and that goes on."""
    began = time.monotonic()
    run = begin(scenario, GATED)
    scenario.wait_for("up")
    time.sleep(1.2)
    clock.set(jump)
    scenario.opened = time.monotonic()
    (scenario.directory / "go").touch()
    deadline = time.monotonic() + 10
    while b"after" not in (scenario.home / "runs" / run / "logs" / "master.0.log").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return run, began


@JUMPS
def test_a_living_run_is_as_old_as_it_is(scenario, clock, jump):
    run, began = jumped(scenario, clock, jump)
    told = json.loads(call(scenario, "status", run, "--json"))
    assert 1.2 <= told["duration_s"] <= time.monotonic() - began, told
    assert 1.1 <= told["tasks"][0]["duration_s"] <= told["duration_s"], told
    listed = json.loads(call(scenario, "ps", "--json"))
    assert 1.2 <= listed[0]["duration_s"] <= time.monotonic() - began, listed
    for shown in (call(scenario, "ps"), call(scenario, "status", run)):
        assert re.search(r"\b\d+s ago", shown) and not re.search(r"\d[hd] ago|\dh\d", shown), shown


@JUMPS
def test_durations_and_the_order_of_events_are_those_that_they_were(scenario, clock, jump):
    run, began = jumped(scenario, clock, jump)
    (scenario.directory / "end").touch()
    call(scenario, "logs", run, "-f")
    lines = journal(scenario, run)
    assert lines[-1]["status"] == "succeeded", lines
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    elapsed = [line["elapsed"] for line in lines]
    assert elapsed == sorted(elapsed) and 1.2 <= elapsed[-1] <= time.monotonic() - began, lines
    # The wall clock's own words are kept in the lines: the jump is played, and can be seen.
    assert abs(hours(lines[-1]) - hours(lines[0])) >= 4, lines
    told = json.loads(call(scenario, "status", run, "--json"))
    assert told["duration_s"] == pytest.approx(elapsed[-1], abs=0.002)
    shown = call(scenario, "status", run)
    started, ended = (re.search(rf"^ +{word} +(\S+)Z", shown, re.M)[1] for word in ("started", "ended"))
    assert started < ended and started[:13] <= ended[:13], shown
    passed = [time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%S")) for at in (started, ended)]
    assert 1 <= passed[1] - passed[0] <= SLACK, shown
    assert not re.search(r"\d[hd] ago", shown), shown


@JUMPS
def test_the_age_of_a_line_is_what_has_passed_since(scenario, clock, jump):
    run, began = jumped(scenario, clock, jump)
    age = time.monotonic() - began
    assert call(scenario, "logs", run, "--since", "2h") == "before\nafter\n"
    assert call(scenario, "logs", run, "--since", f"{age + 1:.3f}s") == "before\nafter\n"
    time.sleep(0.5)
    # The second line is younger than the gate's opening, the first older by 1.2 s or more.
    assert call(scenario, "logs", run, "--since", f"{time.monotonic() - scenario.opened + 1.1:.3f}s") == "after\n"
    assert call(scenario, "logs", run, "--since", "0.1s") == ""
    times = [at for at, _ in struct.iter_unpack("<qQ", (scenario.home / "runs/1/logs/master.0.idx").read_bytes())]
    assert times == sorted(times) and times[-1] - times[0] < SLACK * 1e6, times
    # After the end, and by a time that a user copies from what is shown.
    (scenario.directory / "end").touch()
    call(scenario, "logs", run, "-f")
    assert call(scenario, "logs", run, "--since", "1h") == "before\nafter\n"
    stamped = [line.split() for line in call(scenario, "logs", run, "--timestamps").splitlines()]
    assert [text for _, text in stamped] == ["before", "after"]
    assert call(scenario, "logs", run, "--since", stamped[1][0]) == "after\n"


@JUMPS
def test_time_outs_neither_fire_nor_hang(scenario, clock, jump):
    """A task that does not end gets its grace time: no more, and not less."""
    text = "trap 'date +%s%N > told' TERM; touch up; while :; do sleep 0.02; done"
    run = begin(scenario, text, "--grace", "1.5")
    scenario.wait_for("up")
    stopping = scenario.start("stop", run)
    scenario.wait_for("told")
    told = time.monotonic()
    clock.set(jump)
    out, err = stopping.communicate(timeout=20)
    took = time.monotonic() - told
    assert stopping.returncode == 0, (out, err)
    assert took > 1, f"it was killed {took:.2f} s after it was told, of a grace of 1.5"
    assert journal(scenario, run)[-1]["status"] == "stopped"


@JUMPS
def test_a_queue_is_in_order_and_its_time_out_holds(scenario, clock, jump):
    """Who came first is served first, also when the clock says that the second came before."""
    cores = os.cpu_count()
    head = f"environment:\n  resources:\n    cpu: {{requests: {cores}}}"
    holder = begin(scenario, "touch up; exec sleep 600", head=head)
    scenario.wait_for("up")
    text = "touch first; exec sleep 600"
    first = call(scenario, "run", "-d", scenario.job(scenario.script(text, "first.sh"), head=head, name="first.yml")).strip()
    clock.set(jump)
    late = scenario.job(scenario.script("touch late", "late.sh"), head=head, name="late.yml")
    second = call(scenario, "run", "-d", late, "--timeout", "1.5").strip()
    why = call(scenario, "why", first)
    assert not re.search(r"\b\d+[hd]\b", why), why
    assert not re.search(r"\b\d+[hd]\b", call(scenario, "node"))
    assert not state_is_over(scenario, second)
    deadline = time.monotonic() + 15
    while not state_is_over(scenario, second):
        assert time.monotonic() < deadline, "the time-out hangs"
        time.sleep(0.05)
    assert "within 1.5s" in journal(scenario, second)[-1]["reason"]
    assert journal(scenario, second)[-1]["elapsed"] >= 1.5 - 0.01  # the loop's own clock is that coarse
    call(scenario, "stop", holder)
    scenario.wait_for("first")
    assert not (scenario.directory / "late").exists()


def state_is_over(scenario, run):
    return journal(scenario, run)[-1].get("status") in ("succeeded", "failed", "stopped")


def test_a_run_whose_supervisor_is_killed_is_settled_after_a_jump(scenario, clock):
    run = begin(scenario, "touch up; exec sleep 600")
    scenario.wait_for("up")
    clock.set(-5 * HOUR)
    kill_both(scenario, run)  # else one of them might still write an end of its own
    deadline = time.monotonic() + 10
    while json.loads(call(scenario, "status", run, "--json"))["status"] != "failed":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    elapsed = [line["elapsed"] for line in journal(scenario, run)]
    assert elapsed == sorted(elapsed) and elapsed[-1] < SLACK
