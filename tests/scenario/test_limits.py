# SPDX-License-Identifier: Apache-2.0
"""Limits hold: a task gets no more than its file says, and no control group outlives its run.

Everything here is bounded by itself as well, so that a limit that does not hold fails a test, and
does not take the machine along.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time

import pytest

from conftest import PROGRAM, PYTHON, keeper_of, kill_both

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def what_is_missing():
    """Why no limit can hold here, or None: all three controllers in trees that this user may write."""
    if os.environ.get("MYELIN_LIMITS_HOLD") == "yes":
        return None  # who says so fails where they do not: tests/conformance/subjects/guest.sh
    if os.geteuid() != 0:
        return "only root may make control groups where these tests run"
    if (CGROUPS / "cgroup.controllers").exists():
        offered = (CGROUPS / "cgroup.controllers").read_text().split()
        return None if {"cpu", "memory", "pids"} <= set(offered) else f"the kernel offers only {offered}"
    absent = [name for name in ("cpu", "memory", "pids") if not os.access(CGROUPS / name, os.W_OK)]
    return f"no control groups that can be written: {absent}" if absent else None


limits_hold = pytest.mark.skipif(what_is_missing() is not None, reason=str(what_is_missing()))


def limited(scenario, cmd, memory=None, cpu=None, workers=0):
    """A job each of whose tasks has the limits, and reserves nothing."""
    given = [f"{name}: {{requests: 0, limits: {amount}}}" for name, amount in (("memory", memory), ("cpu", cpu)) if amount]
    lines = ["version: 1", "kind: experiment", "framework: pytorch", "environment:"]
    lines += ["  resources:", *(f"    {line}" for line in given)]
    lines += ["  replicas:", f"    n_workers: {workers}"]
    lines += ["    default_worker:", "      resources:", *(f"        {line}" for line in given)] if workers else []
    return scenario.write("limited.yml", "\n".join([*lines, "run:", f"  cmd: {cmd}"]) + "\n")


def journal(scenario, run=1):
    lines = (scenario.home / "runs" / str(run) / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def event(scenario, name, run=1):
    return [line for line in journal(scenario, run) if line["event"] == name]


def groups_of(scenario, run=1):
    """The control groups of the run that there are, in whatever tree."""
    name = f"myelin-{event(scenario, 'created', run)[0]['uuid']}"
    # os.walk, unlike rglob, goes on when a group of somebody else is removed under it
    return sorted(os.path.join(above, name) for above, below, _ in os.walk(CGROUPS) if name in below)


def wait_until(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


GROW = """
    import os, sys, time
    kept = []
    if os.environ["RANK"] == "{rank}":
        for _ in range({mebibytes}):
            kept.append(b"x" * (1 << 20))
        print("has it all", flush=True)
    else:
        time.sleep(600)
