# SPDX-License-Identifier: Apache-2.0
"""Tasks that remove or replace files of their own run: it goes on, or ends with a sentence; nobody waits for ever."""
import fcntl
import json
import os
import shutil
import signal
import struct
import time

import pytest
from conftest import keeper_of, lives, state_of

PLACES = {
    "nothing": lambda path: None,
    "a FIFO": lambda path: os.mkfifo(path),
    "a directory": lambda path: path.mkdir(),
    "a directory with a file": lambda path: (path.mkdir(), (path / "file").touch()),
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "an empty file": lambda path: path.touch(),
}
UNTIL_GO = "touch up; while [ ! -e go ]; do sleep 0.02; done; echo bye; exit $(cat go)"


def say(scenario, *arguments):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def directory_of(scenario, run=1):
    return scenario.home / "runs" / str(run)


def replace(path, place):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    PLACES[place](path)


def wait_until(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def go(scenario, code=0):
    part = scenario.write("go.part", f"{code}\n")
    part.rename(scenario.directory / "go")


def begin(scenario, text=UNTIL_GO):
    """A run that is followed, and waits for `go`."""
    process = scenario.start("run", scenario.job(scenario.script(text)))
    scenario.wait_for("up")
    keeper_of(scenario)
    return process


def is_locked(path):
    """Whether somebody holds the lock, as the program asks."""
    try:
        with open(path, "rb") as file:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            return struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK
    except OSError:
        return False


# -- the lock


@pytest.mark.parametrize("place", PLACES)
def test_a_living_run_is_not_lost_whatever_is_in_the_place_of_its_lock(scenario, place):
    detached = scenario.start("run", "-d", scenario.job(scenario.script(UNTIL_GO)))  # a follower would continue them
    assert detached.communicate(timeout=20)[0] == b"1\n"
    scenario.wait_for("up")
    lock = directory_of(scenario) / "lock"
    keeper, supervisor = keeper_of(scenario)
    os.kill(keeper, signal.SIGSTOP)  # so that nothing is put back while the others look
    os.kill(supervisor, signal.SIGSTOP)
    wait_until(lambda: state_of(keeper) == state_of(supervisor) == "T", "they are not suspended")
    replace(lock, place)
    for command in (["ps"], ["ps", "-a"], ["status", "1"], ["logs", "1"]):
        code, out, err = say(scenario, *command)
        assert code == 0 and "failed" not in out, (command, out, err)
    code, out, err = say(scenario, "rm", "1")
    assert code != 0 and directory_of(scenario).exists(), err
    for pid in (keeper, supervisor):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: lock.is_file() and not lock.is_symlink() and is_locked(lock), "the lock is not put back")
    assert keeper_of(scenario)[0] == keeper
    follower = scenario.start("attach", "1", "--from-start")
    go(scenario)
    ended = scenario.finish(follower)
    assert ended.status == 0 and "'lock' of the run's directory was removed or replaced" in ended.err, ended


def test_a_run_whose_lock_was_removed_can_be_stopped(scenario):
    process = begin(scenario, "touch up; exec sleep 600")
    (directory_of(scenario) / "lock").unlink()
    code, out, err = say(scenario, "stop", "1")
    assert code == 0 and "was stopped" in err, err
    assert scenario.finish(process).status == 130


def test_a_run_whose_lock_was_removed_still_belongs_to_its_keeper(scenario):
    """The keeper writes the end when the supervisor, which has put the lock back, dies."""
    process = begin(scenario, "touch up; exec sleep 600")
    lock = directory_of(scenario) / "lock"
    lock.unlink()
    wait_until(lambda: is_locked(lock), "the lock is not put back")
    os.kill(keeper_of(scenario)[1], signal.SIGKILL)
    ended = scenario.finish(process)
    assert ended.status == 125 and "the supervisor was ended by signal 9" in ended.err, ended


# -- the journal


@pytest.mark.parametrize("place", PLACES)
def test_the_journal_is_put_back_whatever_is_in_its_place(scenario, place):
    process = begin(scenario)
    journal = directory_of(scenario) / "events.jsonl"
    before = journal.read_bytes()
    replace(journal, place)
    for command in (["ps"], ["status", "1"], ["logs", "1"], ["stop", "nobody"]):
        say(scenario, *command)  # none of them waits for ever
    wait_until(lambda: journal.is_file() and not journal.is_symlink() and journal.read_bytes().startswith(before),
               "the journal is not put back")
    go(scenario, 3)
    ended = scenario.finish(process)
    assert ended.status == 3 and "'events.jsonl' of the run's directory was removed" in ended.err, ended
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["event"] == "created" and events[-1]["exit_status"] == 3
    assert json.loads(say(scenario, "status", "1", "--json")[1])["exit_status"] == 3


def test_a_journal_that_is_removed_just_before_the_end_has_it(scenario):
    text = f"rm {directory_of(scenario)}/events.jsonl; exit 3"
    ended = scenario.run(scenario.job(scenario.script(text)))
    assert ended.status == 3, ended
    assert json.loads(say(scenario, "status", "1", "--json")[1])["exit_status"] == 3


def test_the_keeper_saves_the_journal_too(scenario):
    process = begin(scenario, "touch up; exec sleep 600")
    _, supervisor = keeper_of(scenario)
    (directory_of(scenario) / "events.jsonl").unlink()
    os.kill(supervisor, signal.SIGKILL)
    ended = scenario.finish(process)
    assert ended.status == 125 and "the supervisor was ended by signal 9" in ended.err, ended
    assert json.loads(say(scenario, "status", "1", "--json")[1])["status"] == "failed"


