# SPDX-License-Identifier: Apache-2.0
"""Several runs share one machine: each gets all that it asks for, in turn, or says why not.

    MYELIN_SUBMISSIONS   how many runs the crowd has (default: 200)
"""
import json
import os
import random
import re
import signal
import subprocess
import threading
import time

import pytest
from conftest import keeper_of
from shapes import assert_shape

NVML = r"""
#include <string.h>
typedef struct device *nvmlDevice_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
static char devices[4];
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return code == 4 ? "Insufficient Permissions" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned int *n) { *n = sizeof devices; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *out) {
    if (i >= sizeof devices) return 2;
    *out = (nvmlDevice_t)&devices[i];
    return 0;
}
int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int n) {
    strncpy(name, "Stand-in 3000", n);
    name[12] = (char)('0' + ((char *)device - devices));
    return 0;
}
int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int n) {
    strncpy(uuid, "GPU-0aaaaaaa-0000-0000-0000-000000000000", n);
    uuid[4] = (char)('0' + ((char *)device - devices));
    return 0;
}
int nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    memory->total = 16ull << 30;
    memory->used = 3ull << 30;
    memory->free = 13ull << 30;
    return 0;
}
int nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *use) {
    if (device == (nvmlDevice_t)&devices[3]) return 3;
    use->gpu = 42;
    use->memory = 7;
    return 0;
}
"""


def install_gpus(scenario, init=0):
    """A library to NVML's documented ABI, with four GPUs, in the place of the driver's."""
    folder = scenario.directory / "nvml"
    folder.mkdir()
    source = folder / "nvml.c"
    source.write_text(NVML)
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DINIT={init}", "-o", folder / "libnvidia-ml.so.1", source],
                   check=True)
    scenario.environment["LD_LIBRARY_PATH"] = str(folder)


def node(scenario):
    ended = scenario.finish(scenario.start("node", "--json"), 60) if not scenario.left() else None
    if ended is None:
        process = scenario.start("node", "--json")
        out, _ = process.communicate(timeout=60)
        return json.loads(out)
    return json.loads(ended.out)


def cores(scenario):
    return node(scenario)["resources"]["cpu"]["total"]


def asking(scenario, cmd, name="job.yml", **amounts):
    head = "environment:\n  resources:\n" + "".join(
        f"    {resource}: {{requests: {amount}}}\n" for resource, amount in amounts.items())
    return scenario.job(cmd, head=head, name=name)


