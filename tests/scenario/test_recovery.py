# SPDX-License-Identifier: Apache-2.0
"""After a crash, a lost or damaged ledger, a home that is read-only: a sentence, a way out, nothing booked twice."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import kill_both, lives
from test_bad_days import can_mount, own_mounts
from test_limits import groups_of, limited, limits_hold
from test_queue import (UNTIL_GO, asking, cores, detached, events, node, say, statuses, wait_for_end,
                        wait_for_status)


def reindex(scenario, **options):
    process = scenario.start("reindex", **options)
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


def held(scenario):
    """The reservations that the ledger has: run -> cores."""
    code, out, err = say(scenario, "node", "--json")
    assert code == 0, err
    with sqlite3.connect(f"file:{scenario.home}/myelin.db?mode=ro", uri=True) as ledger:
        return {run: cpu / 1000 for run, cpu in ledger.execute("SELECT run, sum(cpu) FROM reservations GROUP BY run")}


def ledger_files(scenario):
    return sorted(path.name for path in scenario.home.glob("myelin.db*"))


# -- ids


def test_an_id_is_not_given_again_when_the_newest_run_was_removed(scenario):
    job = scenario.job("true")
    assert [detached(scenario, job) for _ in range(2)] == [1, 2]
    for run in (1, 2):
        wait_for_end(scenario, run)
        assert say(scenario, "rm", str(run))[0] == 0
    assert detached(scenario, job) == 3
    wait_for_end(scenario, 3)


@pytest.mark.parametrize("content", ["", "rubbish\n", "-5", "99999999999999999999", "0"])
def test_what_is_no_number_in_the_counter_is_as_nothing_and_directories_win(scenario, content):
    scenario.home.mkdir()
    (scenario.home / "runs" / "7").mkdir(parents=True)
    (scenario.home / "last-run").write_text(content)
    assert detached(scenario, scenario.job("true")) == 8
    wait_for_end(scenario, 8)


def test_many_starts_and_removals_at_once_never_give_an_id_twice(scenario):
    job = scenario.job("true")
    script = f'for i in 1 2 3 4 5; do id=$({{ "$@" run -d {job}; }}) && echo $id && while ! "$@" rm $id 2>&-; do sleep 0.05; done >&2; done'
    crowd = [scenario.start(under=["sh", "-c", script, "sh"]) for _ in range(6)]
    given = [int(line) for process in crowd for line in process.communicate(timeout=120)[0].split()]
    assert len(given) == 30 and len(set(given)) == 30, sorted(given)


# -- reindex


def start_holder(scenario):
    """A run that holds a core until the file `go` is there."""
    run = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=1))
    scenario.wait_for("up")
    return run


def let_go(scenario, *runs):
    (scenario.directory / "go").touch()
    for run in runs:
        assert wait_for_end(scenario, run) == "succeeded"


def damage(scenario):
    for path in {scenario.home / "myelin.db", *scenario.home.glob("myelin.db*")}:
        path.write_bytes(b"rubbish, rubbish, rubbish, rubbish" * 300)


def test_reindex_puts_a_damaged_ledger_aside_and_living_runs_keep_what_they_hold(scenario):
    run = start_holder(scenario)
    damage(scenario)
    code, out, err = reindex(scenario)
    assert code == 0, err
    assert "was damaged (file is not a database)" in out and "1 run holds something, 0 wait" in out, out
    assert (scenario.home / "myelin.db.old.1").read_bytes().startswith(b"rubbish")
    assert held(scenario) == {run: 1.0}
    let_go(scenario, run)


def test_a_run_that_waits_keeps_its_place_while_the_ledger_is_damaged(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    for path in scenario.home.glob("myelin.db*"):  # of the size that they have: a part is mapped
        with open(path, "r+b") as file:
            file.write(b"rubbish " * (path.stat().st_size // 8))

    def told():
        return [event["message"] for event in events(scenario, second)
                if event["event"] == "notice" and "is damaged" in event["message"]]

    deadline = time.monotonic() + 20
    while not told():
        assert time.monotonic() < deadline, events(scenario, second)
        time.sleep(0.02)
    time.sleep(1.5)  # some looks more
    assert len(told()) == 1 and "'myelin reindex'" in told()[0], told()
    assert statuses(scenario, second)[-1] not in ("failed", "starting")
    code, out, err = reindex(scenario)
    assert code == 0 and "1 run holds something, 1 waits" in out, out + err
    let_go(scenario, first, second)


def test_a_damaged_ledger_is_told_with_the_way_out(scenario):
    scenario.home.mkdir()
    damage(scenario)
    ended = scenario.run(asking(scenario, "true", cpu=1))
    assert ended.status == 125 and "is damaged" in ended.err and "'myelin reindex'" in ended.err, ended
    assert scenario.run(scenario.job("true")).status == 0, "who reserves nothing is not touched"
    assert reindex(scenario)[0] == 0
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0


def test_a_ledger_of_a_newer_version_is_left_alone_until_reindex_puts_it_aside(scenario):
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0
    with sqlite3.connect(scenario.home / "myelin.db") as ledger:
        ledger.execute("PRAGMA user_version = 99")
    ledger.close()
    before = (scenario.home / "myelin.db").read_bytes()
    ended = scenario.run(asking(scenario, "true", cpu=1))
    assert ended.status == 125 and "newer myelin (version 99" in ended.err and "reindex" in ended.err, ended
    code, out, err = reindex(scenario)
    assert code == 0 and "its version is 99" in out, out + err
    assert (scenario.home / "myelin.db.old.1").read_bytes() == before
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0


def test_a_database_of_somebody_else_is_put_aside(scenario):
    scenario.home.mkdir()
    with sqlite3.connect(scenario.home / "myelin.db") as other:
        other.execute("CREATE TABLE queue (poems TEXT)")
    other.close()
    code, out, err = reindex(scenario)
    assert code == 0 and "are not those of a ledger" in out, out + err
    assert reindex(scenario)[1].count("written anew") == 1


def test_a_ledger_that_was_lost_is_made_again_with_what_living_runs_hold_and_wait_for(scenario):
    """Nobody has to call for it: the first who needs a ledger makes it so."""
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    for path in scenario.home.glob("myelin.db*"):
        path.unlink()
    third = detached(scenario, asking(scenario, "true", name="third.yml", cpu=1))
    wait_for_status(scenario, third, "scheduled")
    time.sleep(1)
    assert held(scenario) == {first: n}
    assert "starting" not in statuses(scenario, second) + statuses(scenario, third)
    let_go(scenario, first, second, third)


def test_a_run_that_waits_sees_that_the_ledger_was_put_aside(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    with sqlite3.connect(scenario.home / "myelin.db") as ledger:
        ledger.execute("PRAGMA user_version = 99")
    ledger.close()
    code, out, err = reindex(scenario)
    assert code == 0 and "1 run holds something, 1 waits" in out, out + err
    let_go(scenario, first, second)
    assert [row for row in held(scenario)] == []


def test_reindex_of_a_sound_home_changes_nothing_that_counts(scenario):
    run = start_holder(scenario)
    for _ in range(2):
        code, out, err = reindex(scenario)
        assert code == 0 and "1 run holds something, 0 wait" in out and f"next run: {run + 1}" in out, out + err
        assert "runs: 1, of which 1 is going on" in out, out
    assert held(scenario) == {run: 1.0}
    assert not list(scenario.home.glob("*.old.*"))
    let_go(scenario, run)


def test_reindex_makes_what_is_missing_in_an_empty_home_and_names_one_that_is_not_there(scenario):
    code, out, err = reindex(scenario)
    assert code == 1 and str(scenario.home) in err, err
    scenario.home.mkdir()
    code, out, err = reindex(scenario)
    assert code == 0 and "there was none" in out and "next run: 1" in out, out + err


def start_doomed(scenario):
    """A run that holds a core; its task ends with its supervisor."""
    run = detached(scenario, asking(scenario, scenario.script("touch up; exec sleep 600"), cpu=1))
    scenario.wait_for("up")
    return run


def test_what_reindex_did_can_be_read_by_a_script(scenario):
    scenario.home.mkdir()
    damage(scenario)
    code, out, err = say(scenario, "reindex", "--json")
    assert code == 0 and json.loads(out) == {
        "runs": 0, "living": 0, "settled": 0, "holding": 0, "waiting": 0, "next_id": 1, "indexed": 0, "ledger_was": "damaged",
        "put_aside": str(scenario.home / "myelin.db.old.1")}, out + err


def test_reindex_gives_dead_runs_their_end(scenario):
    run = start_doomed(scenario)
    kill_both(scenario, run)
    code, out, err = reindex(scenario)
    assert code == 0 and "1 had lost its supervisor" in out and "0 runs hold something" in out, out + err
    assert statuses(scenario, run)[-1] == "failed"


# -- the order of settling


DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("daemon.part", "w").write(str(os.getpid()))
            os.rename("daemon.part", "daemon")
            time.sleep(600)
        os._exit(0)
    time.sleep(600)
"""


