# SPDX-License-Identifier: Apache-2.0
"""Tasks that ask for whole CPUs, no more and no less, have them to themselves; others keep off them.

Two CPUs are enough for what is tested here.
"""
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time

import pytest

ALLOWED = sorted(os.sched_getaffinity(0))
two_cpus = pytest.mark.skipif(len(ALLOWED) < 2, reason="this process may use one CPU alone")

# Writes where it may run, by the kernel's own word, and what it is told.
LOOK = """
allowed=$(sed -n 's/^Cpus_allowed_list:\\t//p' /proc/self/status)
echo "$allowed ${MYELIN_CPUS-none}" >"seen.$MYELIN_RUN_ID.$MYELIN_TASK.new"
mv "seen.$MYELIN_RUN_ID.$MYELIN_TASK.new" "seen.$MYELIN_RUN_ID.$MYELIN_TASK"
"""
# ... and stays until it is let go.
STAY = LOOK + 'while [ ! -e "go.$MYELIN_RUN_ID" ] && [ -d . ]; do sleep 0.05; done\n'

PINNED = "{requests: 1, limits: 1}"


def job(scenario, cmd, cpu=PINNED, workers=None, name="job.yml"):
    """A polyaxonfile whose master asks for `cpu`, and so do two workers for `workers`."""
    lines = ["version: 1", "kind: experiment", *(["framework: pytorch"] if workers else [])]
    lines += ["environment:", f"  resources: {{cpu: {cpu}}}"] if cpu else ["environment:"] if workers else []
    if workers:
        lines += ["  replicas:", "    n_workers: 1", f"    default_worker: {{resources: {{cpu: {workers}}}}}"]
    script = scenario.script(cmd, name=f"{name}.sh")
    return scenario.write(name, "\n".join([*lines, f"run: {{cmd: {script}}}"]) + "\n")


def numbers(text):
    """{0, 1, 2, 8} of "0-2,8"."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def seen(scenario, run=1, task="master.0"):
    """Where a task may run, and what it was told."""
    (path,) = scenario.wait_for(f"seen.{run}.{task}")
    allowed, told = path.read_text().split()
    return numbers(allowed), None if told == "none" else numbers(told)


def started(scenario, path, *arguments, **options):
    process = scenario.start("run", "-d", path, *arguments, **options)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return int(out)


def let_go(scenario, *runs):
    for run in runs:
        scenario.write(f"go.{run}", "")
        deadline = time.monotonic() + 20
        while not re.search(r'"status":\s*"(succeeded|failed|stopped)"[^\n]*exit_status', journal(scenario, run)):
            assert time.monotonic() < deadline, journal(scenario, run)
            time.sleep(0.02)
    deadline = time.monotonic() + 10
    while len(runs) and scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)


def journal(scenario, run=1):
    return (scenario.home / "runs" / str(run) / "events.jsonl").read_text()


def told(scenario, *arguments):
    out, err = scenario.start(*arguments).communicate(timeout=60)
    said = [line for line in err.decode().splitlines() if "not enforced here: " not in line]  # limits are another matter
    assert not said, err
    return out.decode()


def node(scenario):
    return json.loads(told(scenario, "node", "--json"))


# ---- who is pinned ----


def test_a_pinned_task_sees_exactly_its_cpu_and_the_run_says_which(scenario):
    ended = scenario.run(job(scenario, LOOK))
    assert ended.status == 0, ended
    allowed, own = seen(scenario)
    assert len(allowed) == 1 and allowed == own and allowed <= set(ALLOWED)
    (task,) = json.loads(told(scenario, "status", "1", "--json"))["tasks"]
    assert numbers(task["cpus"]) == allowed
    assert re.search(r"PINNED TO\n.* %d\n" % min(allowed), told(scenario, "status", "1"))


@pytest.mark.parametrize("cpu", ["{requests: 1}", "{requests: 0.5, limits: 0.5}", "{requests: 0.5, limits: 1}", None])
def test_other_tasks_run_wherever_the_user_may(scenario, cpu):
    ended = scenario.run(job(scenario, LOOK, cpu))
    assert ended.status == 0, ended
    assert seen(scenario) == (set(ALLOWED), None)
    assert "PINNED" not in told(scenario, "status", "1")


@two_cpus
def test_two_runs_at_once_have_different_cpus_and_node_says_whose(scenario):
    runs = [started(scenario, job(scenario, STAY)) for _ in range(2)]
    places = [seen(scenario, run)[0] for run in runs]
    assert len(places[0] | places[1]) == 2, places
    facts = node(scenario)
    assert set(facts["topology"]["pinned"]) == places[0] | places[1]
    held = {row["run"]: set(row["cpu_indexes"]) for row in facts["reservations"] if row["cpu_indexes"]}
    assert held == dict(zip(runs, places))
    assert "PINNED TO" in told(scenario, "node")
    let_go(scenario, *runs)
    assert node(scenario)["topology"]["pinned"] == []


@two_cpus
def test_the_tasks_of_one_gang_have_different_cpus(scenario):
    ended = scenario.run(job(scenario, LOOK, workers=PINNED))
    assert ended.status == 0, ended
    (master, _), (worker, _) = seen(scenario), seen(scenario, task="worker.0")
    assert len(master) == len(worker) == 1 and master != worker


def test_what_a_pinned_task_starts_stays_on_its_cpu(scenario):
    ended = scenario.run(job(scenario, f"sh -c '{LOOK.strip()}' & wait $!".replace("'s/^", '"s/^').replace("//p'", '//p"')))
    assert ended.status == 0, ended
    assert len(seen(scenario)[0]) == 1


# ---- the others ----


@two_cpus
def test_a_task_that_is_not_pinned_keeps_off_the_cpus_of_those_that_are(scenario):
    pinned = started(scenario, job(scenario, STAY))
    place = seen(scenario, pinned)[0]
    floating = started(scenario, job(scenario, LOOK, "{requests: 0.5}"))
    assert seen(scenario, floating) == (set(ALLOWED) - place, None)
    let_go(scenario, floating, pinned)


@two_cpus
def test_a_floating_task_of_the_same_gang_keeps_off_too(scenario):
    ended = scenario.run(job(scenario, LOOK, "{requests: 0.5}", workers=PINNED))
    assert ended.status == 0, ended
    own = seen(scenario, task="worker.0")[0]
    assert seen(scenario)[0] == set(ALLOWED) - own


def affinity(scenario, run, expected):
    """Waits until a process that the run's task has started may run on exactly these CPUs."""
    pid = int(re.search(r'"pid":\s*(\d+)', journal(scenario, run)).group(1))
    deadline = time.monotonic() + 15
    while os.sched_getaffinity(pid) != expected:
        assert time.monotonic() < deadline, f"{os.sched_getaffinity(pid)}, not {expected}"
        time.sleep(0.05)