def detached(scenario, job, *arguments):
    process = scenario.start("run", "-d", job, *arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return int(out)


def events(scenario, run):
    path = scenario.home / "runs" / str(run) / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def statuses(scenario, run):
    return [event["status"] for event in events(scenario, run) if event["event"] == "status"]


FINAL = {"succeeded", "failed", "stopped"}


def wait_for_end(scenario, run, seconds=60):
    deadline = time.monotonic() + seconds
    while not FINAL & set(statuses(scenario, run)[-1:]):
        assert time.monotonic() < deadline, f"run {run} is {statuses(scenario, run)} after {seconds} s"
        time.sleep(0.02)
    end = statuses(scenario, run)[-1]
    # The last line is written a moment before its writer is gone.
    owner = (scenario.home / "runs" / str(run) / "lock").read_text().strip()
    while owner and os.path.exists(f"/proc/{owner}/environ") and int(owner) in scenario.left():
        assert time.monotonic() < deadline, f"run {run} has ended, and its keeper has not"
        time.sleep(0.02)
    return end


def wait_for_status(scenario, run, status, seconds=30):
    deadline = time.monotonic() + seconds
    while status not in statuses(scenario, run):
        assert time.monotonic() < deadline, f"run {run} is {statuses(scenario, run)}, not {status}"
        time.sleep(0.02)


def say(scenario, *arguments):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


UNTIL_GO = "touch up; while [ ! -e go ]; do sleep 0.05; done"


def test_what_does_not_fit_beside_another_waits_says_why_and_starts_when_that_ends(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    second = scenario.start("run", asking(scenario, "echo mine", name="second.yml", cpu=1))
    wait_for_status(scenario, 2, "scheduled")
    scheduled = next(event for event in events(scenario, 2) if event.get("status") == "scheduled")
    assert scheduled["reason"] == f"waiting for 1 CPU: none is free, run 1 holds {n}"  # an age would be wrong when it is read
    time.sleep(0.3)
    assert second.poll() is None and "starting" not in statuses(scenario, 2)
    (scenario.directory / "go").touch()
    ended = scenario.finish(second)
    assert ended.status == 0 and ended.lines_of("master.0") == ["mine"], ended
    assert ended.err.count("waiting for 1 CPU") == 1, ended
    assert wait_for_end(scenario, first) == "succeeded"
    assert statuses(scenario, 2) == ["scheduled", "starting", "running", "succeeded"]


def test_runs_start_in_the_order_in_which_they_came_though_a_later_one_would_fit(scenario):
    n = cores(scenario)
    if n < 2:
        pytest.skip("needs two cores")
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n - 1))
    scenario.wait_for("up")
    order = scenario.directory / "order"
    log = scenario.script(f'echo $MYELIN_RUN_ID >>"{order}"', name="log.sh")
    runs = [detached(scenario, asking(scenario, log, name=f"{i}.yml", cpu=amount))
            for i, amount in enumerate([n, n, 1])]
    for run in runs:
        wait_for_status(scenario, run, "scheduled")
    time.sleep(0.7)
    assert not order.exists(), "the last of them fits, and waits behind the head all the same"
    (scenario.directory / "go").touch()
    for run in [first, *runs]:
        assert wait_for_end(scenario, run) == "succeeded"
    assert [int(line) for line in order.read_text().split()] == runs


def test_a_run_that_asks_for_nothing_starts_at_once_and_makes_no_ledger(scenario):
    assert scenario.run(scenario.job("true")).status == 0
    assert not (scenario.home / "myelin.db").exists()
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=cores(scenario)))
    scenario.wait_for("up")
    waits = detached(scenario, asking(scenario, "true", name="waits.yml", cpu=1))
    free = detached(scenario, scenario.job("true", name="free.yml"))
    assert wait_for_end(scenario, free) == "succeeded"
    assert "scheduled" not in statuses(scenario, free)
    (scenario.directory / "go").touch()
    assert [wait_for_end(scenario, run) for run in (first, waits)] == ["succeeded"] * 2


@pytest.mark.parametrize("which", ["supervisor", "keeper", "both"])
def test_a_killed_run_gives_back_what_it_held(scenario, which):
    first = detached(scenario, asking(scenario, "sleep 600", cpu=cores(scenario)))
    wait_for_status(scenario, first, "running")
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, second, "scheduled")
    keeper, supervisor = keeper_of(scenario, first)
    if which == "both":
        os.kill(keeper, signal.SIGSTOP)
    if which != "keeper":
        os.kill(supervisor, signal.SIGKILL)
    if which != "supervisor":
        os.kill(keeper, signal.SIGKILL)
    assert wait_for_end(scenario, second) == "succeeded"


def test_a_killed_run_that_waited_lets_the_next_one_pass(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n))
    scenario.wait_for("up")
    head = detached(scenario, asking(scenario, "sleep 600", name="head.yml", cpu=n))
    last = detached(scenario, asking(scenario, "true", name="last.yml", cpu=1))
    wait_for_status(scenario, last, "scheduled")
    keeper, supervisor = keeper_of(scenario, head)
    os.kill(keeper, signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, first) == "succeeded"
    assert wait_for_end(scenario, last) == "succeeded"


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_an_interrupt_while_it_waits_ends_the_run(scenario, name):
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=cores(scenario)))
    scenario.wait_for("up")
    second = scenario.start("run", asking(scenario, "true", name="second.yml", cpu=1))
    wait_for_status(scenario, 2, "scheduled")
    second.send_signal(getattr(signal, f"SIG{name}"))
    out, err = second.communicate(timeout=20)
    assert second.returncode == 130, err
    assert statuses(scenario, 2)[-1] == "stopped"
    assert node(scenario)["queue"] == []
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, first) == "succeeded"