@limits_hold
def test_what_a_dead_run_held_is_free_only_when_nothing_of_it_lives(scenario):
    """The next run has no limits of its own: it is the reservation that makes it look."""
    n = cores(scenario)
    head = f"environment:\n  resources:\n    cpu: {{requests: {n}, limits: {n}}}\n"
    first = detached(scenario, scenario.job(scenario.python(DAEMON), head=head))
    daemon = int(scenario.wait_for("daemon")[0].read_text())
    kill_both(scenario, first)
    assert lives(daemon) and groups_of(scenario, first)
    looks = scenario.script(f"tr -d '\\0' < /proc/{daemon}/cmdline 2>&- | grep -q . && echo lives || echo gone", name="looks.sh")
    ended = scenario.run(asking(scenario, looks, name="second.yml", cpu=n))
    assert ended.status == 0 and ended.lines_of("master.0") == ["gone"], ended
    assert groups_of(scenario, first) == []
    assert statuses(scenario, first)[-1] == "failed"


@limits_hold
def test_who_only_looks_at_the_machine_settles_too(scenario):
    first = detached(scenario, limited(scenario, scenario.python(DAEMON), cpu=1).rename(scenario.directory / "a.yml"))
    scenario.wait_for("daemon")
    text = (scenario.directory / "a.yml").read_text().replace("requests: 0", "requests: 1")
    (scenario.directory / "b.yml").write_text(text)
    (scenario.directory / "daemon").unlink()
    second = detached(scenario, scenario.directory / "b.yml")
    daemon = int(scenario.wait_for("daemon")[0].read_text())
    kill_both(scenario, first)
    kill_both(scenario, second)
    assert node(scenario)["resources"]["cpu"]["reserved"] == 0
    assert not lives(daemon)
    assert say(scenario, "ps", "-a")[0] == 0, "which settles the one that reserved nothing"
    assert groups_of(scenario, first) + groups_of(scenario, second) == []


