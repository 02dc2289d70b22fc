# SPDX-License-Identifier: Apache-2.0
"""The commands over runs: each names, shows, ends or removes runs that others have started."""
import contextlib
import fcntl
import json
import os
import re
import signal
import stat
import struct
import time

import pytest
from conftest import keeper_of
from shapes import assert_run, assert_shape, documented

SLEEPER = "touch up.$RANK; exec sleep 600"
GATED = "echo early; touch up.$RANK; while [ ! -e go ]; do sleep 0.02; done; echo late"
STUBBORN = """
    trap '' TERM INT HUP
    touch up.$RANK
    while :; do sleep 0.1; done
"""


def call(scenario, *arguments, status=0, seconds=20, **options):
    """Runs one command to its end. A run that it leaves going on is no fault of it."""
    process = scenario.start(*arguments, **options)
    out, err = process.communicate(timeout=seconds)
    assert status in (None, process.returncode), f"{arguments}: {process.returncode}\n{out.decode()}\n{err.decode()}"
    return out.decode(), err.decode()


def told(scenario, *arguments):
    return json.loads(call(scenario, *arguments, "--json")[0])


@pytest.fixture
def stage(scenario):
    """A stage on which no run goes on when the curtain falls."""
    yield scenario
    runs = scenario.home / "runs"
    ids = [name for name in os.listdir(runs) if name.isdigit()] if runs.exists() else []
    if ids:
        process = scenario.start("kill", *ids)
        process.communicate(timeout=20)
    deadline = time.monotonic() + 5
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)


def begin(stage, text, *arguments, tasks=1, name=None, file="job.yml"):
    """Starts a run that is left to itself, waits until its tasks are up, and gives its id."""
    framework = {"framework": "pytorch", "workers": tasks - 1} if tasks > 1 else {}
    head = f"name: {name}" if name else ""
    text = "RANK=${RANK:-0}\n" + text
    for path in stage.directory.glob("up.*"):
        path.unlink()
    job = stage.job(stage.script(text, f"{file}.sh"), head=head, name=file, **framework)
    out, _ = call(stage, "run", "-d", job, *arguments)
    stage.wait_for("up.*", tasks)
    return out.strip()


def finished(stage, text="true", status=0, name=None, file="done.yml"):
    """A run that is over; gives its id."""
    job = stage.job(stage.script(text, f"{file}.sh"), head=f"name: {name}" if name else "", name=file)
    ended = stage.run(job)
    assert ended.status == status, ended
    return re.search(r"^run (\d+):", ended.err, re.M)[1]


# -- what the documents promise


def test_every_line_of_a_journal_is_as_documented(stage):
    """And all that is documented is seen in one of these runs, but for what takes a broken machine."""
    seen = set()
    finished(stage)
    finished(stage, "exit 3", status=3, file="fails.yml")
    finished(stage, "kill -9 $$", status=137, file="dies.yml")
    stage.job("no-such-command", name="none.yml", head="name: mnist")
    assert stage.run("none.yml").status == 127
    call(stage, "kill", begin(stage, SLEEPER, tasks=3))
    stage.job("sh -c 'exit 3'", name="again.yml", head="environment: {max_restarts: 1}")
    assert stage.run("again.yml", "--backoff", "0").status == 3
    call(stage, "restart", "@", status=3)
    stage.job("true", name="reserves.yml", head="environment: {resources: {cpu: {requests: 1}}}")
    assert stage.run("reserves.yml").status == 0
    common = documented("run-directory.md", "The journal")
    for journal in (stage.home / "runs").glob("*/events.jsonl"):
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
        assert lines[0]["event"] == "created" and lines[-1]["status"] in ["succeeded", "failed", "stopped"]
        for line in lines:
            assert_shape({name: line[name] for name in common}, "The journal", "run-directory.md")
            assert_shape(line, line["event"], "run-directory.md", besides=common)
            seen |= {(line["event"], name) for name in line}
    wanted = {
        (event, name)
        for event in ["created", "status", "attempt", "task", "phase", "checked", "queued", "reserved"]
        for name in documented("run-directory.md", event)
    }
    rare = {("created", "made_by"), ("checked", "left"), ("task", "log_lost"), ("task", "limit"), ("task", "cpus")}
    assert wanted - seen <= rare | {(event, name) for event in ("status", "attempt") for name in ("place", "hint")}


