# SPDX-License-Identifier: Apache-2.0
"""Whatever ends a run, nothing of it is left: each of these is also held to that by the stage."""
import json
import os
import pathlib
import random
import signal
import time

import pytest
from conftest import SECONDS, keeper_of, state_of

SLEEPERS = "touch up.$RANK; exec sleep 600"
STUBBORN = """
    trap '' TERM INT HUP
    touch up.$RANK
    while :; do sleep 0.1; done
"""


def start_gang(scenario, text, *arguments, size=4):
    job = scenario.job(scenario.script(text), "pytorch", workers=size - 1)
    process = scenario.start("run", job, *arguments)
    scenario.wait_for("up.*", size)
    return process


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_stopped_run_exits_with_130_and_takes_all_tasks_along(scenario, name):
    process = start_gang(scenario, SLEEPERS)
    began = time.monotonic()
    process.send_signal(getattr(signal, f"SIG{name}"))
    ended = scenario.finish(process)
    assert ended.status == 130, ended
    assert time.monotonic() - began < 2, "tasks that can be stopped are stopped at once"


def test_a_stopped_run_names_no_task_as_failed(scenario):
    process = start_gang(scenario, SLEEPERS)
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    verdict = ended.err.splitlines()[-1]
    assert "stopped" in verdict and "failed" not in verdict, ended


def test_an_interrupt_while_tasks_are_being_started_is_a_stop_too(scenario):
    """Ctrl-C reaches the whole process group, and in it tasks that have not left it yet."""
    job = scenario.job("sleep 600", "pytorch", workers=63)
    for milliseconds in range(0, 20, 2):
        process = scenario.start("run", job, start_new_session=True)
        process.stderr.readline()  # said just before the first task is started
        time.sleep(milliseconds / 1000)
        os.killpg(process.pid, signal.SIGINT)
        ended = scenario.finish(process)
        assert ended.status == 130, ended
        assert "stopped" in ended.err.splitlines()[-1], ended


def test_gangs_that_end_as_soon_as_they_begin_never_hang(scenario):
    """Tasks are over while others are still being started. bench/launch --loop does more of it."""
    job = scenario.job("/bin/true", "pytorch", workers=63)
    for _ in range(20):
        ended = scenario.run(job)
        assert ended.status == 0 and ended.out == "", ended


def test_a_task_may_use_its_grace_time_to_finish(scenario):
    text = "trap 'sleep 0.3; touch saved.$RANK; exit 0' TERM; touch up.$RANK; while :; do sleep 0.05; done"
    process = start_gang(scenario, text, "--grace", "5", size=2)
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    assert ended.status == 130, ended
    assert len(list(scenario.directory.glob("saved.*"))) == 2


