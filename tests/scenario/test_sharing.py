# SPDX-License-Identifier: Apache-2.0
"""Two users share a machine by sharing a home: one queue, nothing booked twice, each run its owner's."""
import os
import stat
import time

import pytest

from sharing import NOBODY, NOGROUP, Person, shared_home, switch_to
from test_queue import UNTIL_GO, asking, events, statuses, wait_for_end, wait_for_status

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

@pytest.fixture(params=[0o3770, 0o1777], ids=["by a group", "with everybody"])
def shared(request, scenario):
    """A home that root and nobody share, and both of them: one hides all that it makes, as far as it may."""
    with shared_home(scenario, request.param) as program:
        yield scenario, Person(scenario, program, [], "077"), Person(scenario, program, switch_to("nobody"), "022")


def holding(scenario, person, **amounts):
    run = person.detached(asking(scenario, scenario.script(UNTIL_GO), **amounts))
    scenario.wait_for("up")
    return run


@pytest.mark.parametrize("first", ["root", "nobody"])
def test_one_waits_for_what_the_other_holds_and_sees_whose_it_is(shared, first):
    scenario, root, nobody = shared
    holder, waiter = (root, nobody) if first == "root" else (nobody, root)
    n = root.json("node")["resources"]["cpu"]["total"]
    held = holding(scenario, holder, cpu=n)
    waits = waiter.detached(asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, waits, "scheduled")
    time.sleep(1)
    assert statuses(scenario, waits)[-1] == "scheduled", events(scenario, waits)
    for person in (root, nobody):
        assert {run["id"] for run in person.json("ps")} == {held, waits}
        assert [row["run"] for row in person.json("node")["reservations"]] == [held]
        (why,) = person.json("why", waits)
        assert why["starts_after"] == held
    (scenario.directory / "go").touch()
    assert [wait_for_end(scenario, run) for run in (held, waits)] == ["succeeded"] * 2
    assert root.json("node")["reservations"] == []


def test_only_its_owner_and_root_stop_a_run(shared):
    scenario, root, nobody = shared
    held = holding(scenario, root, cpu=1)
    code, out, err = nobody.say("stop", held)
    assert code != 0 and f"run {held} is not yours: it belongs to root" in err and "stopping" not in err, err
    assert statuses(scenario, held)[-1] == "running"
    assert root.say("stop", held)[0] == 0
    (scenario.directory / "up").unlink()
    theirs = holding(scenario, nobody, cpu=1)
    assert root.say("stop", theirs)[0] == 0
    assert statuses(scenario, theirs)[-1] == "stopped"


def test_what_is_made_has_the_mode_of_the_home_and_a_run_is_its_owners(shared):
    scenario, root, nobody = shared
    assert root.say("run", asking(scenario, "true", cpu=1))[0] == 0
    assert nobody.say("run", asking(scenario, "true", cpu=1))[0] == 0
    assert root.say("runs")[0] == nobody.say("runs")[0] == 0
    assert nobody.say("rm", 2)[0] == 0, "its owner removes it"
    assert nobody.say("rm", 1)[0] != 0 and (scenario.home / "runs" / "1" / "lock").exists()
    others = stat.S_IMODE(scenario.home.stat().st_mode) & 0o77

    def bits(name):
        return stat.S_IMODE((scenario.home / name).stat().st_mode)

    assert bits("runs") & 0o1777 == 0o1700 | others
    assert {bits(name) for name in ("myelin.db", "last-run")} == {0o600 | others & 0o66}
    assert {bits(name) for name in ("index.0.db", f"index.{NOBODY}.db")} == {0o600}, "each has an index of its own"
    assert bits("runs/1") & 0o777 == 0o700 | others & 0o11
    assert bits("runs/1/public.jsonl") == 0o600 | others & 0o44
    assert bits("runs/1/lock") == 0o600, "who may read a file can lock it"
    assert bits("runs/1/events.jsonl") & 0o77 == 0, "a umask of 077 hides what the run is and says"
    assert bits("runs/1/logs") & 0o77 == 0, "the rest is as the umask says"
    if bits(".") & stat.S_ISGID:
        assert {path.stat().st_gid for path in (scenario.home / "runs").rglob("*")} == {NOGROUP}


@pytest.mark.parametrize("hidden", ["directory", "lock", "journal"])
def test_a_run_that_cannot_be_looked_at_keeps_what_it_holds(shared, hidden):
    scenario, root, nobody = shared
    n = root.json("node")["resources"]["cpu"]["total"]
    held = holding(scenario, root, cpu=n)
    path = scenario.home / "runs" / str(held)
    {"directory": path, "lock": path / "lock", "journal": path / "events.jsonl"}[hidden].chmod(0o600)
    waits = nobody.detached(asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, waits, "scheduled")
    time.sleep(1.5)
    assert statuses(scenario, waits)[-1] == "scheduled", events(scenario, waits)
    assert [row["run"] for row in root.json("node")["reservations"]] == [held]
    (scenario.directory / "go").touch()
    assert [wait_for_end(scenario, run) for run in (held, waits)] == ["succeeded"] * 2