@two_cpus
def test_a_task_that_floats_goes_out_of_the_way_and_comes_back(scenario):
    floating = started(scenario, job(scenario, STAY, "{requests: 0.5}"))
    assert seen(scenario, floating)[0] == set(ALLOWED)
    pinned = started(scenario, job(scenario, STAY))
    place = seen(scenario, pinned)[0]
    affinity(scenario, floating, set(ALLOWED) - place)
    affinity(scenario, pinned, place)
    scenario.write(f"go.{pinned}", "")
    affinity(scenario, floating, set(ALLOWED))
    let_go(scenario, pinned, floating)


@two_cpus
def test_a_task_that_chose_cpus_by_itself_keeps_them(scenario):
    choice = ALLOWED[-1]
    cmd = f"taskset -pc {choice} $$ >/dev/null\n" + STAY
    choosy = started(scenario, job(scenario, cmd, "{requests: 0.1}", name="choosy.yml"))
    floating = started(scenario, job(scenario, STAY, "{requests: 0.1}", name="floating.yml"))
    seen(scenario, choosy), seen(scenario, floating)
    pinned = started(scenario, job(scenario, STAY))
    affinity(scenario, floating, set(ALLOWED) - seen(scenario, pinned)[0])
    affinity(scenario, choosy, {choice})
    let_go(scenario, pinned, floating, choosy)


def test_where_every_cpu_is_somebodys_the_others_are_not_shut_out(scenario):
    everything = f"{{requests: {len(ALLOWED)}, limits: {len(ALLOWED)}}}"
    pinned = started(scenario, job(scenario, STAY, everything))
    assert seen(scenario, pinned)[0] == set(ALLOWED)
    text = "version: 1\nkind: experiment\nenvironment: {resources: {memory: {requests: 1}}}\n"
    path = scenario.write("light.yml", text + f"run: {{cmd: {scenario.script(LOOK, name='light.sh')}}}\n")
    light = started(scenario, path)
    assert seen(scenario, light)[0] == set(ALLOWED)
    let_go(scenario, light, pinned)


# ---- where it cannot be ----


def under(cpu):
    return ("taskset", "-c", str(cpu))


@two_cpus
def test_cpus_are_among_those_that_myelin_itself_may_use(scenario):
    for run, cpu in enumerate(ALLOWED[:2], start=1):
        ended = scenario.finish(scenario.start("run", job(scenario, LOOK), under=under(cpu)))
        assert ended.status == 0, ended
        assert seen(scenario, run)[0] == {cpu}