@pytest.mark.parametrize("amounts, sentence", [
    ({"gpu": 1}, "master.0 asks for 1 GPU; this machine has none"),
    ({"cpu": 100000}, "master.0 asks for 100000 CPUs; this machine has "),
    ({"memory": 900000000}, "master.0 asks for 900000000 MiB of memory; this machine has "),
], ids=["gpu", "cpu", "memory"])
def test_what_can_never_fit_is_refused_before_anything_starts(scenario, amounts, sentence):
    ended = scenario.run(asking(scenario, "touch started", **amounts))
    assert ended.status == 125 and sentence in ended.err, ended
    assert not (scenario.directory / "started").exists()
    assert not (scenario.home / "runs").exists() or not list((scenario.home / "runs").iterdir())


def test_a_gang_that_is_too_large_together_is_refused_with_the_sum(scenario):
    n = cores(scenario)
    job = scenario.job("true", "pytorch", workers=n, topology="default_worker: {resources: {cpu: {requests: 2}}}")
    ended = scenario.run(job)
    assert ended.status == 125, ended
    assert f"its tasks ask for {2 * n} CPUs together; this machine has {n} CPU" in ended.err, ended
    (told,) = answers(scenario, job)
    assert (told["answer"], told["change"]["role"], told["oversubscribing_helps"]) == ("never", "worker", True)
    assert scenario.run(job, "--oversubscribe").status == 0


def test_a_rehearsal_without_gpus_says_so_and_shows_none_to_the_tasks(scenario):
    scenario.environment["CUDA_VISIBLE_DEVICES"] = "0"
    job = asking(scenario, scenario.script('echo "[${CUDA_VISIBLE_DEVICES-unset}]"'), gpu=8)
    ended = scenario.run(job, "--without", "gpu")
    assert ended.status == 0 and ended.lines_of("master.0") == ["[]"], ended
    assert "a rehearsal" in ended.err, ended


def test_a_run_gives_up_waiting_when_told_to(scenario):
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=cores(scenario)))
    scenario.wait_for("up")
    code, _, err = say(scenario, "run", asking(scenario, "true", name="second.yml", cpu=1), "--timeout", "0.4")
    assert code == 125 and "its turn did not come within 0.4s: waiting for 1 CPU" in err, err
    assert "because of it" not in err, "nothing was started that could be stopped"
    assert err.splitlines()[-1].startswith("run 2 failed after"), err
    assert node(scenario)["queue"] == []
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, first) == "succeeded"


def test_a_dry_run_says_whether_it_would_start_and_starts_nothing(scenario):
    n = cores(scenario)
    job = asking(scenario, scenario.script(UNTIL_GO), cpu=n)
    assert say(scenario, "run", "--dry-run", job)[:2] == (0, "it would start now\n")
    assert not scenario.home.exists()
    first = detached(scenario, job)
    scenario.wait_for("up")
    code, out, _ = say(scenario, "run", "--dry-run", job)
    assert code == 1 and out.startswith(f"it would be waiting for {n} CPU"), out
    assert len(list((scenario.home / "runs").iterdir())) == 1
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, first) == "succeeded"