# -- which run


def test_a_run_is_named_by_id_name_uuid_or_at(stage):
    first, second = finished(stage, name="mnist"), finished(stage, name="mnist")
    third = finished(stage, name="other")
    uuid = told(stage, "status", first)["uuid"]
    for text, run in [(first, first), ("mnist", second), ("other", third), ("@", third), (uuid[:12], first),
                      (uuid, first), (uuid.upper(), first)]:  # fmt: skip
        assert told(stage, "status", text)["id"] == int(run), text


@pytest.mark.parametrize("command", ["status", "stop", "kill", "attach", "rm", "outputs"])
def test_a_name_that_fits_no_run_is_an_error_with_the_way_out(stage, command):
    failure = 125 if command == "attach" else 1
    _, err = call(stage, command, "@", status=failure)
    assert "no runs" in err
    finished(stage)
    for text in ["99", "nobody", "../1", "", "ffffffffff"]:
        out, err = call(stage, command, text, status=failure)
        assert out == "" and "there is no run" in err and "myelin ps -a" in err
    out, err = call(stage, command, status=125 if command == "attach" else 2)
    assert f"try 'myelin help {command}'" in err


# -- ps


def test_ps_lists_what_goes_on_and_with_all_the_rest_newest_first(stage):
    assert told(stage, "ps") == []
    done = finished(stage, name="done")
    failed = finished(stage, f"echo {'ö' * 200}; exit 3", status=3)
    living = begin(stage, SLEEPER, tasks=3, name="living")
    (row,) = told(stage, "ps")
    assert_shape(row, "A list of runs")
    assert (row["id"], row["status"], row["name"]) == (int(living), "running", "living")
    assert row["tasks"] == {"total": 3, "running": 3, "succeeded": 0, "failed": 0, "stopped": 0}
    rows = told(stage, "ps", "-a")
    for row in rows:
        assert_shape(row, "A list of runs")
    assert [row["id"] for row in rows] == [int(living), int(failed), int(done)]
    assert [row["status"] for row in rows] == ["running", "failed", "succeeded"]
    assert [row["exit_status"] for row in rows] == [None, 3, 0]
    out, err = call(stage, "ps")
    assert "3/3" in out and "living" in out and len(out.splitlines()) == 2 and err == ""
    out, err = call(stage, "ps", "-a", "-n", "1")
    assert len(out.splitlines()) == 2 and "2 older runs are not shown" in err
    assert len(told(stage, "ps", "-a", "-n", "2")) == 2
    line = call(stage, "ps", "-a")[0].splitlines()[2]
    assert line.endswith(rows[1]["reason"]), "a pipe gets the whole reason"
    assert "'x'" in call(stage, "ps", "-n", "x", status=2)[1]


def test_the_duration_of_a_living_run_counts_on(stage):
    begin(stage, SLEEPER)
    first = told(stage, "ps")[0]["duration_s"]
    time.sleep(0.3)
    assert told(stage, "ps")[0]["duration_s"] >= first + 0.25
    assert told(stage, "status", "@")["tasks"][0]["duration_s"] >= 0.25


def rewrite_journal(stage, run, old, new):
    """Of a living run, in place: whoever appends goes on behind it."""
    journal = stage.home / "runs" / run / "events.jsonl"
    text = journal.read_text()
    changed = re.sub(old, new, text)
    assert changed != text and len(changed) == len(text)
    with open(journal, "r+") as file:
        file.write(changed)


