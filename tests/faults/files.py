# SPDX-License-Identifier: Apache-2.0
"""Files of a home that were replaced, damaged or cut off after a run that was good. Commands may refuse with a sentence: they
neither hang nor crash, and another run of the same home stays as it was."""
import os
import pathlib
import shutil
import time

from stage import FINAL, POINTS, TASKS, law

KINDS = ("nothing", "empty", "garbage", "FIFO", "directory", "dangling link", "link to another file")
# What commands read of a home; a run has most of it.
FILES = ("last-run", "config.yml", "myelin.db", "index.db", "runs/1/events.jsonl", "runs/1/lock", "runs/1/logs/master.0.log",
         "runs/1/request.json", "runs/1/series", "runs/1/polyaxonfile.yml", "runs/1/outputs")
LOOKING = (("ps", "-a"), ("status", "1"), ("logs", "1"), ("metrics", "1"), ("outputs", "1"), ("runs",))
# What is cut off: the files that hold something.
CUT = ("runs/1/events.jsonl", "runs/1/series/*", "runs/1/spool/*/*", "*.db", "runs/1/request.json", "runs/1/logs/*")

# What may come into the place of a file while the run lives, and of which.
LIVING_KINDS = ("FIFO", "directory", "dangling link", "link to another file")
LIVING = ("lock", "events.jsonl", "logs/master.0.log", "logs/master.0.idx")


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replace(path, kind, chance):
    remove(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "empty":
        path.touch()
    elif kind == "garbage":
        path.write_bytes(chance.randbytes(chance.randrange(1, 20000)))
    elif kind == "directory":
        path.mkdir()
    elif kind == "dangling link":
        path.symlink_to("nowhere/at/all")
    elif kind == "link to another file":
        path.symlink_to("/etc/hostname")
    elif kind == "FIFO":
        os.mkfifo(path)


def two_runs(stage):
    """Of which the index knows."""
    stage.finished_run()
    stage.finished_run()
    for command in LOOKING:
        stage.say(*command, status=0)


def other_run(stage):
    """All of the other run that is there to read."""
    status = stage.status(2)
    law(status["status"] == "succeeded", f"run 2 is {status['status']} now")
    return (stage.home / "runs/2/events.jsonl").read_bytes(), stage.points(2)


def look_at(stage, before):
    refused = 0
    for command in LOOKING:
        code, _, err = stage.say(*command)
        refused += code != 0
        law(code == 0 or err.strip(), f"myelin {' '.join(command)} fails without a word")
    law(other_run(stage) == before, "the other run has changed")
    stage.hold_nothing_left()
    stage.say("rm", "1")
    return "each command works" if not refused else "a command refuses with a sentence, the others work"


def replaced(stage, chance):
    two_runs(stage)
    before = other_run(stage)
    replace(stage.home / chance.choice(FILES[4:]), chance.choice(KINDS), chance)
    seen = look_at(stage, before)
    stage.hold_next()
    return seen


def replaced_home(stage, chance):
    two_runs(stage)
    name, kind = chance.choice(FILES[:4]), chance.choice(KINDS)
    replace(stage.home / name, kind, chance)
    for command in LOOKING[:4]:
        stage.say(*command)
    reserving = "environment: {resources: {cpu: {requests: 0.01}}}" if name == "myelin.db" else ""
    code, _, err = stage.say("run", stage.job("echo next", name="next.yml", head=reserving))
    law(code == 0 or name.rpartition("/")[2] in err, f"{name} is {kind}, and `run` fails without naming it: {err}")
    stage.hold_nothing_left()
    remove(stage.home / name)  # as the sentence says
    stage.hold_next()
    return "each command works" if code == 0 else "`run` refuses and names the file; without the file it works"


def truncated(stage, chance):
    two_runs(stage)
    before = other_run(stage)
    found = [path for pattern in CUT for path in pathlib.Path(stage.home).glob(pattern) if path.is_file() and path.stat().st_size]
    path = chance.choice(found)
    os.truncate(path, chance.randrange(path.stat().st_size))
    seen = look_at(stage, before)
    if path.suffix == ".db":
        path.unlink()
    stage.hold_next()
    return seen


def living(stage, chance):
    """A task or its user does this to the run. The supervisor puts back what it needs; output may be lost if it is the log."""
    process = stage.started_gang(chance)
    stage.keeper_and_supervisor()
    time.sleep(chance.random() * 0.3)
    name, kind = chance.choice(LIVING), chance.choice(LIVING_KINDS)
    replace(stage.home / "runs/1" / name, kind, chance)
    code, _, err = stage.ended(process, ("run",))
    law(code == 0 or err.strip(), "`run` fails without a word")
    law("symbolic links" not in err, f"the sentence does not say what is wrong: {err}")
    stage.hold_nothing_left()
    status = stage.status()
    law(status["status"] in FINAL, f"{name} became a {kind}, and the run is {status['status']}")
    stage.measure()
    if name in ("lock", "events.jsonl"):
        counted = stage.points()
        law(status["status"] != "succeeded" or all(counted.get(task) == POINTS for task in TASKS), f"points are lost: {counted}")
    stage.hold_next()
    if code:
        return "`run` fails with a sentence"
    return "the run succeeds, and says that output is lost" if "output is being lost" in err else "the run succeeds"


def removed(stage, chance):
    process = stage.started_gang(chance)
    stage.keeper_and_supervisor()
    time.sleep(chance.random() * 0.3)
    shutil.rmtree(stage.home / "runs/1", ignore_errors=True)
    code, _, err = stage.ended(process, ("run",))
    law(code == 0 or err.strip(), "`run` fails without a word")
    stage.hold_nothing_left()
    stage.hold_next()
    return "`run` ends with a sentence that names the directory" if "directory" in err else "the run had ended before"