def test_what_cannot_be_pinned_starts_all_the_same_and_says_so(scenario):
    """By amounts there is room; the ledger has every CPU taken."""
    first = started(scenario, job(scenario, STAY, "{requests: 0.5}"))
    seen(scenario, first)
    words = sum(1 << cpu for cpu in ALLOWED).to_bytes(128, "little")
    with sqlite3.connect(scenario.home / "myelin.db") as ledger:
        ledger.execute("UPDATE reservations SET cpus = ?", (words,))
    small = "{requests: 1, limits: 1}" if len(ALLOWED) > 1 else None
    second = scenario.start("run", job(scenario, LOOK, small))
    _, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert seen(scenario, 2) == (set(ALLOWED), None)
    if small:
        assert f"need: 1; those that this process may use: {len(ALLOWED)}, and not taken: 0" in err.decode()
    let_go(scenario, first)


def test_a_described_machine_is_shown_and_nobody_is_pinned_to_it(scenario):
    scenario.environment["HWLOC_SYNTHETIC"] = "package:2 [numa(memory=34359738368)] core:4 pu:2"
    topology = node(scenario)["topology"]
    assert (topology["packages"], topology["cores"], topology["cpus"]) == (2, 8, 16)
    assert [row["cpus"] for row in topology["numa_nodes"]] == [list(range(8)), list(range(8, 16))]
    assert [(row["memory_mib"], row["cores"]) for row in topology["numa_nodes"]] == [(32768, 4), (32768, 4)]
    assert topology["is_this_machine"] is False
    assert "2 packages, 8 cores, 16 CPUs (of a machine that" in told(scenario, "node")
    ended = scenario.run(job(scenario, LOOK))
    assert ended.status == 0, ended
    assert "not pinned: HWLOC_SYNTHETIC or HWLOC_XMLFILE describe another machine" in ended.err
    assert seen(scenario) == (set(ALLOWED), None)


def test_oversubscribed_tasks_are_not_pinned(scenario):
    ended = scenario.run(job(scenario, LOOK), "--oversubscribe")
    assert ended.status == 0, ended
    assert seen(scenario) == (set(ALLOWED), None)


# ---- what is said beforehand ----


def test_a_plan_says_who_will_be_pinned_and_a_dry_run_where(scenario):
    path = job(scenario, LOOK)
    assert "own CPUs" in told(scenario, "plan", path)
    assert json.loads(told(scenario, "plan", "--json", path))["tasks"][0]["pinned_cpus"] == 1
    assert re.search(r"it would start now\nmaster\.0 on CPU \d+\n", told(scenario, "run", "--dry-run", path))


# A library in the place of hwloc that tells that it was loaded, and can do nothing.
STAND_IN = """
#include <fcntl.h>
__attribute__((constructor)) static void tell(void) { open("loaded", O_CREAT | O_WRONLY, 0644); }
"""


def install_stand_in(scenario):
    folder = scenario.directory / "hwloc"
    folder.mkdir()
    (folder / "hwloc.c").write_text(STAND_IN)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libhwloc.so.15", folder / "hwloc.c"], check=True)
    scenario.environment["LD_LIBRARY_PATH"] = str(folder)


def test_only_who_pins_loads_hwloc_and_pins_without_it_too(scenario):
    install_stand_in(scenario)
    loaded = scenario.directory / "loaded"
    for path in (job(scenario, "true", None), job(scenario, "true", "{requests: 1}")):
        assert scenario.run(path).status == 0
        assert not loaded.exists(), "it was loaded for nothing"
    path = job(scenario, LOOK)
    told(scenario, "plan", path)
    assert not loaded.exists()
    ended = scenario.run(path)
    assert ended.status == 0 and loaded.exists(), ended
    assert len(seen(scenario, 3)[0]) == 1
    assert "libhwloc.so.15 has no hwloc_topology_init" in node(scenario)["topology"]["trouble"]
    assert "how they lie is not known" in told(scenario, "node")


# ---- many at once ----

ALONE = 'exec flock -n -E 7 -F "cpu.$MYELIN_CPUS" sleep 0.{pause}'


def test_a_crowd_with_random_kills_never_shares_a_cpu(scenario):
    seed = int(os.environ.get("MYELIN_TEST_SEED", time.time_ns() % 1000000))
    print(f"MYELIN_TEST_SEED={seed}")
    chance = random.Random(seed)
    crowd = 24
    runs = []
    for i in range(crowd):
        runs.append(started(scenario, job(scenario, ALONE.format(pause=f"{chance.randrange(30):02d}"), name=f"{i}.yml")))
        if chance.random() < 0.3:
            victim = chance.choice(list(scenario.left()) or [0])
            if victim:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    deadline = time.monotonic() + 60
    while scenario.left():
        assert time.monotonic() < deadline, f"seed {seed}: {scenario.left()}"
        time.sleep(0.05)
    clashes = [run for run in runs if '"exit_code": 7' in journal(scenario, run) or '"exit_code":7' in journal(scenario, run)]
    assert not clashes, f"seed {seed}: runs {clashes} met somebody on their CPU"
    assert any('"cpus"' in journal(scenario, run) for run in runs)