def test_a_clock_that_is_set_does_not_change_how_long_a_run_goes_on(stage):
    run = begin(stage, SLEEPER)
    rewrite_journal(stage, run, r'"time": "\d{4}', '"time": "2001')
    value = told(stage, "status", run)
    assert value["duration_s"] < 3600 and value["tasks"][0]["duration_s"] < 3600, "by the wall clock it is years"
    rewrite_journal(stage, run, r'"time": "\d{4}', '"time": "2999')
    time.sleep(0.3)
    assert told(stage, "status", run)["duration_s"] >= value["duration_s"] + 0.25
    assert told(stage, "ps")[0]["duration_s"] >= value["duration_s"] + 0.25


def test_where_the_journals_clock_is_another_boots_the_wall_clock_counts(stage):
    run = begin(stage, SLEEPER)
    rewrite_journal(stage, run, r'"boot_id": ".', '"boot_id": "x')
    first = told(stage, "status", run)["duration_s"]
    time.sleep(0.3)
    assert first + 0.25 <= told(stage, "status", run)["duration_s"] < 3600


def test_what_would_steer_a_terminal_is_shown_harmless(stage):
    stage.write("job.yml", 'version: 1\nkind: experiment\nrun: {cmd: "echo \\e[31mred"}\n')
    assert stage.run("job.yml").status == 0
    assert "\033" in told(stage, "status", "@")["command"]
    assert "\033" not in call(stage, "status", "@")[0]


# -- status


def test_status_tells_of_a_living_run(stage):
    run = begin(stage, SLEEPER, tasks=4, name="mnist")
    value = told(stage, "status", run)
    assert_run(value)
    assert (value["status"], value["phase"], value["exit_status"]) == ("running", "running", None)
    assert {task["status"] for task in value["tasks"]} == {"running"}
    for task in value["tasks"]:
        os.kill(task["pid"], 0)
    assert value["directory"] == str(stage.directory)
    out, _ = call(stage, "status", run)
    assert f"run {run} (mnist): running for " in out
    assert re.search(r"^worker\[0-2\] +running", out, re.M), out
    assert re.search(r"^master\.0 +running +\d+", out, re.M), out


def test_status_tells_of_a_failure_who_how_and_the_last_lines(stage):
    text = 'if [ "$RANK" = 1 ]; then echo oops; exit 7; fi; exec sleep 600'
    ended = stage.run(stage.job(stage.script(text), "pytorch", workers=3))
    assert ended.status == 7, ended
    out, _ = call(stage, "status", "@")
    assert re.search(r"^run 1: failed after ", out) and "oops" in out
    assert re.search(r"exit status +7$", out, re.M) and "nothing; it was looked up" in out
    assert re.search(r"^worker\.0 +failed +exited with code 7", out, re.M), out
    assert re.search(r"^worker\[1-2\] +stopped +was ended by signal 15 \(SIGTERM\)", out, re.M), out
    assert "last lines of worker.0" in out
    value = told(stage, "status", "@")
    assert_run(value)
    assert value["first_failed"]["last_lines"] == ["oops"]
    assert value["left_nothing"] is True


def test_status_says_the_same_as_run_did(stage):
    ended = stage.run(stage.job("echo hello", "pytorch", workers=2), "--json")
    assert told(stage, "status", "@") == json.loads(ended.out)
    assert_run(json.loads(ended.out))