"""


@limits_hold
def test_a_task_over_its_memory_limit_is_killed_and_named(scenario):
    cmd = scenario.python(GROW.format(rank=1, mebibytes=300))
    ended = scenario.run(limited(scenario, cmd, memory=64, workers=1))
    assert ended.status == 137, ended
    assert "worker.0 was killed because it used more than its memory limit of 64 MiB" in ended.err, ended
    assert "hint: raise the limit" in ended.err, ended
    failed = [line for line in event(scenario, "task") if line["status"] == "failed"]
    assert len(failed) == 1 and failed[0]["rank"] == 1
    assert failed[0]["limit"]["resource"] == "memory"
    assert failed[0]["limit"]["limit"] == 64 << 20
    assert (56 << 20) < failed[0]["limit"]["peak"] <= (64 << 20)
    assert event(scenario, "status")[-1]["kind"] == "out_of_memory"


@limits_hold
def test_a_process_of_a_task_that_is_killed_for_its_memory_is_told_too(scenario):
    script = scenario.python(GROW.format(rank=0, mebibytes=300))
    cmd = scenario.script(f"{script}; exit 3")
    ended = scenario.run(limited(scenario, cmd, memory=64))
    assert ended.status == 3, ended
    assert "master.0 exited with code 3 after a process of it was killed because it used more than" in ended.err, ended


@limits_hold
def test_a_task_under_its_memory_limit_lives(scenario):
    ended = scenario.run(limited(scenario, scenario.python(GROW.format(rank=0, mebibytes=60)), memory=128))
    assert ended.status == 0, ended
    assert ended.lines_of("master.0") == ["has it all"]
    assert "enforced" not in ended.err, ended


@limits_hold
def test_a_limit_in_which_no_program_fits_ends_the_task_and_not_the_supervisor(scenario):
    # The master has none: it is workers who meet theirs, between their making and their program.
    scenario.write("tight.yml", "version: 1\nkind: experiment\nframework: pytorch\nenvironment: {replicas: {n_workers: 20, "
                                "default_worker: {resources: {memory: {requests: 0, limits: 0.01}}}}}\nrun: {cmd: sleep 2}\n")
    ended = scenario.run("--plain", "tight.yml")
    assert ended.status not in (0, 2) and "the supervisor" not in ended.err and "worker." in ended.err, ended


@limits_hold
def test_swap_does_not_add_to_the_memory_of_a_task(scenario):
    """On v2 that is said of the run; on v1 groups take the inclination to swap from the one above."""
    where = "$(sed -n 's/^[0-9]*:memory://p; s/^0:://p' /proc/self/cgroup | grep myelin)"
    files = f"{CGROUPS}/memory{where}/memory.swappiness {CGROUPS}{where}/../memory.swap.max"
    shown = scenario.run(limited(scenario, scenario.script(f"cat {files} 2>&-; true"), memory=64)).lines_of("master.0")
    has_files = any({"memory.swappiness", "memory.swap.max"} & set(files) for _, _, files in os.walk(CGROUPS))
    assert shown == (["0"] if has_files else [])


@limits_hold
def test_the_limit_of_one_task_is_not_that_of_another(scenario):
    """Each has room for what all of them together have not."""
    text = GROW.replace("else:\n        time.sleep(600)", "").replace('== "{rank}"', '>= "0"')
    cmd = scenario.python(text.format(mebibytes=40))
    ended = scenario.run(limited(scenario, cmd, memory=64, workers=2))
    assert ended.status == 0 and ended.out.count("has it all") == 3, ended


SPIN = """
    import time
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < 2:
        pass
    print("share %.3f" % ((time.process_time() - used) / (time.monotonic() - began)))
    for line in open("/proc/self/cgroup"):
        number, names, path = line.strip().split(":", 2)
        for tree in ["cpu"] if "cpu" in names.split(",") else [""] if number == "0" else []:
            try:
                print(open("/sys/fs/cgroup/%s%s/cpu.stat" % (tree, path)).read())
            except OSError:
                pass
"""


@limits_hold
def test_processor_time_stays_under_the_quota(scenario):
    """On a busy machine any task gets little: that it was held back is what tells."""
    ended = scenario.run(limited(scenario, scenario.python(SPIN), cpu=0.05))
    assert ended.status == 0, ended
    assert float(re.search(r"share ([\d.]+)", ended.out).group(1)) < 0.12, ended
    held_back = [int(times) for times in re.findall(r"nr_throttled (\d+)", ended.out)]
    assert max(held_back) > 3, ended


@limits_hold
@pytest.mark.parametrize("cores", [0.009, 1000000])
def test_a_tiny_and_a_huge_share_can_be_asked_for(scenario, cores):
    assert scenario.run(limited(scenario, "/bin/true", cpu=cores)).status == 0


BOMB = """
    import os, sys, time
    made = 0
    for _ in range(200):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
        except BlockingIOError:
            print("made", made, flush=True)
            sys.exit(7)
    print("made", made, flush=True)