def test_why_names_the_holder_the_place_in_the_queue_and_what_would_help(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n - 0.5))
    scenario.wait_for("up")
    gang = scenario.job("true", "pytorch", workers=4, name="gang.yml",
                        topology="default_worker: {resources: {cpu: {requests: 0.25}}}")
    code, out, _ = say(scenario, "why", gang)
    assert code == 0 and "it would wait, as the 1st in the queue" in out, out
    assert f"run {first} holds" in out and f"it starts as soon as run {first} ends" in out, out
    assert "with n_workers: 2 instead of 4 it would start now" in out, out
    assert "worker.2 is the first that finds no room: it asks for 0.25 CPUs, and none is left" in out, out
    fewer = scenario.write("fewer.yml", gang.read_text().replace("n_workers: 4", "n_workers: 2"))
    assert scenario.start("run", fewer).wait(timeout=30) == 0, "what why promised holds"
    second = detached(scenario, asking(scenario, "true", name="second.yml", cpu=n))
    wait_for_status(scenario, second, "scheduled")
    code, out, _ = say(scenario, "why", second)
    assert "it is the 1st of 1 in the queue" in out and f"it starts as soon as run {first} ends" in out, out
    assert f"master.0 is the first that finds no room: it asks for {n} CPUs, and 0.5 is left" in out, out
    assert f"with cpu: {{requests: 0.5}} instead of {n} for the master it would start now" in out, out
    assert "with --oversubscribe it would start now" in out, out
    less = asking(scenario, "true", name="less.yml", cpu=0.5)
    assert say(scenario, "run", "--dry-run", less)[0] == 1, "who waits is not overtaken"
    assert "with --oversubscribe it would start now" in say(scenario, "why", less)[1], "who reserves nothing does not wait"
    both = asking(scenario, "true", name="both.yml", cpu=0.5, memory=1)
    assert "--oversubscribe" not in say(scenario, "why", both)[1], "it would still stand behind the first"
    (told,) = answers(scenario, second)
    assert (told["blocked_task"], told["blocked_by"]) == ("master.0", "cpu")
    assert told["change"] == {"role": "master", "resource": "cpu", "from": n, "to": 0.5}
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, second) == "succeeded"
    assert "does not wait: it is over (succeeded)" in say(scenario, "why", second)[1]


def answers(scenario, *arguments, status=0):
    code, out, err = say(scenario, "why", *arguments, "--json")
    assert code == status, err
    told = json.loads(out)
    for answer in told:
        assert_shape(answer, "Why runs wait")
        for amounts in answer["resources"].values():
            assert set(amounts) == {"needed", "free", "total", "is_enough", "holders"}
    return told


def test_why_tells_of_several_runs_and_without_a_name_of_all_that_wait(scenario):
    code, out, err = say(scenario, "why")
    assert (code, out) == (0, "") and "no run waits" in err
    n = cores(scenario)
    job = asking(scenario, scenario.script(UNTIL_GO), cpu=n)
    first = detached(scenario, job)
    scenario.wait_for("up")
    waiting = [detached(scenario, job) for _ in range(2)]
    for run in waiting:
        wait_for_status(scenario, run, "scheduled")
    code, out, _ = say(scenario, "why")
    heads = [line for line in out.splitlines() if not line.startswith(" ")]
    assert code == 0 and [line.split(" waits")[0] for line in heads] == [f"run {run}" for run in waiting], out
    second, third = answers(scenario)
    assert [second["run"], third["run"]] == waiting
    assert [(told["answer"], told["status"]) for told in (second, third)] == [("waits", "scheduled")] * 2
    assert (second["position"], third["position"], third["queue_length"]) == (1, 2, 2)
    assert (second["behind"], third["behind"], second["starts_after"]) == (None, waiting[0], first)
    (holder,) = second["resources"]["cpu"].pop("holders")
    assert second["resources"]["cpu"] == {"needed": n, "free": 0, "total": n, "is_enough": False}
    assert (holder["run"], holder["amount"]) == (first, n)
    code, out, err = say(scenario, "why", waiting[1], 99, first)
    assert code == 1 and "no run '99'" in err
    assert f"run {waiting[1]} waits" in out and f"run {first} does not wait: it holds {n} CPU" in out
    (told,) = answers(scenario, 99, first, status=1)
    assert (told["answer"], told["holds"]) == ("goes_on", {"cpu": n})
    (scenario.directory / "go").touch()
    for run in (first, *waiting):
        assert wait_for_end(scenario, run) == "succeeded"
    assert [told["answer"] for told in answers(scenario, first)] == ["over"] and answers(scenario) == []