def test_a_task_that_ignores_sigterm_is_killed_after_the_grace_time(scenario):
    process = start_gang(scenario, STUBBORN, "--grace", "1", size=2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    assert ended.status == 130, ended
    assert 0.9 < time.monotonic() - began < 2.5


def test_a_second_interrupt_kills_at_once(scenario):
    process = start_gang(scenario, STUBBORN, "--grace", "60", size=2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    assert ended.status == 130, ended
    assert time.monotonic() - began < 2


def test_a_failure_too_waits_no_longer_than_the_grace_time(scenario):
    text = f'if [ "$RANK" = 1 ]; then sleep 0.3; exit 9; fi\n{STUBBORN}'
    ended = scenario.run(scenario.job(scenario.script(text), "pytorch", workers=1), "--grace", "1")
    assert ended.status == 9, ended
    assert 1 < ended.seconds < 3.5, ended


DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2):
                os.close(fd)
            open("daemon.%d" % os.getpid(), "w").close()
            time.sleep(600)
        os._exit(0)
    while not any(name.startswith("daemon.") for name in os.listdir(".")):
        time.sleep(0.01)
    sys.exit({code})
"""


@pytest.mark.parametrize("code", [0, 5])
def test_a_task_that_leaves_a_daemon_behind_leaves_nobody(scenario, code):
    ended = scenario.run(scenario.job(scenario.python(DAEMON.format(code=code))))
    assert ended.status == code, ended


def test_a_background_child_that_holds_the_output_open_does_not_hold_up_the_end(scenario):
    ended = scenario.run(scenario.job(scenario.script("sleep 600 & echo started")))
    assert ended.status == 0, ended
    assert ended.lines_of("master.0") == ["started"]
    assert ended.seconds < 5


def test_a_run_that_was_told_to_ignore_hangups_goes_on(scenario):
    """As nohup(1) does it: SIGHUP is ignored when the program starts."""
    job = scenario.job(scenario.script("touch up; sleep 0.5; touch done"))
    process = scenario.start("run", job, under=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
    scenario.wait_for("up")
    process.send_signal(signal.SIGHUP)
    ended = scenario.finish(process)
    assert ended.status == 0, ended
    assert (scenario.directory / "done").exists()


CHILDREN = "sleep 600 & setsid sleep 600 & sleep 0.1; touch up.$RANK; wait"


def nobody_is_left(scenario, seconds=5):
    deadline = time.monotonic() + seconds
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not scenario.clean()


@pytest.mark.parametrize("text", [pytest.param(SLEEPERS, id="tasks"), pytest.param(CHILDREN, id="their children")])
def test_nobody_survives_the_death_of_the_supervisor(scenario, text):
    process = start_gang(scenario, text, size=3)
    _, supervisor = keeper_of(scenario)
    os.kill(supervisor, signal.SIGKILL)
    ended = scenario.finish(process)
    assert ended.status == 125, ended
    assert "the supervisor was ended by signal 9 (SIGKILL)" in ended.err, ended
    assert nobody_is_left(scenario)


@pytest.mark.parametrize("text", [pytest.param(SLEEPERS, id="tasks"), pytest.param(CHILDREN, id="their children")])
def test_the_death_of_the_keeper_ends_the_run_and_is_told_as_what_it_is(scenario, text):
    process = start_gang(scenario, text, size=3)
    keeper, _ = keeper_of(scenario)
    os.kill(keeper, signal.SIGKILL)
    ended = scenario.finish(process)
    assert ended.status == 125 and "failed" in ended.err and "its keeper was killed" in ended.err, ended
    assert "stopped because of it: master.0, worker[0-1]" in ended.err, ended
    assert nobody_is_left(scenario)


def test_a_run_that_was_stopped_stays_so_when_its_keeper_dies_meanwhile(scenario):
    cmd = "trap 'touch told' TERM; touch up; while [ ! -e go ]; do sleep 0.05; done"
    process = scenario.start("run", scenario.job(scenario.script(cmd)))
    scenario.wait_for("up")
    keeper, _ = keeper_of(scenario)
    os.kill(keeper, signal.SIGTERM)
    scenario.wait_for("told")
    os.kill(keeper, signal.SIGKILL)
    (scenario.directory / "go").touch()
    ended = scenario.finish(process)
    assert ended.status == 130 and "was stopped" in ended.err, ended


def test_tasks_die_with_both_of_them_and_the_follower_says_so(scenario):
    process = start_gang(scenario, SLEEPERS, size=3)
    keeper, supervisor = keeper_of(scenario)
    os.kill(keeper, signal.SIGSTOP)  # so that it cannot answer the death of the other
    os.kill(supervisor, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    ended = scenario.finish(process, outlived_by_s=SECONDS)
    assert ended.status == 125, ended
    assert "were killed" in ended.err, ended
    assert nobody_is_left(scenario)


# -- a supervisor or a keeper that is suspended


def statuses(scenario, run=1):
    lines = (scenario.home / "runs" / str(run) / "events.jsonl").read_text().splitlines()
    return [event["status"] for event in map(json.loads, lines) if event["event"] == "status"]


def wait_until_suspended(*pids):
    deadline = time.monotonic() + 30
    while any(state_of(pid) != "T" for pid in pids):
        assert time.monotonic() < deadline, [state_of(pid) for pid in pids]
        time.sleep(0.005)


def end_by(scenario, command, seconds=60):
    """Ends run 1 by `stop`, `kill` or `rm --force`, and gives what is left of the command."""
    return scenario.finish(scenario.start(*command.split(), "1"), seconds)


def start_detached(scenario, text, *arguments):
    job = scenario.job(scenario.script(text), "pytorch", workers=1)
    process = scenario.start("run", "-d", *arguments, job)
    assert process.communicate(timeout=20)[0] == b"1\n"
    scenario.wait_for("up.*", 2)
    return keeper_of(scenario)


def test_a_supervisor_that_a_task_suspends_goes_on(scenario):
    """Its keeper continues it at once, without anybody who looks."""
    text = "kill -STOP $PPID; sleep 0.2; echo still heard; exit 3"
    ended = scenario.run(scenario.job(scenario.script(text)))
    assert ended.status == 3 and ended.lines_of("master.0") == ["still heard"], ended


@pytest.mark.parametrize("command", ["stop", "kill", "rm --force"])
def test_a_run_whose_keeper_and_supervisor_are_suspended_can_be_ended(scenario, command):
    keeper, supervisor = start_detached(scenario, SLEEPERS)
    os.kill(keeper, signal.SIGSTOP)  # first: it would continue the other
    os.kill(supervisor, signal.SIGSTOP)
    wait_until_suspended(keeper, supervisor)
    ended = end_by(scenario, command)
    assert ended.status == 0, ended
    if command == "rm --force":
        assert not (scenario.home / "runs" / "1").exists()
    else:
        assert statuses(scenario)[-1] == "stopped"


def test_a_keeper_that_is_suspended_does_not_outlive_its_run(scenario):
    text = "touch up.$RANK; while [ ! -e go ]; do sleep 0.02; done"
    keeper, _ = start_detached(scenario, text)
    os.kill(keeper, signal.SIGSTOP)
    wait_until_suspended(keeper)
    (scenario.directory / "go").touch()
    assert nobody_is_left(scenario, 30)
    assert statuses(scenario)[-1] == "succeeded"


@pytest.mark.parametrize("command", ["stop", "kill", "rm --force"])
def test_a_suspended_supervisor_whose_keeper_was_killed_can_be_ended(scenario, command):
    keeper, supervisor = start_detached(scenario, SLEEPERS, "--grace", "600")
    os.kill(keeper, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGSTOP)
    wait_until_suspended(keeper, supervisor)
    os.kill(keeper, signal.SIGKILL)
    ended = end_by(scenario, command)
    assert ended.status == 0, ended
    if command == "rm --force":
        assert not (scenario.home / "runs" / "1").exists()
    else:
        assert statuses(scenario)[-1] == "failed"


SUSPENDING = """
    import os, signal, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    supervisor = os.getppid()
    with open("/proc/%d/stat" % supervisor) as file:
        keeper = int(file.read().rpartition(")")[2].split()[1])
    victims = {"both": [supervisor, keeper]}.get(sys.argv[1], [supervisor])
    if sys.argv[1] == "stranded":
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
    open("up." + os.environ["RANK"], "w").close()
    while True:
        for pid in victims:
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                pass
"""


@pytest.mark.parametrize("command", ["stop", "kill", "rm --force"])
@pytest.mark.parametrize("who", ["supervisor", "both", "stranded"])
def test_a_task_that_suspends_them_again_and_again_is_ended_all_the_same(scenario, who, command):
    job = scenario.job(f"{scenario.python(SUSPENDING)} {who}", "pytorch", workers=1)
    process = scenario.start("run", "-d", "--grace", "600", job)
    assert process.communicate(timeout=20)[0] == b"1\n"
    scenario.wait_for("up.*", 1, 30)
    ended = end_by(scenario, command, 120)
    assert ended.status == 0, ended
    if command == "rm --force":
        assert not (scenario.home / "runs" / "1").exists()
    elif who == "stranded":
        assert statuses(scenario)[-1] == "failed"
    else:  # whether the supervisor had a moment to end the run itself is chance
        assert statuses(scenario)[-1] in ("stopped", "failed"), ended
        out, err = scenario.start("status", "1", "--json").communicate(timeout=20)
        assert json.loads(out)["left_nothing"] is True, out


def test_an_interrupt_of_run_ends_one_that_is_suspended(scenario):
    process = start_gang(scenario, SLEEPERS, size=2)
    keeper, supervisor = keeper_of(scenario)
    os.kill(keeper, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    assert ended.status == 130, ended


def first_keeper(scenario, seconds=10):
    """Who is named by the lock, as soon as somebody is."""
    lock, deadline = scenario.home / "runs" / "1" / "lock", time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return int(lock.read_text())
        except (OSError, ValueError):
            time.sleep(0.0005)
    raise AssertionError("nobody is named by the lock")


def children_of(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_if_there(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


@pytest.mark.parametrize("who", ["supervisor", "keeper", "both"])
@pytest.mark.parametrize("moment_ms", sorted(random.Random(5).sample(range(120), 7)))
def test_whenever_they_are_killed_the_run_ends_and_says_so(scenario, who, moment_ms):
    # Only what a task has detached survives both of them: see supervise/keeper.h.
    cmd = "exec sleep 600" if who == "both" else "setsid sleep 600 & exec sleep 600"
    process = scenario.start("run", scenario.job(scenario.script(cmd), "pytorch", workers=1))
    keeper = first_keeper(scenario)
    time.sleep(moment_ms / 1000)
    if who == "both":
        kill_if_there(keeper, signal.SIGSTOP)  # so that it cannot answer the death of the other
    deadline = time.monotonic() + 5
    while not (victims := children_of(keeper)) and who == "supervisor" and time.monotonic() < deadline:
        time.sleep(0.0005)
    for pid in {"supervisor": victims, "keeper": [keeper], "both": [*victims, keeper]}[who]:
        kill_if_there(pid)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 125 and b"failed" in err, err
    told = json.loads(scenario.start("status", "1", "--json").communicate(timeout=20)[0])
    assert (told["status"], told["exit_status"]) == ("failed", 125), told
    assert not {task["status"] for task in told["tasks"]} & {"running", "succeeded"}, told
    assert nobody_is_left(scenario)


def test_a_follower_that_dies_leaves_the_run_alone(scenario):
    job = scenario.job(scenario.script("touch up; while [ ! -e go ]; do sleep 0.05; done; touch done"))
    process = scenario.start("run", job)
    scenario.wait_for("up")
    process.kill()
    process.communicate(timeout=5)
    (scenario.directory / "go").touch()
    scenario.wait_for("done")
    assert nobody_is_left(scenario)


def test_a_closed_terminal_leaves_the_run_alone_unless_told(scenario):
    job = scenario.job(scenario.script("touch up; while [ ! -e go ]; do sleep 0.05; done; touch done"))
    process = scenario.start("run", job)
    scenario.wait_for("up")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=5)
    (scenario.directory / "go").touch()
    scenario.wait_for("done")
    assert nobody_is_left(scenario)
    process = start_gang(scenario, SLEEPERS, "--stop-on-hangup", size=2)
    process.send_signal(signal.SIGHUP)
    assert scenario.finish(process).status == 130
    assert nobody_is_left(scenario)