def test_a_run_whose_supervisor_and_keeper_were_killed_is_never_shown_as_living(stage):
    run = begin(stage, SLEEPER, tasks=2)
    keeper, supervisor = keeper_of(stage, run)
    os.kill(keeper, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while stage.left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert told(stage, "ps") == []
    value = told(stage, "status", run)
    assert (value["status"], value["exit_status"]) == ("failed", 125)
    assert "were killed" in value["reason"] and value["left_nothing"] is False
    assert {task["status"] for task in value["tasks"]} == {"stopped"}
    assert told(stage, "status", run)["reason"] == value["reason"], "it is settled once"
    assert "is over already: it failed" in call(stage, "stop", run)[1]


# -- stop and kill


def test_stop_returns_when_nothing_of_the_run_is_left(stage):
    run = begin(stage, SLEEPER, tasks=3)
    _, err = call(stage, "stop", run)
    assert stage.left() == {}
    assert f"run {run}: stopping 3 tasks" in err and f"run {run} was stopped after" in err
    assert told(stage, "status", run)["exit_status"] == 130
    _, err = call(stage, "stop", run)
    assert f"run {run} is over already: it was stopped" in err


def test_stop_kills_what_ignores_it_after_its_timeout(stage):
    run = begin(stage, STUBBORN, "--grace", "60", tasks=2)
    began = time.monotonic()
    _, err = call(stage, "stop", run, "--timeout", "0.5")
    assert 0.4 < time.monotonic() - began < 5 and "killing the tasks that are left" in err
    assert stage.left() == {} and told(stage, "status", run)["status"] == "stopped"
    assert "takes seconds" in call(stage, "stop", run, "--timeout", "soon", status=2)[1]


def test_stop_waits_for_the_grace_time_of_the_run(stage):
    run = begin(stage, STUBBORN, "--grace", "0.5")
    began = time.monotonic()
    call(stage, "stop", run)
    assert 0.4 < time.monotonic() - began < 5
    assert stage.left() == {}


def test_kill_does_not_wait(stage):
    run = begin(stage, STUBBORN, "--grace", "60", tasks=2)
    began = time.monotonic()
    _, err = call(stage, "kill", run)
    assert time.monotonic() - began < 5 and "killing 2 tasks" in err
    assert stage.left() == {} and told(stage, "status", run)["tasks"][0]["signal"] == signal.SIGKILL


def test_stop_ends_many_runs_at_once_and_goes_on_after_a_wrong_name(stage):
    first = begin(stage, STUBBORN, "--grace", "4", file="a.yml")
    second = begin(stage, STUBBORN, "--grace", "4", file="b.yml")
    began = time.monotonic()
    _, err = call(stage, "stop", first, "nobody", second, status=1)
    assert time.monotonic() - began < 8, "one after the other they would take more than eight seconds"
    assert "no run 'nobody'" in err and stage.left() == {}
    assert [row["status"] for row in told(stage, "ps", "-a")] == ["stopped", "stopped"]


@pytest.mark.parametrize("command, signal_name", [("stop", "INT"), ("stop", "TERM"), ("kill", "INT")])
def test_an_interrupt_of_stop_leaves_the_run_ending_and_says_how_to_follow_it(stage, command, signal_name):
    run = begin(stage, STUBBORN, "--grace", "60")
    held = os.open(stage.home / "runs" / run, os.O_RDONLY | os.O_DIRECTORY)
    # As if a process of it was left: not even a kill ends it before the interrupt.
    fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    process = stage.start(command, run, "--json")
    assert b"ing 1 task" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(getattr(signal, f"SIG{signal_name}"))
    out, err = process.communicate(timeout=10)
    os.close(held)
    assert process.returncode == 130, err
    assert f"run {run} goes on ending; 'myelin attach {run}' follows it" in err.decode(), err
    (order,) = json.loads(out)
    assert (order["outcome"], order["id"]) == ("left", int(run)) and "goes on ending" in order["error"]
    call(stage, "kill", run)
    assert told(stage, "status", run)["status"] == "stopped" and stage.left() == {}


def test_an_interrupt_of_a_forced_removal_keeps_the_run(stage):
    first, second = (begin(stage, STUBBORN, "--grace", "60", file=name) for name in ("a.yml", "b.yml"))
    process = stage.start("rm", "--force", first, second)
    assert b"stopping it" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130 and out == b"", err
    assert f"run {first} is not removed: run {first} goes on ending" in err.decode(), err
    assert f"run {second} is not removed: interrupted before" in err.decode(), err
    assert [row["id"] for row in told(stage, "ps")] == [int(second), int(first)]


def test_stop_and_kill_tell_a_script_what_came_of_each_run(stage):
    over, living = finished(stage), begin(stage, SLEEPER, tasks=2)
    out, err = call(stage, "stop", living, "nobody", over, "--json", status=1)
    orders = json.loads(out)
    for order in orders:
        assert_shape(order, "Runs that are told to end")
        if order["run"]:
            assert_shape(order["run"], "A list of runs")
    assert [(order["named"], order["id"], order["outcome"]) for order in orders] == [
        (living, int(living), "ended"), ("nobody", None, "refused"), (over, int(over), "was_over")]
    assert "no run 'nobody'" in orders[1]["error"] and "no run 'nobody'" in err
    assert [order["run"]["status"] if order["run"] else None for order in orders] == ["stopped", None, "succeeded"]
    run = begin(stage, STUBBORN, "--grace", "60")
    (order,) = told(stage, "kill", run)
    assert (order["outcome"], order["run"]["status"]) == ("ended", "stopped")


def test_whoever_follows_a_run_is_told_that_it_was_stopped(stage):
    job = stage.job(stage.script("touch up.0; exec sleep 600"))
    process = stage.start("run", job)
    stage.wait_for("up.0")
    call(stage, "stop", "@")
    ended = stage.finish(process)
    assert ended.status == 130 and "was stopped" in ended.err, ended


def test_a_directory_without_a_journal_is_no_run_but_can_be_removed(stage):
    finished(stage)
    (stage.home / "runs" / "2" / "outputs").mkdir(parents=True)
    assert [row["id"] for row in told(stage, "ps", "-a")] == [1]
    assert told(stage, "status", "@")["id"] == 1
    os.utime(stage.home / "runs" / "2", (0, 0))
    assert "never began" in call(stage, "status", "2")[0]
    assert (told(stage, "status", "2")["status"], told(stage, "status", "2")["exit_status"]) == ("failed", 125)
    assert "never began" in call(stage, "stop", "2", status=1)[1]
    call(stage, "attach", "2", status=125)
    call(stage, "rm", "2")
    assert os.listdir(stage.home / "runs") == ["1"]


# -- attach


def lines_of(out):
    return [line.split("│ ", 1)[1] for line in out.splitlines() if "│" in line]


def test_attach_shows_what_comes_and_ends_as_run_does(stage):
    run = begin(stage, GATED + "; exit 4")
    later = stage.start("attach", run)
    whole = stage.start("attach", run, "--from-start")
    time.sleep(0.5)
    (stage.directory / "go").touch()
    for process, lines in [(later, ["late"]), (whole, ["early", "late"])]:
        out, err = process.communicate(timeout=10)
        assert process.returncode == 4, err
        assert lines_of(out.decode()) == lines
        assert f"run {run} failed after" in err.decode()


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_an_interrupt_leaves_the_run_alone(stage, name):
    run = begin(stage, SLEEPER, tasks=2)
    process = stage.start("attach", run)
    process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(getattr(signal, f"SIG{name}"))
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    assert f"left run {run}, which goes on" in err.decode()
    assert [row["id"] for row in told(stage, "ps")] == [int(run)]


def test_attach_to_a_run_that_is_over_reports_it(stage):
    run = finished(stage, "echo said; exit 6", status=6)
    out, err = call(stage, "attach", run, status=6)
    assert out == "" and "failed after" in err
    out, _ = call(stage, "attach", run, "--from-start", status=6)
    assert lines_of(out) == ["said"]


def test_attach_tells_a_script_the_outcome_as_run_does(stage):
    run = begin(stage, GATED + "; exit 4")
    process = stage.start("attach", run, "--from-start", "--json")
    left = stage.start("attach", run, "--json")
    assert left.stderr.readline()
    time.sleep(0.5)
    left.send_signal(signal.SIGINT)
    value = json.loads(left.communicate(timeout=10)[0])
    assert_run(value)
    assert left.returncode == 0 and (value["status"], value["exit_status"]) == ("running", None)
    (stage.directory / "go").touch()
    out, err = process.communicate(timeout=10)
    assert process.returncode == 4 and lines_of(err.decode()) == ["early", "late"]
    value = json.loads(out)
    assert_run(value)
    assert value == told(stage, "status", run) and value["first_failed"]["exit_code"] == 4


def test_a_detached_run_tells_a_script_what_it_is(stage):
    job = stage.job(stage.script("touch up.0; exec sleep 600"))
    value = told(stage, "run", "-d", job)
    assert_run(value)
    assert value["exit_status"] is None and [row["id"] for row in told(stage, "ps")] == [value["id"]]


# -- rm


def test_rm_tells_a_script_what_came_of_each_run(stage):
    over, living = finished(stage), begin(stage, SLEEPER)
    out, _ = call(stage, "rm", over, living, "nobody", "--json", status=1)
    orders = json.loads(out)
    for order in orders:
        assert_shape(order, "Runs that are removed")
    assert [(order["id"], order["outcome"]) for order in orders] == [
        (int(over), "removed"), (int(living), "refused"), (None, "refused")]
    assert orders[0]["freed_bytes"] > 0 and orders[0]["error"] is None
    assert "is going on" in orders[1]["error"] and "no run 'nobody'" in orders[2]["error"]
    (order,) = told(stage, "rm", "--force", living)
    assert order["outcome"] == "removed" and os.listdir(stage.home / "runs") == []


def test_rm_removes_and_says_what_it_freed(stage):
    runs = [finished(stage) for _ in range(3)]
    out, err = call(stage, "rm", runs[0], "nobody", runs[2], status=1)
    assert re.findall(r"^removed run (\d+), [\d.]+ .?i?B freed$", out, re.M) == [runs[0], runs[2]]
    assert "no run 'nobody'" in err
    assert os.listdir(stage.home / "runs") == [runs[1]]


def test_rm_names_are_looked_up_before_anything_is_removed(stage):
    finished(stage, name="a")
    finished(stage, name="a")
    call(stage, "rm", "a", "@", status=1)
    assert os.listdir(stage.home / "runs") == ["1"]


def test_rm_refuses_a_living_run_unless_forced(stage):
    run = begin(stage, SLEEPER, tasks=2)
    _, err = call(stage, "rm", run, status=1)
    assert f"myelin stop {run}" in err and "--force" in err
    assert [row["id"] for row in told(stage, "ps")] == [int(run)]
    call(stage, "rm", run, "--force")
    assert stage.left() == {} and os.listdir(stage.home / "runs") == []


def test_rm_takes_whatever_a_task_has_left_and_follows_no_link(stage):
    run = finished(stage)
    outputs = stage.home / "runs" / run / "outputs"
    precious = stage.directory / "precious"
    precious.mkdir()
    (precious / "file").write_text("keep me")
    (outputs / "link").symlink_to(precious)
    (outputs / "up").symlink_to("..")
    (outputs / "loop").symlink_to("loop")
    for name in [b"-rf", b"new\nline", b"\xff\xfe", b" ", b"*", b".removed.0", b"lock"]:
        with open(os.path.join(os.fsencode(outputs), name), "wb") as file:
            file.write(b"x" * 5000)
    os.mkfifo(outputs / "fifo")
    locked = outputs / "locked"
    (locked / "inner").mkdir(parents=True)
    (locked / "inner" / "file").write_text("x")
    (locked / "link").symlink_to(precious)
    (locked / "inner").chmod(stat.S_IRUSR)
    locked.chmod(0)
    (outputs / "empty").mkdir()
    outputs.chmod(0o500)
    out, _ = call(stage, "rm", run)
    assert f"removed run {run}" in out
    assert os.listdir(stage.home / "runs") == []
    assert (precious / "file").read_text() == "keep me"


def test_rm_takes_directories_of_any_depth(stage):
    run = finished(stage)
    depth = 3000
    at = os.open(stage.home / "runs" / run / "outputs", os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    call(stage, "rm", run)
    assert os.listdir(stage.home / "runs") == []


def test_a_run_that_is_a_link_is_not_followed(stage):
    finished(stage)
    elsewhere = stage.directory / "elsewhere"
    (stage.home / "runs" / "1").rename(elsewhere)
    (stage.home / "runs" / "1").symlink_to(elsewhere)
    call(stage, "rm", "1", status=1)
    assert (elsewhere / "events.jsonl").exists() and (elsewhere / "outputs").exists()


@contextlib.contextmanager
def passing_by(stage, run):
    """Holds what a command holds that puts a run without an owner in order."""
    with open(stage.home / "runs" / run / "lock", "r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 0, 1)
        yield


def test_who_puts_a_run_in_order_is_waited_for_by_who_removes_it(stage):
    finished(stage)
    with passing_by(stage, "1"):
        remover = stage.start("rm", "1")
        time.sleep(0.3)
        assert remover.poll() is None
    out, err = remover.communicate(timeout=20)
    assert (remover.returncode, err) == (0, b""), (out, err)


def test_who_puts_a_run_in_order_for_ever_is_not_taken_for_its_supervisor(stage):
    finished(stage)
    with passing_by(stage, "1"):
        assert told(stage, "ps") == []
        _, err = call(stage, "rm", "1", status=1)
        assert "run 1 is just looked at by another command: try again" in err
    call(stage, "rm", "1")


def test_runs_can_be_started_while_others_are_listed_and_removed(stage):
    job = stage.job("true")
    listers = [
        stage.start("ps", under=["sh", "-c", 'while :; do "$@" -a >/dev/null 2>&1; "$@" >/dev/null 2>&1; done', "sh"])
        for _ in range(2)
    ]
    try:
        for _ in range(15):
            _, err = call(stage, "run", job)
            assert "succeeded" in err, err
            call(stage, "rm", "@")
    finally:
        for lister in listers:
            lister.kill()
            lister.communicate()
    deadline = time.monotonic() + 5
    while stage.left() and time.monotonic() < deadline:
        time.sleep(0.02)


# -- outputs


LEAVE = """
    cd "$POLYAXON_RUN_OUTPUTS_PATH"
    mkdir -p model/deep empty
    echo weights >model/w
    printf 12345 >model/deep/x
    echo log >log.txt
    ln -s model/w latest
    ln -s /etc/passwd out
    ln -s ../../x model/up
    chmod 751 log.txt
    touch -d 2020-01-02T03:04:05Z log.txt
"""


def test_outputs_are_listed_without_following_links(stage):
    run = finished(stage, LEAVE)
    rows = {row["path"]: row for row in told(stage, "outputs", run)}
    assert sorted(rows) == ["latest", "log.txt", "model/deep/x", "model/up", "model/w", "out"]
    for row in rows.values():
        assert_shape(row, "The files of a run")
    assert rows["model/deep/x"]["size"] == 5 and rows["log.txt"]["modified_at"] == "2020-01-02T03:04:05Z"
    assert rows["out"]["link_target"] == "/etc/passwd"
    assert [row["path"] for row in told(stage, "outputs", run, "model", "model/w")] == [
        "model/deep/x", "model/up", "model/w"
    ]  # fmt: skip
    assert [row["path"] for row in told(stage, "outputs", run, "./model//deep/")] == ["model/deep/x"]
    out, _ = call(stage, "outputs", run)
    assert re.search(r"^5 B +\S+Z +model/deep/x$", out, re.M) and "out -> /etc/passwd" in out


def test_outputs_can_be_copied_but_not_over_files_that_exist(stage):
    run = finished(stage, LEAVE)
    target = stage.directory / "result"
    _, err = call(stage, "outputs", run, "--copy", target)
    assert "copied 4 files" in err and "2 symbolic links out of the outputs were not copied" in err
    found = sorted(str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir())
    assert found == ["latest", "log.txt", "model/deep/x", "model/w"]
    assert (target / "latest").read_text() == "weights\n" and os.readlink(target / "latest") == "model/w"
    assert (target / "log.txt").stat().st_mtime == 1577934245
    assert stat.S_IMODE((target / "log.txt").stat().st_mode) == 0o751
    (target / "model" / "w").write_text("mine")
    (target / "log.txt").unlink()
    _, err = call(stage, "outputs", run, "--copy", target, status=1)
    assert "exists" in err and "--force" in err
    assert (target / "model" / "w").read_text() == "mine" and not (target / "log.txt").exists()
    call(stage, "outputs", run, "--copy", target, "--force")
    assert (target / "model" / "w").read_text() == "weights\n" and (target / "log.txt").exists()
    assert not list(target.rglob(".myelin-part*"))


def test_an_interrupt_ends_a_copy_and_leaves_no_half_file(stage):
    run = finished(stage, 'for i in 1 2 3 4 5 6; do head -c 60000000 /dev/zero >"$MYELIN_OUTPUTS_PATH/$i"; done')
    target = stage.directory / "result"
    process = stage.start("outputs", run, "--copy", target)
    stage.wait_for("result/.myelin-part*")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    left = [path.name for path in target.iterdir()]
    assert len(left) < 6 and all(name.isdigit() for name in left), left


def test_the_outputs_of_earlier_runs_are_told_to_the_tasks(stage):
    finished(stage, 'echo 1 >"$MYELIN_OUTPUTS_PATH/weights"')
    head = "environment: {outputs: {experiments: [%s], jobs: [1]}}"
    told_paths = stage.directory / "told"
    job = stage.job(f"printenv POLYAXON_REFS_OUTPUTS_PATHS > {told_paths}", head=head % 1)
    call(stage, "run", job)
    outputs = str(stage.home / "runs" / "1" / "outputs")
    assert json.loads(told_paths.read_text()) == {"jobs": [outputs], "experiments": [outputs]}
    _, err = call(stage, "run", stage.job("true", head=head % 99), status=125)
    assert "`environment.outputs` names run 99" in err


def test_a_run_with_a_command_that_is_longer_than_a_line_of_the_journal_is_there(stage):
    job = stage.job("true " + "x" * 100 + " 'y'" * 80000)
    call(stage, "run", job, status=None)
    run = told(stage, "status", "@")
    assert len(told(stage, "ps", "-a")) == 1
    assert run["command"].startswith("true xxx") and run["command"].endswith("…") and len(run["command"]) < 10000


@pytest.mark.parametrize("path", ["..", "../logs", "model/../../events.jsonl", "/etc/passwd", "out/x", "latest/x", "nothing"])
def test_no_path_leads_out_of_the_outputs(stage, path):
    run = finished(stage, LEAVE)
    out, err = call(stage, "outputs", run, path, "--json", status=1)
    assert list(json.loads(out)) == ["error"] and err.startswith("myelin: ")


@pytest.mark.parametrize("path", ["{name}x", "{name}x/y", "d/{name}x"])
def test_a_name_that_is_too_long_is_not_taken_for_the_file_that_begins_alike(stage, path):
    name = "n" * 255
    run = finished(stage, f'cd "$POLYAXON_RUN_OUTPUTS_PATH" && mkdir d && touch {name} d/{name}')
    assert len(told(stage, "outputs", run, name, f"d/{name}")) == 2
    out, err = call(stage, "outputs", run, path.format(name=name), "--json", status=1)
    assert list(json.loads(out)) == ["error"] and "File name too long" in err


def test_a_copy_does_not_follow_links_of_its_target(stage):
    run = finished(stage, LEAVE)
    target, elsewhere = stage.directory / "result", stage.directory / "elsewhere"
    target.mkdir()
    elsewhere.mkdir()
    (target / "model").symlink_to(elsewhere)
    call(stage, "outputs", run, "--copy", target, "--force", status=1)
    assert os.listdir(elsewhere) == []


def test_a_run_without_outputs_says_so(stage):
    run = finished(stage)
    assert told(stage, "outputs", run) == []
    out, err = call(stage, "outputs", run)
    assert out == "" and "has no outputs" in err