"""


@limits_hold
def test_a_task_that_forks_without_end_stops_at_its_ceiling(scenario):
    ended = scenario.run(limited(scenario, scenario.python(BOMB), cpu=1), "--max-processes", "20")
    assert ended.status == 7, ended
    assert ended.lines_of("master.0") == ["made 19"]
    assert "--max-processes" in ended.err, ended
    failed = [line for line in event(scenario, "task") if line["status"] == "failed"]
    limit = failed[0]["limit"]
    assert limit["resource"] == "processes" and limit["of"] == "task" and limit["limit"] == 20


@limits_hold
def test_a_ceiling_that_is_asked_for_is_each_tasks_own(scenario):
    """One task forks until it is refused, while its siblings have room; together they have more than one may."""
    script = BOMB.replace("    import os, sys, time\n", """
    import os, sys, time
    def up(rank):
        return os.path.exists("up.%s" % rank)
    if os.environ["RANK"] != "0":
        for _ in range(14):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        open("up." + os.environ["RANK"], "w").close()
        time.sleep(60)
    while not (up(1) and up(2)):
        time.sleep(0.02)
""", 1)
    ended = scenario.run(limited(scenario, scenario.python(script), cpu=1, workers=2), "--max-processes", "20")
    assert ended.status == 7, ended
    assert ended.lines_of("master.0") == ["made 19"]


PIDS_MAX = """
    for line in open("/proc/self/cgroup"):
        number, names, path = line.strip().split(":", 2)
        for tree in ["pids"] if "pids" in names.split(",") else [""] if number == "0" else []:
            for above in ("", "/.."):
                try:
                    print(above or "/.", open("/sys/fs/cgroup/%s%s%s/pids.max" % (tree, path, above)).read().strip())
                except OSError:
                    pass