def test_why_tells_a_script_of_a_file_what_a_dry_run_does(scenario):
    n = cores(scenario)
    first = detached(scenario, asking(scenario, scenario.script(UNTIL_GO), cpu=n - 0.5))
    scenario.wait_for("up")
    gang = scenario.job("true", "pytorch", workers=4, name="gang.yml",
                        topology="default_worker: {resources: {cpu: {requests: 0.25}}}")
    (told,) = answers(scenario, gang)
    assert (told["answer"], told["file"], told["starts_after"]) == ("waits", str(gang), first)
    assert (told["fewer_workers"], told["oversubscribing_helps"]) == (2, True)
    assert (told["blocked_task"], told["blocked_by"]) == ("worker.2", "cpu")
    assert told["change"] == {"role": "worker", "resource": None, "from": 4, "to": 2}
    code, out, _ = say(scenario, "run", "--dry-run", "--json", gang)
    dry = json.loads(out)
    assert code == 1 and dry.pop("reason") and told.pop("reason") and dry == told
    (told,) = answers(scenario, "-f", scenario.job("true", name="free.yml"))
    assert (told["answer"], told["resources"], told["position"]) == ("starts", {}, None)
    (told,) = answers(scenario, asking(scenario, "true", name="huge.yml", cpu=100000))
    assert told["answer"] == "never" and "asks for 100000 CPUs" in told["reason"]
    assert say(scenario, "why", gang, first)[0] == 2, "a file stands alone"
    for missing in "missing.yml", "miss/ing":
        code, _, err = say(scenario, "why", missing)
        assert code == 1 and f"cannot read the polyaxonfile: {missing}: No such file" in err
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, first) == "succeeded"


# ---- GPUs ----


def test_each_task_sees_the_gpus_that_it_was_granted_and_no_others(scenario):
    install_gpus(scenario)
    job = scenario.job(
        scenario.script('echo "$CUDA_VISIBLE_DEVICES" >gpus.$RANK; touch up.$RANK; while [ ! -e go ]; do sleep 0.05; done'),
        "pytorch", workers=2, topology="default_worker: {resources: {gpu: {requests: 1}}}",
        head="")
    run = detached(scenario, job)
    scenario.wait_for("up.*", 3)
    assert (scenario.directory / "gpus.0").read_text() == "\n", "the master asked for none"
    assert {(scenario.directory / f"gpus.{rank}").read_text() for rank in (1, 2)} == {"0\n", "1\n"}
    facts = node(scenario)
    assert [gpu["run"] for gpu in facts["gpus"]] == [run, run, None, None]
    assert facts["gpus"][1] == {"index": 1, "name": "Stand-in 3001", "memory_mib": 16384, "used_mib": 3072,
                                "busy_percent": 42, "run": run}
    assert facts["gpus"][3]["busy_percent"] is None
    code, out, _ = say(scenario, "run", "--dry-run", asking(scenario, "true", name="three.yml", gpu=3))
    assert code == 1 and out.startswith("it would be waiting for 3 GPUs: 2 are free, run 1 holds 2"), out
    second = detached(scenario, asking(scenario, scenario.script('echo "$CUDA_VISIBLE_DEVICES"', name="s.sh"),
                                       name="two.yml", gpu=2))
    assert wait_for_end(scenario, second) == "succeeded"
    assert (scenario.home / "runs" / str(second) / "logs" / "master.0.log").read_text() == "2,3\n"
    (scenario.directory / "go").touch()
    assert wait_for_end(scenario, run) == "succeeded"


def test_gpus_that_the_environment_hides_are_not_given_out(scenario):
    install_gpus(scenario)
    scenario.environment["CUDA_VISIBLE_DEVICES"] = "1,3"
    ended = scenario.run(asking(scenario, scenario.script('echo "$CUDA_VISIBLE_DEVICES"'), gpu=2))
    assert ended.lines_of("master.0") == ["1,3"], ended
    assert scenario.run(asking(scenario, "true", gpu=3)).status == 125


