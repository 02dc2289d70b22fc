# SPDX-License-Identifier: Apache-2.0
"""Databases that another member of a shared home has changed, replaced or locked: nobody is blocked or misled by them."""
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time

import pytest

from sharing import DAEMON, NOBODY, NOGROUP, Person, shared_home, switch_to
from test_queue import UNTIL_GO, asking, detached, statuses, wait_for_end, wait_for_status

HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA locking_mode = EXCLUSIVE")
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def say(scenario, *arguments, seconds=60):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out.decode(), err.decode()


def change(path, *statements):
    database = sqlite3.connect(path, isolation_level=None)
    for sql in statements:
        database.execute(sql)
    database.close()


def replace(path, by):
    """Puts something else in the place of a file; `target` is what a link leads to."""
    target = path.parent.parent / "target"
    if path.is_symlink() or path.exists():
        path.unlink()
    if by == "link":
        path.symlink_to(target)
    elif by == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    return target


@pytest.fixture
def home(scenario):
    """A home with a ledger and an index, both used once."""
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0
    assert say(scenario, "runs")[0] == 0
    return scenario.home


def held(path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    return holder


TRIGGERS = [
    "CREATE TRIGGER t BEFORE INSERT ON {0} BEGIN SELECT RAISE(ABORT, 'not today'); END",
    "CREATE TRIGGER t AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END",
    "CREATE VIEW v AS SELECT * FROM {0}",
    "PRAGMA user_version = -5",
]


@pytest.mark.parametrize("harm", TRIGGERS)
def test_a_ledger_that_was_tampered_with_is_refused_until_reindex(scenario, home, harm):
    change(home / "myelin.db", harm.format("queue"))
    ended = scenario.run(asking(scenario, "true", cpu=1))
    assert ended.status == 125 and "'myelin reindex' puts it aside" in ended.err, ended
    assert scenario.run(scenario.job("true")).status == 0, "a run that reserves nothing does not need it"
    assert say(scenario, "ps", "-a")[0] == say(scenario, "runs")[0] == 0
    code, out, err = say(scenario, "reindex")
    assert code == 0 and (home / "myelin.db.old.1").exists(), err
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0


@pytest.mark.parametrize("harm", TRIGGERS)
def test_an_index_that_was_tampered_with_is_made_again(scenario, home, harm):
    change(home / "index.db", harm.format("words"))
    code, out, err = say(scenario, "runs", "--json")
    assert code == 0 and [run["id"] for run in json.loads(out)["runs"]] == [1] and err == "", err


@pytest.mark.parametrize("by", ["link", "fifo", "directory"])
@pytest.mark.parametrize("part", ["", "-wal", "-shm", "-journal"])
def test_what_stands_in_the_place_of_a_database_blocks_nobody(scenario, home, part, by):
    target = replace(home / f"myelin.db{part}", by)
    replace(home / f"index.db{part}", by)
    assert scenario.run(scenario.job("true")).status == 0
    assert say(scenario, "ps", "-a")[0] == 0
    code, out, err = say(scenario, "runs", "--json")
    assert code == 0 and len(json.loads(out)["runs"]) == 2, err
    ended = scenario.run(asking(scenario, "true", cpu=1))
    assert ended.status == 125 and f"myelin.db{part}' is a" in ended.err and "'myelin reindex'" in ended.err, ended
    assert say(scenario, "node")[0] != 0 and say(scenario, "model", "ls")[0] != 0
    code, out, err = say(scenario, "reindex")
    assert code == 0, err
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0
    assert not target.exists(), "nothing was written through the link"


def test_a_lock_that_is_never_released_is_waited_for_a_while_and_its_holder_named(scenario, home):
    holder = held(home / "myelin.db")
    try:
        named = f"is in use by process {holder.pid} (python3"
        for arguments in (["node"], ["why"], ["model", "ls"], ["reindex"]):
            code, out, err = say(scenario, *arguments)
            assert code != 0 and named in err, (arguments, err)
        ended = scenario.run(asking(scenario, "true", cpu=1), seconds=60)
        assert ended.status == 125 and named in ended.err, ended
        assert scenario.run(scenario.job("true")).status == 0
        assert say(scenario, "ps", "-a")[0] == say(scenario, "runs")[0] == 0
    finally:
        holder.communicate(b"")
    assert scenario.run(asking(scenario, "true", cpu=1)).status == 0


def test_runs_are_found_without_an_index_that_somebody_does_not_release(scenario, home):
    holder = held(home / "index.db")
    try:
        code, out, err = say(scenario, "runs", "--json")
    finally:
        holder.communicate(b"")
    assert code == 0 and [run["id"] for run in json.loads(out)["runs"]] == [1], err
    assert err.count("note:") == 1 and f"is in use by process {holder.pid} (python3" in err, err


def test_a_run_that_waits_survives_that_the_mapped_part_of_the_ledger_is_cut_short(scenario):
    code, out, err = say(scenario, "node", "--json")
    n = json.loads(out)["resources"]["cpu"]["total"]
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    for _ in range(5):
        os.truncate(scenario.home / "myelin.db-shm", 0)
        time.sleep(0.5)  # it looks twice a second; a look that comes later meets the next cut
    assert statuses(scenario, second)[-1] == "scheduled"
    (scenario.directory / "go").touch()
    assert [wait_for_end(scenario, run) for run in (first, second)] == ["succeeded"] * 2


# -- several users


@pytest.fixture
def sticky(scenario):
    """A home of mode 3770 that belongs to root, and two members of its group."""
    if os.geteuid() != 0:
        pytest.skip("only root can be several users")
    with shared_home(scenario, 0o3770) as program:
        yield scenario, *(Person(scenario, program, switch, "022")
                          for switch in ([], switch_to("nobody"), switch_to("daemon")))  # fmt: skip


def test_members_of_a_sticky_home_share_its_databases(sticky):
    scenario, root, ann, bob = sticky
    for person in (ann, bob, root):
        code, out, err = person.say("run", asking(scenario, "true", cpu=1))
        assert code == 0, err
        code, out, err = person.say("runs", "--json")
        assert code == 0 and "note:" not in err, err
    for person in (bob, ann, root):
        code, out, err = person.say("reindex")
        assert code == 0 and "note:" not in err, err
    for name in ("myelin.db", "models.json"):
        assert stat.S_IMODE((scenario.home / name).stat().st_mode) == 0o660
    assert {run["id"] for run in bob.json("runs")["runs"]} == {1, 2, 3}


@pytest.mark.parametrize("harm", ["trigger", "nonsense"])
def test_a_ledger_whose_files_belong_to_others_is_emptied_in_place(sticky, harm):
    scenario, root, ann, bob = sticky
    assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    if harm == "trigger":
        change(scenario.home / "myelin.db", TRIGGERS[0].format("queue"))
    else:
        (scenario.home / "myelin.db").write_bytes(b"nonsense" * 1000)
    assert bob.say("run", asking(scenario, "true", cpu=1))[0] == 125
    code, out, err = bob.say("reindex", "--json")
    assert code == 0 and json.loads(out)["put_aside"] is None, err
    for person in (ann, bob):
        code, out, err = person.say("run", asking(scenario, "true", cpu=1))
        assert code == 0, err


def test_what_another_owner_put_in_the_place_of_the_ledger_that_owner_or_root_removes(sticky):
    scenario, root, ann, bob = sticky
    assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    replace(scenario.home / "myelin.db", "fifo")
    shutil.chown(scenario.home / "myelin.db", "nobody")
    code, out, err = bob.say("reindex")
    assert code != 0 and "belongs to nobody" in err and "nobody or root has to run 'myelin reindex'" in err, err
    assert not list(scenario.home.glob("myelin.db.old.*")), "no part of it was moved"
    assert bob.say("run", scenario.job("true"))[0] == 0 and bob.say("ps", "-a")[0] == 0
    code, out, err = root.say("reindex")
    assert code == 0, err
    assert bob.say("run", asking(scenario, "true", cpu=1))[0] == 0


@pytest.mark.parametrize("harm", ["foreign", "fifo", "link", "directory", "readable"])
def test_an_index_that_others_can_use_is_done_without(sticky, harm):
    scenario, root, ann, bob = sticky
    assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    index = scenario.home / f"index.{DAEMON}.db"  # bob's
    if harm == "foreign":
        index.touch()
        shutil.chown(index, "nobody")
    elif harm == "readable":
        index.touch(mode=0o640)
        shutil.chown(index, "daemon")
    else:
        replace(index, harm)
        os.chown(index, NOBODY, NOGROUP, follow_symlinks=False)
    code, out, err = bob.say("runs", "--json")
    assert code == 0 and [run["id"] for run in json.loads(out)["runs"]] == [1], err
    assert err.count("note:") == 1 and index.name in err, err


def test_each_member_has_an_index_of_their_own(sticky):
    scenario, root, ann, bob = sticky
    assert ann.say("run", asking(scenario, "true", cpu=1))[0] == 0
    for person, user in ((ann, NOBODY), (bob, DAEMON), (root, 0)):
        assert [run["id"] for run in person.json("runs")["runs"]] == [1]
        st = (scenario.home / f"index.{user}.db").stat()
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (user, 0o600)