@limits_hold
def test_what_a_dead_run_left_counts_also_in_a_ledger_that_is_made_again(scenario):
    """Nothing but its control groups tells of what it has detached: the lock is free, the ledger lost."""
    n = cores(scenario)
    head = f"environment:\n  resources:\n    cpu: {{requests: {n}, limits: {n}}}\n"
    first = detached(scenario, scenario.job(scenario.python(DAEMON), head=head))
    daemon = int(scenario.wait_for("daemon")[0].read_text())
    kill_both(scenario, first)
    for path in scenario.home.glob("myelin.db*"):
        path.unlink()
    assert lives(daemon)
    looks = scenario.script(f"tr -d '\\0' < /proc/{daemon}/cmdline 2>&- | grep -q . && echo lives || echo gone", name="looks.sh")
    ended = scenario.run(asking(scenario, looks, name="second.yml", cpu=n))
    assert ended.status == 0 and ended.lines_of("master.0") == ["gone"], ended
    assert statuses(scenario, first)[-1] == "failed"


FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def freezer():
    """A control group whose processes do not even die until it thaws: as those that sleep in the kernel."""
    if os.geteuid() != 0 or not (FREEZER / "tasks").exists():
        pytest.skip("needs root and the freezer of cgroup v1")
    group = pathlib.Path(tempfile.mkdtemp(prefix="frozen-", dir=FREEZER))
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        deadline = time.monotonic() + 10
        while (group / "tasks").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()


@limits_hold
def test_what_does_not_die_keeps_what_it_uses_and_gives_it_back_when_it_does(scenario, freezer):
    n = cores(scenario)
    head = f"environment:\n  resources:\n    cpu: {{requests: {n}, limits: {n}}}\n"
    first = detached(scenario, scenario.job(scenario.python(DAEMON), head=head))
    daemon = int(scenario.wait_for("daemon")[0].read_text())
    (freezer / "cgroup.procs").write_text(str(daemon))
    (freezer / "freezer.state").write_text("FROZEN")
    kill_both(scenario, first)
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=n))
    for _ in range(2):
        began = time.monotonic()
        assert node(scenario)["resources"]["cpu"]["reserved"] == n
        assert time.monotonic() - began < 10, "nobody waits long for what does not die"
    assert statuses(scenario, first)[-1] == "failed" and "starting" not in statuses(scenario, second)
    assert [event["cgroups"] > 0 for event in events(scenario, first) if event["event"] == "checked"] == [True]
    (freezer / "freezer.state").write_text("THAWED")
    assert wait_for_end(scenario, second) == "succeeded"
    assert groups_of(scenario, first) == [] and held(scenario) == {}