@pytest.mark.parametrize("names, seen", [
    ("GPU-3aaaaaaa-0000-0000-0000-000000000000,GPU-1", "1,3"),
    ("2,GPU-0aaa", "0,2"),
    ("GPU-1,nonsense,GPU-2", "1"),
], ids=["uuids", "mixed", "the first that is none ends the list"])
def test_gpus_that_are_named_by_their_uuids_are_those_that_are_given_out(scenario, names, seen):
    install_gpus(scenario)
    scenario.environment["CUDA_VISIBLE_DEVICES"] = names
    n = seen.count(",") + 1
    ended = scenario.run(asking(scenario, scenario.script('echo "$CUDA_VISIBLE_DEVICES"'), gpu=n))
    assert ended.lines_of("master.0") == [seen], ended
    assert scenario.run(asking(scenario, "true", gpu=n + 1)).status == 125


def test_what_is_in_use_is_told_as_what_it_is(scenario):
    code, out, err = say(scenario, "node")
    (cpu,) = [line for line in out.splitlines() if line.startswith("cpu ")]
    assert code == 0 and re.search(r" \d+\.\d\d \(load average\)$", cpu.rstrip()), out + err


def test_a_driver_that_does_not_answer_is_told(scenario):
    install_gpus(scenario, init=4)
    ended = scenario.run(asking(scenario, "true", gpu=1))
    assert ended.status == 125 and "this machine has none" in ended.err, ended
    assert "the driver of the GPUs does not start: Insufficient Permissions" in ended.err, ended


# ---- bad days ----


def test_a_damaged_ledger_is_told_with_the_way_out_which_works(scenario):
    scenario.home.mkdir(mode=0o700)
    ledger = scenario.home / "myelin.db"
    ledger.write_text("this is no database, though it is long enough to be one" * 100)
    job = asking(scenario, "true", cpu=1)
    ended = scenario.run(job)
    assert ended.status == 125 and "is damaged" in ended.err and "myelin reindex" in ended.err, ended
    assert not list((scenario.home / "runs").iterdir()), "no run was begun"
    assert scenario.run(scenario.job("true", name="free.yml")).status == 0, "who reserves nothing is not hurt"
    ledger.rename(scenario.home / "myelin.db.damaged")
    assert scenario.run(job).status == 0


def test_a_ledger_that_cannot_be_written_is_told(scenario):
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    job = asking(scenario, "true", cpu=1)
    assert scenario.run(job).status == 0
    (scenario.home / "myelin.db").chmod(0o400)
    ended = scenario.run(job)
    assert ended.status == 125 and "cannot write the ledger" in ended.err, ended


def test_a_ledger_of_a_newer_version_is_left_alone(scenario):
    import sqlite3

    job = asking(scenario, "true", cpu=1)
    assert scenario.run(job).status == 0
    with sqlite3.connect(scenario.home / "myelin.db") as ledger:
        ledger.execute("PRAGMA user_version = 1000")
    ended = scenario.run(job)
    assert ended.status == 125 and "was made by a newer myelin" in ended.err, ended


# ---- a crowd ----

# A lock that the kernel ends with its holder stands for each thing that may be held by one alone: a GPU, a port, either
# half of the CPUs. Who meets somebody says whom; no process is made that could outlive the task.
CROWD = """
    take() {{  # DESCRIPTOR FILE
        eval "exec $1>>'$2'"
        flock -n "$1" && echo "$MYELIN_RUN_ID" >"$2"
    }}
    meet() {{
        echo "met: $(cat "$@" | tr '\\n' ' ')"
        exit 7
    }}
    {take}
    take 7 "port.$MYELIN_PORT" || meet "port.$MYELIN_PORT"
    exec sleep 0.{pause}
"""
TAKE_GPU = 'take 8 "gpu.$CUDA_VISIBLE_DEVICES" || meet "gpu.$CUDA_VISIBLE_DEVICES"'
TAKE_ALL = "take 8 half.0 || meet half.0; take 9 half.1 || meet half.1"
TAKE_HALF = "take 8 half.0 || take 8 half.1 || meet half.0 half.1"


