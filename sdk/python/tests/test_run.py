# SPDX-License-Identifier: Apache-2.0
"""A run: what it knows of itself, what it keeps beside metrics, and how it ends."""
import datetime
import json
import os
import signal
import time

import pytest
import spools

MASTER = "master.0"


def events(stage, run=1):
    lines = (stage.home / "runs" / str(run) / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


# ---- inside a run

def test_a_task_knows_its_run(stage):
    stage.good("""
        run = myelin.init(name="ignored")
        assert (run.id, run.rank, run.world_size, run.attempt, run.task) == ("7", 2, 4, 3, "worker.1")
        assert run.outputs_path == os.environ["MYELIN_OUTPUTS_PATH"]
        assert myelin.init() is run
    """)
    assert not stage.home.exists()


def test_params_tags_and_summaries_are_laid_over_each_other(stage):
    stage.good("""
        import argparse
        run = myelin.init()
        run.params(lr=0.1, epochs=3); run.params({"lr": 0.2, "net": {"layers": [1, 2]}})
        run.params(argparse.Namespace(seed=5)); run.params(self=1)
        run.tags("baseline", ["x", "y"], {"k": 1}, team="vision")
        run.summary(best=float("inf"), acc=0.5); run.summary()
    """)
    spool = stage.spool()
    assert spool.members("params") == {"lr": 0.2, "epochs": 3, "net": {"layers": [1, 2]}, "seed": 5, "self": 1}
    assert spool.members("tags") == {"baseline": True, "x": True, "y": True, "k": 1, "team": "vision"}
    assert spool.members("summary") == {"best": "Infinity", "acc": 0.5}


def test_any_object_becomes_json(stage):
    stage.good("""
        run = myelin.init()
        loop = []; loop.append(loop)
        run.params(path=__import__("pathlib").Path("/x"), loop=loop, kind=float, key={1: {2}})
    """)
    members = stage.spool().members("params")
    assert members["path"] == "/x" and members["kind"] == "<class 'float'>" and members["key"] == {"1": [2]}


def test_what_is_too_large_to_keep_is_told(stage):
    ended = stage.good("""
        run = myelin.init()
        run.params(text="x" * (2 << 20))
        run.params(text="x" * ((1 << 20) - 20))
        assert run.dropped == 1
    """)
    assert "the params are too large to be kept" in ended.err
    assert len(stage.spool().members("params")["text"]) == (1 << 20) - 20


def test_an_artifact_is_copied_into_the_outputs_and_recorded(stage):
    stage.good("""
        run = myelin.init()
        open("model.bin", "wb").write(b"first")
        kept = run.log_artifact("model.bin", type="model", metadata={"epoch": 3})
        open("model.bin", "r+b").write(b"later")
        assert kept == os.path.join(run.outputs_path, "artifacts", "model.bin") and open(kept, "rb").read() == b"first"
        run.log_artifact("model.bin", name="best/model")
        os.makedirs("folder/sub"); open("folder/sub/file", "w").write("four")
        run.log_artifact("folder"); kept = run.log_artifact("folder")
        assert open(kept + "/sub/file").read() == "four"
        os.makedirs(run.outputs_path + "/checkpoints", exist_ok=True); open(run.outputs_path + "/checkpoints/1", "w").write("x")
        assert run.log_artifact(run.outputs_path + "/checkpoints/1") == run.outputs_path + "/checkpoints/1"
        print(sorted(os.listdir(run.outputs_path + "/artifacts")))
    """)
    artifacts = [r.members for r in stage.spool().records]
    assert artifacts[0] == {"name": "model.bin", "type": "model", "path": "artifacts/model.bin", "size": 5, "files": 1,
                            "metadata": {"epoch": 3}}
    assert [a["path"] for a in artifacts[1:]] == ["artifacts/best/model", "artifacts/folder", "artifacts/folder", "checkpoints/1"]
    assert artifacts[2]["size"] == 4


def test_an_artifact_that_cannot_be_kept_ends_nothing(stage):
    ended = stage.good("""
        run = myelin.init()
        assert run.log_artifact("missing") is None
        for name in ("../up", "/etc/x"):
            try: run.log_artifact(__file__, name=name)
            except ValueError: pass
            else: raise AssertionError(name)
    """)
    assert "the artifact 'missing' is not kept" in ended.err and stage.spool().records == []


# ---- outside of one

def test_outside_a_run_one_is_made(stage):
    stage.good("""
        run = myelin.init(name="mine")
        assert (run.id, run.rank, run.world_size, run.attempt) == ("1", 0, 1, 0)
        assert myelin.init() is run and os.path.isdir(run.outputs_path)
        run.log(loss=1.0)
    """, inside=False)
    directory = stage.home / "runs" / "1"
    created, *_, ended, last = lines = events(stage)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert created["event"] == "created" and created["name"] == "mine" and created["directory"] == str(stage.directory)
    assert created["counts"] == {"master": 1, "worker": 0, "ps": 0} and len(created["uuid"]) == 32
    assert (ended["status"], ended["exit_code"]) == ("succeeded", 0)
    assert (last["status"], last["exit_status"]) == ("succeeded", 0)
    assert spools.Spool(directory / "spool" / MASTER).series("loss") == [(0, 1.0)]
    assert stage.home.stat().st_mode & 0o777 == 0o700


def test_the_run_that_is_made_is_named_once_unless_that_is_not_wanted(stage):
    code = """
        myelin.init()
        myelin.init()
    """
    ended = stage.run(code, inside=False)
    assert ended.status == 0 and ended.err == "myelin: logging to run 1 (%s)\n" % (stage.home / "runs" / "1"), ended
    ended = stage.run("import os\nos.environ['MYELIN_QUIET'] = '1'\nmyelin.init()", inside=False)
    assert ended.status == 0 and ended.err == "", ended
    ended = stage.run(code, inside=True)
    assert ended.status == 0 and ended.err == "", ended


def test_each_process_gets_the_next_number(stage):
    (stage.home / "runs" / "41").mkdir(parents=True)
    for number in ("42", "43"):
        stage.good("assert myelin.init().id == %r" % number, inside=False)


def test_two_runs_of_one_process_follow_each_other(stage):
    stage.good("""
        for number in ("1", "2"):
            with myelin.init() as run:
                assert run.id == number
                run.log(a=1)
        assert "MYELIN_SPOOL" not in os.environ
    """, inside=False)
    assert [e["status"] for e in events(stage, 2) if e["event"] == "status"] == ["starting", "running", "succeeded"]


@pytest.mark.parametrize("code, status, reason, place", [
    ("def f():\n    raise ValueError('bad batch')\nmyelin.init()\nf()", "failed",
     "master.0 raised ValueError: bad batch (script.py, line 5, in f)", 5),
    ("with myelin.init():\n    1 / 0", "failed", "master.0 raised ZeroDivisionError: division by zero (script.py, line 5)", 5),
    ("myelin.init()\njson.loads('{')", "failed", None, 5),
    ("myelin.init()\nsys.exit(3)", "failed", "master.0 exited with code 3", None),
    ("myelin.init()\nsys.exit('no data')", "failed", "master.0 exited with code 1: no data", None),
    ("with myelin.init():\n    raise SystemExit(4)", "failed", "master.0 exited with code 4", None),
    ("myelin.init()\nsys.exit()", "succeeded", None, None),
    ("myelin.init()\nraise KeyboardInterrupt", "stopped", "it was interrupted", None),
])
def test_how_python_ends_is_how_the_run_ends(stage, code, status, reason, place):
    ended = stage.run(code, inside=False)
    last = events(stage)[-1]
    assert last["status"] == status and (reason is None or last["reason"] == reason)
    assert last.get("place") == ("%s:%d" % (stage.directory / "script.py", place) if place else None)
    if status != "stopped":
        assert ended.status == last["exit_status"], ended
    assert ("Traceback" in ended.err) == (last.get("kind") == "python_exception" or status == "stopped")


def test_the_program_shows_such_a_run_like_any_other(stage):
    stage.good("run = myelin.init(name='mine'); run.log(loss=1.0)", inside=False)
    shown = json.loads(stage.myelin("status", "1", "--json").out)
    assert (shown["status"], shown["name"], shown["exit_status"]) == ("succeeded", "mine", 0)
    assert stage.myelin("ps", "-a").out.count("mine") == 1


def test_the_program_folds_what_such_a_run_has_logged(stage):
    stage.good("""
        run = myelin.init()
        run.params(lr=0.5); run.tags("baseline"); run.summary(best=2)
        for i in range(9000): run.log(loss=i / 2, step=i)
        for i in range(500): run.log(a=i, b=-i)
        os.kill(os.getpid(), signal.SIGKILL) if os.fork() == 0 else os.wait()
    """, inside=False)
    shown = stage.myelin("metrics", "1", "--csv", "--points", "1")
    rows = [line.split(",") for line in shown.out.splitlines()[1:]]
    counted = {row[0]: (int(row[8]), float(row[10]), float(row[11])) for row in rows}
    assert counted == {"loss": (9000, 0, 4499.5), "a": (500, 0, 499), "b": (500, -499, 0)}, shown
    status = stage.myelin("status", "1").out
    assert "lr=0.5" in status and "baseline" in status and "best=2" in status


def test_a_living_run_is_shown_as_running_and_a_killed_one_as_failed(stage):
    process = stage.start("""
        run = myelin.init()
        run.log(loss=1.0)
        if os.fork() == 0:  # a loader's process that outlives it
            time.sleep(30); os._exit(0)
        print("ready", flush=True)
        time.sleep(30)
    """, inside=False)
    process.stdout.readline()
    assert json.loads(stage.myelin("status", "1", "--json").out)["status"] == "running"
    process.kill()
    process.wait()
    shown = json.loads(stage.myelin("status", "1", "--json").out)
    assert shown["status"] == "failed" and shown["reason"] == "the process that made the run was killed"
    process.stdout.close()
    process.stderr.close()


def test_a_killed_run_lasted_until_the_last_thing_that_it_logged(stage):
    stage.run("""
        run = myelin.init()
        time.sleep(1.5)
        run.log(loss=1.0)
        os.kill(os.getpid(), signal.SIGKILL)
    """, inside=False)
    time.sleep(1)  # after its end
    shown = json.loads(stage.myelin("status", "1", "--json").out)
    point = json.loads(stage.myelin("metrics", "1", "loss", "--json").out)[0]["points"][0]
    logged = datetime.datetime.strptime(point["time"][:23], "%Y-%m-%dT%H:%M:%S.%f")
    started = datetime.datetime.strptime(shown["started_at"][:23], "%Y-%m-%dT%H:%M:%S.%f")
    assert abs(shown["duration_s"] - (logged - started).total_seconds()) < 0.2, (shown, point)
    assert shown["tasks"][0]["status"] == "stopped"


def test_children_belong_to_the_run_and_do_not_end_it(stage):
    stage.good("""
        import subprocess
        run = myelin.init()
        if os.fork() == 0:
            run.log(a=1)
            sys.exit(5)
        os.wait()
        subprocess.run([sys.executable, "-c", "import myelin; r = myelin.init(); assert r.id == '1'; r.log(a=2)"], check=True)
        run.log(a=3)
    """, inside=False)
    assert events(stage)[-1]["status"] == "succeeded"
    assert sorted(p.value for p in spools.Spool(stage.home / "runs" / "1" / "spool" / MASTER).points) == [1, 2, 3]
    assert os.listdir(str(stage.home / "runs")) == ["1"]


def test_a_home_that_cannot_be_written_is_told_once_and_ends_nothing(stage):
    ended = stage.good("""
        run = myelin.init(home="/proc/nowhere")
        assert myelin.init() is run and run.id is None
        for i in range(10): run.log(loss=i)
        run.params(a=1); run.tags("x"); run.summary(b=2)
        open(os.path.join(run.outputs_path, "file"), "w").close()
        import shutil; shutil.rmtree(run.outputs_path)
    """, inside=False)
    assert ended.err.count("myelin: nothing of this run is kept") == 1 and len(ended.err.splitlines()) == 1


def test_a_task_without_a_spool_makes_no_run_of_its_own(stage):
    stage.good("run = myelin.init(); run.log(a=1); assert run.id == '7'", MYELIN_SPOOL="")
    assert not stage.home.exists()


@pytest.mark.parametrize("shared", [".", "runs"])
def test_no_run_is_made_where_a_member_could_replace_it(stage, shared):
    runs = stage.home / "runs"
    runs.mkdir(parents=True)
    script = "run = myelin.init(); run.log(loss=1)"
    (stage.home / shared).chmod(0o770)
    assert "every member could replace" in stage.good(script, inside=False).err
    assert list(runs.iterdir()) == []
    (stage.home / shared).chmod(0o1770)
    assert "could replace" not in stage.good(script, inside=False).err
    assert len(list(runs.iterdir())) == 1
