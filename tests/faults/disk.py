# SPDX-License-Identifier: Apache-2.0
"""A home without room, without descriptors, without memory."""
import os
import re
import shutil
import signal
import subprocess
import time

from stage import SECONDS, law

# How a process ends that finds no memory: by design, and with a sentence.
ABORTED = (-signal.SIGABRT,)


def own_mounts():
    own = ["unshare", "--mount", "--propagation", "unchanged"]
    return own if os.geteuid() == 0 else [*own, "--map-root-user"]


def can_mount():
    return subprocess.run([*own_mounts(), "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False).returncode == 0


def full_disk(stage, chance):
    """The run plays on a disk of a few pages up to 2 MiB; what is on it afterwards is looked at elsewhere."""
    size = 4096 * chance.choice([1, 2, 4, 8, 12, *range(16, 64, 4), 96, 128, 256, 512])
    stage.home.mkdir()
    kept = stage.directory / "kept"
    script = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && "$@"; status=$?; cp -r "$MYELIN_HOME" "$KEPT"; exit $status'
    stage.environment["KEPT"] = str(kept)
    job = stage.job(f"{stage.training} 40; head -c {chance.choice([0, 100000, 3000000])} /dev/zero; exit 3")
    code, _, err = stage.say("run", job, under=[*own_mounts(), "sh", "-c", script, "sh", str(size), str(stage.home)])
    law(code in (3, 125), f"the run ended with {code} on {size} bytes: {err}")
    stage.hold_nothing_left()
    stage.home.rmdir()
    shutil.move(kept, stage.home)
    if code == 125:
        law("space" in err or "full" in err, f"it does not say that the disk is full: {err}")
        stage.hold_next()
        return "`run` refuses with exit status 125: no space left on the device"
    status = stage.status()
    law(status["status"] == "failed" and status.get("exit_status") == 3, f"the record says {status['status']}")
    stage.hold_next()
    return "the run ends as its task does, and its record says so"


def hold_told(stage, code, err):
    """The state is final, points are whole, and if a log could not be opened, the user is told of the loss."""
    state = stage.final_status()["status"]
    law(state in ("succeeded", "failed"), f"the run is {state}")
    stage.measure()
    law(not stage.measured["lost points"], "points are lost")
    law(code or not stage.measured["lost lines"] or "output is being lost" in err, f"lines are lost without a word: {err}")


def hold_refusal_or_success(stage, code, err, words):
    law(code not in ABORTED or "myelin: out of memory" in err, f"the run aborted without a word: {err}")
    law(code == 0 or re.search(words, err, re.I), f"the run ended with {code}, and the reason is not named: {err}")
    deadline = time.monotonic() + SECONDS
    while stage.left() and time.monotonic() < deadline:  # the run may outlive a command that found no memory
        time.sleep(0.02)
    if (stage.home / "runs/1").exists():
        hold_told(stage, code, err)
    stage.hold_nothing_left()
    stage.hold_next()
    if code in ABORTED:
        return "`run` says that it is out of memory and aborts, and the next command shows how the run ended"
    return "the run succeeds" if code == 0 else "`run` fails, and the reason is named"


def descriptors(stage, chance):
    under = ["prlimit", f"--nofile={chance.randrange(6, 48)}"]
    code, _, err = stage.say("run", stage.gang(20), under=under)
    return hold_refusal_or_success(stage, code, err, r"open files|descriptor|shared librar|could not be started")


def memory(stage, chance):
    """What was written is whole at any moment, so that a process may end at any allocation."""
    under = ["prlimit", f"--as={chance.randrange(1600, 2600) << 12}"]
    code, _, err = stage.say("run", stage.gang(20), under=under, may_end_by=ABORTED)
    return hold_refusal_or_success(stage, code, err, r"memory|cannot allocate|shared librar|could not be started")