def kill_somebody(scenario, run, chance):
    """Kills the keeper of a run, its supervisor, or both at a random moment of its life. True: both."""
    which = chance.choice(["keeper", "supervisor", "both"])
    try:
        keeper, supervisor = keeper_of(scenario, run)
        if which == "both":
            os.kill(keeper, signal.SIGSTOP)
        if which != "keeper":
            os.kill(supervisor, signal.SIGKILL)
        if which != "supervisor":
            os.kill(keeper, signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        return False  # it is over, or not begun
    return which == "both"


def whom_it_met(scenario, run):
    """The runs that had what this one was given; those who had it before are among them."""
    log = (scenario.home / "runs" / str(run) / "logs" / "master.0.log").read_text()
    return {int(word) for line in log.splitlines() if line.startswith("met: ") for word in line.split()[1:]}


def test_a_crowd_with_random_kills_never_holds_a_thing_twice(scenario):
    crowd = int(os.environ.get("MYELIN_SUBMISSIONS", 200))
    seed = int(os.environ.get("MYELIN_TEST_SEED", time.time_ns() % 1000000))
    print(f"MYELIN_TEST_SEED={seed}")
    chance = random.Random(seed)
    install_gpus(scenario)
    n = cores(scenario)
    jobs = []
    for i in range(crowd):
        take, amounts = chance.choice([(TAKE_GPU, {"gpu": 1}), (TAKE_GPU, {"gpu": 1}), (TAKE_ALL, {"cpu": n}),
                                       (TAKE_HALF, {"cpu": n / 2})])
        text = CROWD.format(take=take, pause=f"{chance.randrange(20):02d}")
        jobs.append(asking(scenario, scenario.script(text, name=f"{i}.sh"), name=f"{i}.yml", **amounts))
    runs, killed = [], set()
    kills = [(chance.random() * crowd * 0.05, chance.randrange(crowd)) for _ in range(crowd // 4)]
    began = time.monotonic()

    def submit(part):
        for job in part:
            runs.append(detached(scenario, job))

    threads = [threading.Thread(target=submit, args=(jobs[k::8],)) for k in range(8)]
    for thread in threads:
        thread.start()
    for moment, run in sorted(kills):
        time.sleep(max(0, began + moment - time.monotonic()))
        if kill_somebody(scenario, run + 1, chance):
            killed.add(run + 1)
    for thread in threads:
        thread.join()
    assert sorted(runs) == list(range(1, crowd + 1)), "every submission became a run"
    # A keeper that is killed before its supervisor knows it leaves nobody to write the end either: who looks does.
    deadline = time.monotonic() + 60 + crowd
    while [run for run in runs if not FINAL & set(statuses(scenario, run)[-1:])] and time.monotonic() < deadline:
        assert say(scenario, "ps", "-a", "-n", "0")[0] == 0
        time.sleep(0.5)
    ends = {run: wait_for_end(scenario, run, 10) for run in runs}
    killed |= {run for run in runs if events(scenario, run)[-1].get("reason") == "the supervisor and its keeper were killed"}
    met = {run: whom_it_met(scenario, run) for run in runs
           if any(event.get("exit_code") == 7 for event in events(scenario, run))}
    # Where both were killed, the kernel ends the task a moment after them, and nobody waits for that.
    clashes = {run: others for run, others in met.items() if not others & killed}
    assert not clashes, f"seed {seed}: runs met somebody where they should have been alone: {clashes}"
    assert len(met) <= len(killed) and sum(end == "succeeded" for end in ends.values()) >= crowd - len(kills) - len(met), ends
    deadline = time.monotonic() + 10
    while scenario.left() and time.monotonic() < deadline:
        time.sleep(0.02)
    facts = node(scenario)
    assert facts["queue"] == [] and facts["reservations"] == [], "nothing is held when all is over"
