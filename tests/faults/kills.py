# SPDX-License-Identifier: Apache-2.0
"""SIGKILL at any moment of a run."""
import os
import signal
import time

from stage import POINTS, SECONDS, TASKS, law

# The whole life of the run, and a little more.
MOMENT_S = 0.5


def kill(*pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def settle(stage, process, arguments=("run",)):
    stage.ended(process, arguments)
    status = stage.hold_run()
    stage.hold_nothing_left()
    stage.hold_next()
    return status["status"]


def seen_of(state, reason):
    return f"`run` ends with the state: {state}, {reason}" if state == "failed" else f"the run had {state} before"


def named(stage, state, *words):
    reason = stage.status().get("reason") or ""
    law(state != "failed" or any(word in reason for word in words), f"the run failed, and the reason is '{reason}'")
    return seen_of(state, "and the reason names who was killed")


def supervisor(stage, chance):
    process = stage.started_gang(chance)
    pids = stage.keeper_and_supervisor()
    time.sleep(chance.random() * MOMENT_S)
    kill(pids[1])
    return named(stage, settle(stage, process), "supervisor")


def keeper(stage, chance):
    process = stage.started_gang(chance)
    pids = stage.keeper_and_supervisor()
    time.sleep(chance.random() * MOMENT_S)
    kill(pids[0])
    return named(stage, settle(stage, process), "keeper")


def both(stage, chance):
    process = stage.started_gang(chance)
    pids = stage.keeper_and_supervisor()
    time.sleep(chance.random() * MOMENT_S)
    try:
        os.kill(pids[0], signal.SIGSTOP)  # so that it does not answer the death of the other
    except ProcessLookupError:
        pass
    kill(*reversed(pids))
    return named(stage, settle(stage, process), "supervisor", "keeper")


def task(stage, chance):
    process = stage.started_gang(chance)
    stage.keeper_and_supervisor()
    time.sleep(chance.random() * MOMENT_S)
    tasks = [pid for pid, line in stage.left().items() if line.startswith(str(stage.training))]
    kill(*tasks[:1])
    state = settle(stage, process)
    law(state != "failed" or stage.status().get("exit_status") == 137, f"the exit status is {stage.status().get('exit_status')}")
    return seen_of(state, "exit status 137 and the task")


def command(stage, chance):
    """The run does not need the command that started it, once it has a keeper."""
    process = stage.start("run", stage.gang(memory=chance.choice([None, 64])), start_new_session=True)
    time.sleep(chance.random() * chance.choice([0.02, MOMENT_S]))
    kill(process.pid)
    process.communicate()
    deadline = time.monotonic() + 3 * SECONDS
    while stage.left():
        law(time.monotonic() < deadline, f"the run does not end: {stage.left()}")
        time.sleep(0.05)
    if not (stage.home / "runs/1").exists():
        stage.hold_nothing_left()
        stage.hold_next()
        return "there is no run yet"
    status = stage.hold_run()
    stage.hold_nothing_left()
    stage.hold_next()
    if status["status"] == "succeeded":
        return "the run succeeds without its command"
    law(any(words in status["reason"] for words in ("never began", "supervisor and its keeper")), f"the reason is {status['reason']}")
    law(not any(stage.progress(task) for task in TASKS), "tasks had begun, and the run failed")
    return "the run had no keeper yet, and is shown as failed"


def suspend(stage, chance):
    """A storm that ends; both are continued by it, or continue each other."""
    process = stage.started_gang(chance)
    pids = stage.keeper_and_supervisor()
    for _ in range(chance.randrange(1, 60)):
        try:
            os.kill(chance.choice(pids), chance.choice([signal.SIGSTOP, signal.SIGCONT]))
        except ProcessLookupError:
            break
        time.sleep(chance.random() * 0.02)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    state = settle(stage, process)
    law(state == "succeeded", f"the run {state}")
    return "the run succeeds"


def everything(stage, chance):
    """As a power cut does, but for the disk."""
    process = stage.started_gang(chance)
    time.sleep(chance.random() * MOMENT_S)
    for _ in range(3):  # what is born meanwhile
        kill(*stage.left())
    process.communicate()
    state = stage.hold_run(POINTS)["status"]
    stage.hold_nothing_left()
    stage.hold_next()
    return seen_of(state, "said by the next command")