# -- logs


@pytest.mark.parametrize("place", ["a FIFO", "a directory", "a link"])
@pytest.mark.parametrize("suffix", ["log", "idx"])
def test_something_else_in_the_place_of_a_log_holds_up_nobody(scenario, place, suffix):
    process = begin(scenario, UNTIL_GO.replace("echo bye", "echo 'ValueError: too late' >&2"))
    replace(directory_of(scenario) / "logs" / f"master.0.{suffix}", place)
    go(scenario, 3)
    ended = scenario.finish(process)
    assert ended.status == 3, ended
    if suffix == "log":
        assert "the log of master.0 cannot be written" in ended.err and "too late" in ended.err, ended
    for command in (["logs", "1"], ["logs", "1", "-t", "--tail", "3"], ["status", "1"], ["ps", "-a"]):
        assert say(scenario, *command)[0] == 0, command


def test_logs_that_are_removed_begin_again_and_the_cause_is_told(scenario):
    text = """
        echo first; touch up; while [ ! -e go ]; do sleep 0.02; done; sleep 1.1; echo second; sleep 0.1
        echo 'ValueError: the last line' >&2; exit 3
    """
    process = begin(scenario, text)
    wait_until(lambda: (directory_of(scenario) / "logs" / "master.0.log").exists(), "no line has come")
    shutil.rmtree(directory_of(scenario) / "logs")
    go(scenario)
    ended = scenario.finish(process)
    assert ended.status == 3 and "ValueError: the last line" in ended.err, ended
    assert "the log of master.0 was removed" in ended.err, ended
    code, out, err = say(scenario, "logs", "1")
    assert code == 0 and "6 bytes were lost here" in out and out.endswith("second\nValueError: the last line\n"), out


# -- the whole directory


def test_a_run_whose_directory_is_removed_by_its_task_ends_and_says_so(scenario):
    text = f"rm -rf {directory_of(scenario)}; touch up; exec sleep 600"
    process = scenario.start("run", scenario.job(scenario.script(text)))
    ended = scenario.finish(process, 60)
    assert ended.status == 125, ended
    verdict = ended.err.splitlines()[-1]
    assert f"its directory {directory_of(scenario)} was removed" in ended.err and "start the run again" in ended.err, ended
    assert "run 1 failed" in ended.err, verdict
    assert not directory_of(scenario).exists()


def test_a_run_that_removes_its_directory_and_exits_has_not_succeeded(scenario):
    text = f"rm -rf {directory_of(scenario)}; exit 0"
    ended = scenario.run(scenario.job(scenario.script(text)))
    assert ended.status == 125 and "was removed while it was going on" in ended.err, ended


def test_a_task_that_fails_after_its_directory_was_removed_is_still_named(scenario):
    text = f"rm -rf {directory_of(scenario)}; echo 'ValueError: it is gone' >&2; exit 3"
    ended = scenario.run(scenario.job(scenario.script(text)))
    assert ended.status == 3 and "master.0" in ended.err and "it is gone" in ended.err, ended
    assert "was removed while it was going on" in ended.err, ended


def test_who_attached_to_a_run_whose_directory_is_removed_is_told_as_well(scenario):
    process = begin(scenario, "touch up; exec sleep 600")
    follower = scenario.start("attach", "1")
    assert b"run 1" in follower.stderr.readline()
    time.sleep(0.2)
    shutil.rmtree(directory_of(scenario))
    _, err = follower.communicate(timeout=60)
    assert follower.returncode == 125 and b"was removed while it was going on" in err, err
    assert scenario.finish(process, 60).status == 125


def test_without_a_supervisor_the_follower_says_that_the_directory_is_gone(scenario):
    process = begin(scenario, "touch up; exec sleep 600")
    keeper, supervisor = keeper_of(scenario)
    os.kill(keeper, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGSTOP)
    shutil.rmtree(directory_of(scenario))
    for pid in (supervisor, keeper):
        os.kill(pid, signal.SIGKILL)
    ended = scenario.finish(process, 60)
    assert ended.status == 125 and "was removed while it was going on" in ended.err, ended


@pytest.mark.parametrize("name", ["spool", "logs", "series", "."])
def test_a_link_in_the_place_of_a_directory_leads_nowhere(scenario, name):
    """What the supervisor writes and removes stays in the run's directory."""
    elsewhere = scenario.directory / "elsewhere"
    for folder in ("empty", "master.0"):
        (elsewhere / folder).mkdir(parents=True)
    for file in ("events.jsonl", "lock", "master.0/file"):
        (elsewhere / file).write_text("precious\n")

    def picture():
        return {str(path): path.read_text() if path.is_file() else None for path in elsewhere.rglob("*")}

    before = picture()
    job = scenario.job(scenario.script(UNTIL_GO), head="environment: {max_restarts: 1}")
    process = scenario.start("run", job)
    scenario.wait_for("up")
    processes = keeper_of(scenario)
    place = directory_of(scenario) if name == "." else directory_of(scenario) / name
    if place.exists():
        place.rename(scenario.directory / "aside")
    place.symlink_to(elsewhere)
    time.sleep(2.5)  # the supervisor looks after its files each second
    go(scenario, 1)
    process.communicate(timeout=60)
    wait_until(lambda: not any(map(lives, processes)), "the run does not end")
    for words in (["status", 1], ["metrics", 1], ["logs", 1], ["outputs", 1], ["rm", "--force", 1]):
        assert say(scenario, *words)[0] >= 0
    assert picture() == before