@pytest.mark.parametrize("from_ledger", [True, False], ids=["of the ledger", "of its own journal"])
def test_after_a_reboot_a_run_is_told_as_lost_with_the_machine_and_holds_nothing(scenario, from_ledger):
    run = start_doomed(scenario)
    kill_both(scenario, run)
    journal = scenario.home / "runs" / str(run) / "events.jsonl"
    (boot,) = [event["boot_id"] for event in events(scenario, run) if event["event"] == "created"]
    journal.write_text(journal.read_text().replace(boot, "11111111-2222-3333-4444-555555555555"))
    if from_ledger:
        with sqlite3.connect(scenario.home / "myelin.db") as ledger:
            assert ledger.execute("UPDATE reservations SET boot = 'before'").rowcount == 1
        ledger.close()
    else:
        for path in scenario.home.glob("myelin.db*"):
            path.unlink()
    ended = scenario.run(asking(scenario, "true", name="second.yml", cpu=cores(scenario)))
    assert ended.status == 0, ended
    code, out, err = say(scenario, "status", run, "--json")
    assert code == 0 and json.loads(out)["status"] == "failed", out + err
    assert json.loads(out)["reason"] == "the machine went down while the run was going on", out
    assert [event for event in events(scenario, run) if event["event"] == "checked"][-1]["processes"] == 0
    assert held(scenario) == {}


# -- a ledger that somebody does not let go of


HOLD = """
import sqlite3, sys, time
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def stuck(scenario):
    """A process that holds the ledger's lock for as long as the test takes."""
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0
    holder = subprocess.Popen([sys.executable, "-c", HOLD, scenario.home / "myelin.db"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    yield holder
    holder.communicate(b"")


def test_who_does_not_let_go_of_the_ledger_is_named(scenario, stuck):
    code, out, err = reindex(scenario)
    assert code == 1 and f"is in use by process {stuck.pid} (python3" in err, err
    ended = scenario.run(asking(scenario, "true", cpu=1), seconds=60)
    assert ended.status == 125 and f"is in use by process {stuck.pid} (python3" in ended.err, ended
    assert scenario.run(scenario.job("true")).status == 0, "who reserves nothing is not touched"
    assert say(scenario, "ps", "-a")[0] == 0


def test_a_run_that_waits_says_who_is_in_the_way_and_goes_on_after(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script("touch up; exec sleep 600"), cpu=n))
    scenario.wait_for("up")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    kill_both(scenario, first)  # so that the one that waits has something to write
    holder = subprocess.Popen([sys.executable, "-c", HOLD, scenario.home / "myelin.db"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    if "starting" not in statuses(scenario, second) and holder.stdout.readline() == b"held\n":
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline and "starting" not in statuses(scenario, second):
            if any(f"process {holder.pid}" in line.get("message", "") for line in events(scenario, second)):
                break
            time.sleep(0.05)
        else:
            assert "starting" in statuses(scenario, second), events(scenario, second)
    holder.communicate(b"")
    assert wait_for_end(scenario, second) == "succeeded"


# -- a home that can only be read


def read_only(scenario):
    """A command that starts another one with the home read-only."""
    if os.geteuid() == 0 or can_mount():
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
        return [*own_mounts(), "sh", "-c", script, "sh", str(scenario.home)]
    return ["sh", "-c", 'chmod -R a-w "$1"; shift; "$@"; status=$?; chmod -R u+w "$MYELIN_HOME"; exit $status', "sh",
            str(scenario.home)]


def test_a_read_only_home_can_be_looked_at_and_refuses_runs_with_a_sentence(scenario):
    assert scenario.run(asking(scenario, "echo hello", cpu=1)).status == 0
    under = read_only(scenario)
    for command, told in ((["ps", "-a"], "succeeded"), (["status", "1"], "succeeded"), (["logs", "1"], "hello"),
                          (["node"], "CPU"), (["outputs", "1"], "")):
        ended = scenario.finish(scenario.start(*command, under=under))
        assert ended.status == 0 and told.lower() in (ended.out + ended.err).lower(), (command, ended)
    for job in (scenario.job("true"), asking(scenario, "true", cpu=1)):
        ended = scenario.run(job, under=under)
        assert ended.status == 125 and "set MYELIN_HOME" in ended.err, ended
    code, out, err = reindex(scenario, under=under)
    assert code == 1 and "MYELIN_HOME" in err, err


def test_a_dead_run_in_a_read_only_home_does_not_keep_it_from_being_listed(scenario):
    run = start_doomed(scenario)
    kill_both(scenario, run)
    deadline = time.monotonic() + 10
    while scenario.left():  # its task, which nobody here may end, has its signal and goes in its own time
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ended = scenario.finish(scenario.start("ps", "-a", under=read_only(scenario)))
    assert ended.status == 0 and "failed" in ended.out and "cannot be written" in ended.out, ended