"""


def ceilings_of(scenario, *arguments, workers=0):
    """What the control groups that the tasks are in, and those above them, say, each once."""
    ended = scenario.run(limited(scenario, scenario.python(PIDS_MAX), cpu=1, workers=workers), *arguments)
    assert ended.status == 0, ended
    return set(sum((ended.lines_of(task) for task in ["master.0", *(f"worker.{i}" for i in range(workers))]), []))


def most_here():
    """Half of what the kernel can have, as long as no group has less."""
    return min(int(pathlib.Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max")) // 2


@limits_hold
@pytest.mark.parametrize("workers", [0, 1, 7])
def test_tasks_share_a_ceiling_of_processes_that_the_machine_can_bear(scenario, workers):
    shown = [int(line.split()[1]) for line in ceilings_of(scenario, workers=workers) if line.split()[1].isdigit()]
    assert min(shown) <= min(8192 * (workers + 1), most_here()), shown
    if os.geteuid() == 0:  # whose slice has no ceiling of its own
        assert min(8192 * (workers + 1), most_here()) in shown, shown


@limits_hold
def test_there_is_a_ceiling_of_processes_unless_it_is_waived(scenario):
    assert "/. 99" in ceilings_of(scenario, "--max-processes", "99", workers=1)
    assert not {"/. 99", "/. 8192"} & ceilings_of(scenario, "--max-processes", "0")


@contextlib.contextmanager
def standing_in_a_group(controller, file, text):
    """What a program is started under to stand in a control group that has a limit of its own."""
    is_v2 = (CGROUPS / "cgroup.controllers").exists()
    top = pathlib.Path(tempfile.mkdtemp(prefix="cramped-", dir=CGROUPS if is_v2 else CGROUPS / controller))
    inner = top / "inner" if is_v2 else top
    try:
        if is_v2:
            inner.mkdir()
        (top / file[is_v2]).write_text(text)
        yield ["sh", "-c", f'echo $$ >{inner}/cgroup.procs; shift; exec {PROGRAM} "$@"', "sh"]
    finally:
        for path in (inner, top):
            wait_until(lambda path=path: not path.exists() or try_to_remove(path))


@pytest.fixture
def cramped():
    """A group that may have 60 processes."""
    with standing_in_a_group("pids", ("pids.max", "pids.max"), "60") as under:
        yield under


@pytest.fixture
def confined():
    """A group that may have 60 MiB."""
    with standing_in_a_group("memory", ("memory.limit_in_bytes", "memory.max"), str(60 << 20)) as under:
        yield under


def try_to_remove(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


root_alone = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a group with a ceiling of its own")


@limits_hold
@root_alone
def test_a_fork_bomb_leaves_half_of_the_processes_to_others(scenario, cramped):
    """The sibling's process counts, those of the run's own supervisor do not."""
    sibling = 'open("up", "w").close(); time.sleep(60)'
    script = BOMB.replace("    made = 0", f"""
    if os.environ["RANK"] == "1":
        {sibling}
    while not os.path.exists("up"):
        time.sleep(0.02)
    made = 0""", 1)
    ended = scenario.run(limited(scenario, scenario.python(script), cpu=1, workers=1), under=cramped)
    assert ended.status == 7, ended
    assert ended.lines_of("master.0") == ["made 28"]
    assert "as all of them had 30 together; --max-processes gives each" in ended.err, ended
    told = [(line["rank"], line["limit"]) for line in event(scenario, "task") if "limit" in line]
    assert [rank for rank, _ in told] == [0], "the sibling was only stopped"
    limit = told[0][1]
    assert limit["resource"] == "processes" and limit["of"] == "run" and limit["limit"] == 30
    assert groups_of(scenario) == []


@limits_hold
@root_alone
def test_a_kill_for_the_memory_of_a_group_above_is_not_told_as_one_for_the_tasks_limit(scenario, confined):
    cmd = scenario.python(GROW.format(rank=0, mebibytes=300))
    ended = scenario.run(limited(scenario, cmd, memory=1024), under=confined)
    assert ended.status == 137, ended
    assert "master.0 was killed for lack of memory, though not at its own limit: it had at most " in ended.err, ended
    assert "1024" not in ended.err, ended
    failed = [line for line in event(scenario, "task") if line["status"] == "failed"]
    assert failed[0]["limit"]["of"] == "outside" and 0 < failed[0]["limit"]["peak"] <= 60 << 20, failed
    assert event(scenario, "status")[-1]["kind"] == "out_of_memory"


@limits_hold
@root_alone
def test_in_a_group_with_less_memory_what_is_used_is_what_that_group_uses(scenario, confined):
    shell, flag, enter, name = confined
    beside = "import subprocess, sys; kept = b'x' * (30 << 20); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    under = [shell, flag, enter.split(";")[0] + '; exec "$@"', name, PYTHON, "-c", beside]
    ended = scenario.finish(scenario.start("node", "--json", under=under))
    facts = json.loads(ended.out)
    assert facts["resources"]["memory"]["total"] == 60 and 30 <= facts["memory_used_mib"] <= 60, ended


@limits_hold
@root_alone
def test_a_run_that_is_too_large_for_its_ceiling_is_told_so(scenario, cramped):
    """On v2 tasks cannot even be born there; on v1 it is what they start."""
    ended = scenario.run(limited(scenario, scenario.script("sleep 5 & wait"), memory=64, workers=39), under=cramped)
    assert ended.status != 0, ended
    assert "as all of them had 30 together; --max-processes gives each" in ended.err, ended
    assert groups_of(scenario) == []


@pytest.mark.parametrize("number", ["-1", "x", "1.5", "99999999999999999999", ""])
def test_a_wrong_number_of_processes_is_refused(scenario, number):
    ended = scenario.run(scenario.job("true"), f"--max-processes={number}")
    assert ended.status == 125 and "--max-processes takes a number from 0" in ended.err, ended


# -- nothing is left behind


@limits_hold
@pytest.mark.parametrize("code", [0, 5])
def test_no_control_group_is_left_of_a_run_that_ended(scenario, code):
    job = limited(scenario, scenario.script(f"cat /proc/self/cgroup; exit {code}"), memory=64, cpu=1, workers=3)
    ended = scenario.run(job)
    assert ended.status == code, ended
    assert "/myelin-" in ended.out, "there was a group"
    assert groups_of(scenario) == []
    assert event(scenario, "checked")[-1]["cgroups"] == 0


@limits_hold
def test_a_task_gets_groups_only_for_limits_that_it_has(scenario):
    ended = scenario.run(limited(scenario, "cat /proc/self/cgroup", memory=64), "--max-processes", "0")
    within = [line for line in ended.lines_of("master.0") if "/myelin-" in line]
    assert len(within) == 1, ended
    assert re.match(r"\d+:memory:|0::", within[0]), ended
    ended = scenario.run(scenario.job("cat /proc/self/cgroup"))
    assert "myelin" not in ended.out, ended


def start_limited(scenario, text, *arguments):
    process = scenario.start("run", limited(scenario, scenario.script(text), memory=64, cpu=1, workers=1), *arguments)
    scenario.wait_for("up.*", 2)
    assert groups_of(scenario), "there are groups while it runs"
    return process


SLEEPERS = "touch up.$RANK; exec sleep 600"
CHILDREN = "sleep 600 & setsid sleep 600 & sleep 0.1; touch up.$RANK; wait"


@limits_hold
@pytest.mark.parametrize("presses", [1, 2])
def test_no_control_group_is_left_of_a_run_that_was_interrupted(scenario, presses):
    process = start_limited(scenario, CHILDREN)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert scenario.finish(process).status == 130
    assert groups_of(scenario) == []
    assert event(scenario, "checked")[-1]["cgroups"] == 0


@limits_hold
@pytest.mark.parametrize("text", [pytest.param(SLEEPERS, id="tasks"), pytest.param(CHILDREN, id="their children")])
def test_no_control_group_outlives_the_death_of_the_supervisor(scenario, text):
    process = start_limited(scenario, text)
    os.kill(keeper_of(scenario)[1], signal.SIGKILL)
    ended = scenario.finish(process)
    assert ended.status == 125, ended
    assert groups_of(scenario) == []
    assert event(scenario, "checked")[-1]["cgroups"] == 0


@limits_hold
def test_who_looks_at_a_run_without_supervisor_and_keeper_ends_what_is_left_of_it(scenario):
    """Detached children included, which nothing but their control group gives away."""
    process = start_limited(scenario, CHILDREN)
    kill_both(scenario)
    ended = scenario.finish(process)
    assert ended.status == 125, ended
    assert groups_of(scenario) == []
    assert wait_until(lambda: not scenario.left())


@limits_hold
def test_the_next_run_clears_away_the_groups_of_a_dead_one(scenario):
    process = start_limited(scenario, CHILDREN)
    process.kill()  # nobody looks at the run any more
    process.communicate()
    kill_both(scenario)
    assert groups_of(scenario) and scenario.left()
    other = limited(scenario, "/bin/true", memory=64, cpu=1)
    environment = {**scenario.environment, "MYELIN_HOME": str(scenario.directory / "another")}
    ended = scenario.run(other, env=environment)
    assert ended.status == 0, ended
    assert wait_until(lambda: groups_of(scenario) == [])
    assert wait_until(lambda: not scenario.left())


@limits_hold
def test_the_next_run_leaves_the_groups_of_a_living_one_alone(scenario):
    process = start_limited(scenario, SLEEPERS)
    before = groups_of(scenario)
    beside = scenario.start("run", limited(scenario, "/bin/true", memory=64, cpu=1))
    out, err = beside.communicate(timeout=20)
    assert beside.returncode == 0, err.decode()
    assert groups_of(scenario) == before
    process.send_signal(signal.SIGINT)
    assert scenario.finish(process).status == 130


@limits_hold
def test_a_group_that_only_has_a_similar_name_is_left_alone(scenario):
    """systemd gives each unit a group of its name: myelin-server.service is none of ours."""
    places = scenario.run(limited(scenario, "cat /proc/self/cgroup", memory=64)).lines_of("master.0")
    trees = [CGROUPS / "memory", CGROUPS]
    path = next(line.split(":", 2)[2] for line in places if "/myelin-" in line)
    parent = next(tree for tree in trees if tree.is_dir()) / path.split("/myelin-")[0].lstrip("/")
    stranger = parent / f"myelin-{scenario.mark}.service"
    stranger.mkdir()
    try:
        assert scenario.run(limited(scenario, "/bin/true", memory=64)).status == 0
        assert stranger.is_dir()
    finally:
        stranger.rmdir()


@limits_hold
def test_many_runs_at_once_do_not_take_each_others_groups(scenario):
    job = limited(scenario, "/bin/true", memory=64, cpu=1, workers=1)
    processes = [scenario.start("run", job) for _ in range(12)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err.decode()
    assert sum((groups_of(scenario, run) for run in range(1, 13)), []) == []


@limits_hold
def test_a_stranger_in_a_group_delays_the_end_but_does_not_prevent_it(scenario):
    process = start_limited(scenario, SLEEPERS)
    group = next(path for path in pathlib.Path(groups_of(scenario)[0]).iterdir() if path.is_dir())
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (group / "cgroup.procs").write_text(str(stranger.pid))
        process.send_signal(signal.SIGINT)
        assert scenario.finish(process).status == 130
        assert stranger.poll() is None, "it is none of ours"
        assert event(scenario, "checked")[-1]["cgroups"] == 1
    finally:
        stranger.kill()
        stranger.wait()
        assert wait_until(lambda: not [remove(path) for path in groups_of(scenario)])


def remove(group):
    for path in sorted(pathlib.Path(group).rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
    os.rmdir(group)


# -- where nothing can be enforced


@pytest.fixture
def as_nobody(scenario):
    """The stage of an unprivileged user; root puts the program where that one can read it."""
    if os.geteuid() != 0:
        yield scenario, ()
        return
    place = pathlib.Path(tempfile.mkdtemp(prefix="myelin-limits-"))
    try:
        place.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        program = shutil.copy(PROGRAM, place / "myelin")
        scenario.directory = place
        scenario.home = place / "home"
        scenario.environment.update(MYELIN_HOME=str(scenario.home), HOME=str(place))
        switch = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--bounding-set=-all"]
        yield scenario, [*switch, "sh", "-c", f'shift; exec {program} "$@"', "sh"]
    finally:
        shutil.rmtree(place)


def test_what_cannot_be_enforced_is_said_in_one_line_with_the_reason(as_nobody):
    scenario, under = as_nobody
    ended = scenario.run(limited(scenario, "/bin/true", memory=64, cpu=1, workers=1), under=under)
    assert ended.status == 0, ended
    said = [line for line in ended.err.splitlines() if "not enforced" in line]
    assert len(said) == 1, ended
    assert re.match(r"myelin: not enforced here: cpu.*, memory \(.*(this user|control groups).*\)$", said[0]), ended
    assert event(scenario, "checked")[-1]["cgroups"] == 0


def test_what_cannot_be_enforced_is_said_by_plan_and_a_dry_run_and_before_the_start(as_nobody):
    scenario, under = as_nobody
    job = limited(scenario, "/bin/true", memory=64, cpu=1)
    ended = scenario.run(job, under=under)
    (said,) = [line for line in ended.err.splitlines() if "not enforced" in line]
    lines = [line["message"] if line["event"] == "notice" else line.get("status") for line in journal(scenario)]
    assert lines.index(said.removeprefix("myelin: ")) < lines.index("starting"), lines
    for arguments in (["plan", job], ["plan", "--json", job], ["run", "--dry-run", job], ["run", "--dry-run", "--json", job]):
        ended = scenario.finish(scenario.start(*arguments, under=under))
        assert ended.status == 0 and [line for line in ended.err.splitlines() if "not enforced" in line] == [said], ended
        assert "not enforced" not in ended.out, ended


@limits_hold
def test_nothing_is_foreseen_where_limits_hold(scenario):
    for arguments in (["plan"], ["run", "--dry-run"]):
        ended = scenario.finish(scenario.start(*arguments, limited(scenario, "/bin/true", memory=64, cpu=1)))
        assert ended.status == 0 and "enforced" not in ended.err, ended


def test_a_run_without_limits_says_nothing_of_them(as_nobody):
    scenario, under = as_nobody
    ended = scenario.run(scenario.job("/bin/true"), under=under)
    assert ended.status == 0 and "enforced" not in ended.err, ended
