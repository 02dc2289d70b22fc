# SPDX-License-Identifier: Apache-2.0
"""Runs go out as archives and come in again, in another home too; nothing harmful comes in with them."""
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import tarfile
import time

import pytest
from conftest import compile_logger
from shapes import assert_shape
from test_models import PROGRAM as LOGGER
from test_models import Stage, model


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, LOGGER)


class House(Stage):
    """A stage with a second home."""

    def __init__(self, scenario, logger):
        super().__init__(scenario, logger)
        self.here, self.there = scenario.directory / "home", scenario.directory / "there"

    def at(self, home):
        self.home = self.scenario.home = home
        self.scenario.environment["MYELIN_HOME"] = str(home)
        return self

    def runs(self, query=""):
        return self.json("runs", "-q", query, "-s", "id", "-c", "id,name,status,metrics.loss")["runs"]

    def left(self):
        """What lies in the home besides what belongs there."""
        usual = {"runs", "myelin.db", "myelin.db-wal", "myelin.db-shm", "models.json", "last-run", "index.db",
                 "index.db-wal", "index.db-shm"}  # fmt: skip
        return sorted(path.name for path in self.home.iterdir() if path.name not in usual) if self.home.exists() else []


@pytest.fixture
def stage(scenario, logger):
    return House(scenario, logger)


def tree(path):
    """All below a directory: name -> kind and content."""
    found = {}
    for entry in sorted(path.rglob("*")):
        name = str(entry.relative_to(path))
        if entry.is_symlink():
            found[name] = ("link", os.readlink(entry))
        elif entry.is_dir():
            found[name] = ("folder", entry.stat().st_mode & 0o777)
        else:
            found[name] = ("file", entry.stat().st_mode & 0o777, int(entry.stat().st_mtime), entry.read_bytes())
    return found


def unpack_zst(path):
    data = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
    return tarfile.open(fileobj=io.BytesIO(data))


# -- there and back


def test_a_run_goes_to_another_home_with_all_that_is_known_of_it(stage):
    stage.train("mkdir d; printf abc >d/f; chmod 751 d/f; ln -s d/f l; echo said", model(path="d/f"))
    ended = stage.myelin("export", "@")
    assert "wrote run 1 to run-1.tar.zst" in ended.out
    before, was, status = tree(stage.home / "runs/1/outputs"), stage.runs(), stage.json("status", 1)
    logs = stage.myelin("logs", 1).out

    stage.at(stage.there)
    assert "imported run 1 as run 1" in stage.myelin("import", "run-1.tar.zst").out
    assert tree(stage.home / "runs/1/outputs") == before
    assert stage.runs() == was and was[0]["metrics.loss"] == 0.1
    assert stage.myelin("logs", 1).out == logs and "said" in logs
    now = stage.json("status", 1)
    differs = {key for key in now if now[key] != status[key]}
    assert differs <= {"paths", "artifacts"}, differs
    assert stage.models() == [("net", 1, 1, [])]
    stage.myelin("model", "get", "net", "out")
    assert (stage.directory / "out" / "f").read_text() == "abc"
    assert "loss" in stage.myelin("metrics", 1).out and stage.left() == []
    stage.myelin("compare", 1, 1)
    stage.myelin("rm", 1)


def test_the_same_runs_give_the_same_bytes_which_other_tools_read(stage):
    stage.train("printf abc >f", model(path="f"))
    for name in ("a", "b"):
        stage.myelin("export", 1, "-o", name)
    assert (stage.directory / "a").read_bytes() == (stage.directory / "b").read_bytes()
    names = unpack_zst(stage.directory / "a").getnames()
    uuid = stage.json("status", 1)["uuid"]
    assert names[0] == "myelin.json" and names[-1] == ".sha256" and f"runs/{uuid}/outputs/f" in names
    assert names[1:-1] == sorted(names[1:-1], key=lambda name: name.split("/"))
    assert f"runs/{uuid}/lock" not in names


def test_what_was_imported_is_not_imported_again(stage):
    stage.train("printf abc >f", model(path="f"))
    stage.myelin("export", 1, "-o", "a")
    assert "is run 1 here: nothing to do" in stage.myelin("import", "a").out
    stage.at(stage.there)
    first, second = stage.json("import", "a", "a")
    for entry in (first, second):
        assert_shape(entry, "An imported run")
    assert (first["outcome"], first["id"], second["outcome"], second["id"]) == ("imported", 1, "was here", 1)
    assert first["models"] == [{"name": "net", "version": 1, "version_there": 1, "aliases": [], "aliases_kept_back": []}]
    assert len(stage.runs()) == 1 and stage.left() == []


def test_several_runs_go_in_one_archive_through_a_pipe(stage):
    for text in ("one", "two"):
        stage.train(f"printf {text} >f", model(path="f"))
    out = stage.scenario.start("export", 1, 2, "-o", "-")
    stage.at(stage.there)
    into = stage.scenario.start("import", "-", stdin=out.stdout)
    out.stdout.close()
    text, err = into.communicate(timeout=60)
    assert into.returncode == 0 and out.wait(60) == 0, err
    assert text.decode().count("imported run") == 2
    assert stage.models() == [("net", 2, 2, []), ("net", 1, 1, [])]
    assert stage.myelin("outputs", 2).out.count(" f\n") == 1


def test_an_imported_run_gets_the_next_id_and_runs_go_on_after_it(stage):
    stage.train("true")
    stage.myelin("export", 1, "-o", "a")
    stage.at(stage.there)
    stage.train("true")
    stage.myelin("import", "a")
    assert [run["id"] for run in stage.runs()] == [1, 2]
    assert stage.train("true")[0] == 3


def test_a_resumed_run_takes_its_outputs_along(stage):
    stage.train("printf one >f")
    stage.train("printf two >>f", run=("resume", "1"))
    report = stage.json("export", 2, "-o", "a")
    assert_shape(report, "An archive")
    stage.at(stage.there).myelin("import", "a")
    assert (stage.home / "runs/1/outputs/f").read_text() == "onetwo"
    assert not (stage.home / "runs/1/outputs").is_symlink()
    assert "resumed from run 1 of another home" in stage.myelin("status", 1).out
    stage.myelin("rm", 1)


def test_links_that_lead_out_and_pipes_are_left_out_and_told(stage):
    stage.train("ln -s /etc/passwd out; ln -s ../../.. up; mkfifo pipe; printf x >f; ln -s f in")
    ended = stage.myelin("export", 1, "-o", "a")
    assert "3 links that lead out" in ended.err
    stage.at(stage.there).myelin("import", "a")
    assert sorted(path.name for path in (stage.home / "runs/1/outputs").iterdir()) == ["f", "in"]


# -- models


def test_models_get_versions_of_this_home_and_aliases_that_are_free(stage):
    for text in ("one", "two", "three"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("model", "alias", "net:3", "best")
    stage.myelin("model", "alias", "net:3", "fast")
    stage.myelin("export", 3, "-o", "a")
    stage.at(stage.there)
    for text in ("a", "b", "c"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("model", "alias", "net:1", "best")
    stage.myelin("rm", 3)
    out = stage.myelin("import", "a").out
    assert "model net:4, which was net:3 there; it is fast" in out and "it is not best: another version is, here" in out
    assert stage.models() == [("net", 4, 4, ["fast"]), ("net", 2, 2, []), ("net", 1, 1, ["best"])], "3 is not given twice"
    for path in stage.home.glob("myelin.db*"):
        path.unlink()
    stage.myelin("reindex")
    assert stage.models() == [("net", 4, 4, ["fast"]), ("net", 2, 2, []), ("net", 1, 1, ["best"])]
    assert "which is 'fast'" in stage.myelin("rm", 4, status=1).err


def test_a_home_that_is_moved_whole_keeps_the_numbers_of_its_models(stage):
    for text in ("one", "two", "three"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("model", "alias", "net:3", "best")
    stage.myelin("rm", 2)
    stage.myelin("export", 1, 3, "-o", "a")
    stage.at(stage.there).myelin("import", "a")
    assert stage.models() == [("net", 3, 2, ["best"]), ("net", 1, 1, [])]


# -- what is refused


def test_a_run_that_goes_on_is_not_exported(stage):
    stage.scenario.job(stage.scenario.script("touch started; exec sleep 60"))
    stage.myelin("run", "-d", "job.yml")
    stage.scenario.wait_for("started")
    assert "run 1 is not over" in stage.myelin("export", 1, status=1).err
    stage.myelin("stop", 1)
    stage.myelin("resume", 1, "-d")
    assert "run 2 goes on with the outputs of run 1" in stage.myelin("export", 1, status=1).err
    stage.myelin("stop", 2)
    stage.myelin("export", 1, 2)
    assert (stage.directory / "runs.tar.zst").exists()


def test_a_file_that_exists_is_kept_and_nothing_is_left_beside_it(stage):
    stage.train("true")
    (stage.directory / "a").write_text("mine")
    assert "'a' exists: name another file" in stage.myelin("export", 1, "-o", "a", status=1).err
    assert (stage.directory / "a").read_text() == "mine" and not list(stage.directory.glob("a.part*"))
    stage.myelin("export", 1, "-o", "a", "--force")
    stage.at(stage.there).myelin("import", "a")
    for words in ([], ["1", "-o", "-", "--json"], ["1", "2", "--tensorboard", "d"], ["1", "-o", "x", "--tensorboard", "d"]):
        stage.myelin("export", *words, status=2)
    assert "cannot write 'no/where'" in stage.myelin("export", 1, "-o", "no/where", status=1).err
    assert "there is no run '9'" in stage.myelin("export", 9, status=1).err
    assert "named twice" in stage.myelin("export", 1, 1, "-o", "b", status=1).err


def test_a_cut_or_changed_archive_leaves_nothing(stage):
    stage.train("head -c 100000 /dev/urandom >f")
    stage.myelin("export", 1, "-o", "a")
    whole = (stage.directory / "a").read_bytes()
    stage.at(stage.there)
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for name, data in (("cut", whole[: len(whole) // 2]), ("changed", bytes(changed)), ("empty", b""), ("text", b"hello\n" * 200)):
        (stage.directory / name).write_bytes(data)
        err = stage.myelin("import", name, status=1).err
        assert name in err and ("damaged" in err or "checksum" in err), err
        assert stage.left() == [] and stage.runs() == []
    assert "cannot read 'missing'" in stage.myelin("import", "missing", status=1).err
    stage.myelin("import", status=2)
    refused, imported = stage_json(stage, ["import", "cut", "a"], 1)
    assert_shape(refused, "An imported run")
    assert refused["outcome"] == "refused" and imported["outcome"] == "imported"


def stage_json(stage, words, status):
    return json.loads(stage.myelin(*words, "--json", status=status).out)


def seal(entries):
    """The checksum that ends an archive (src/archive/seal.h)."""
    total = hashlib.sha256()
    for info, data in entries:
        kind = {tarfile.REGTYPE: 0o100000, tarfile.DIRTYPE: 0o040000, tarfile.SYMTYPE: 0o120000}[info.type]
        mode = kind if info.issym() else kind | info.mode
        total.update(f"{mode:o} {int(info.mtime)} ".encode() + info.name.encode() + b"\0")
        total.update(info.linkname.encode() + b"\0" if info.issym() else b"")
        total.update(data)
    return total.hexdigest().encode()


def forge(stage, change, name="forged"):
    """The archive `a` with its entries changed, and a seal that fits."""
    with unpack_zst(stage.directory / "a") as archive:
        entries = [(info, archive.extractfile(info).read() if info.isfile() else b"") for info in archive]
    entries = change([entry for entry in entries if entry[0].name != ".sha256"])
    last = tarfile.TarInfo(".sha256")
    entries.append((last, seal(entries)))
    with tarfile.open(stage.directory / name, "w", format=tarfile.GNU_FORMAT) as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def adding(name, kind=tarfile.REGTYPE, link="", data=b""):
    def change(entries):
        info = tarfile.TarInfo(name.format(run=entries[1][0].name.split("/")[1]))
        info.type, info.linkname = kind, link
        return entries + [(info, data)]

    return change


def replacing(suffix, old, new):
    def change(entries):
        assert any(info.name.endswith(suffix) and old in data for info, data in entries)
        return [(info, data.replace(old, new) if info.name.endswith(suffix) else data) for info, data in entries]

    return change


def of_another_run(entries):
    other = b'"uuid": "' + b"f" * 32 + b'"'
    return [(info, re.sub(rb'"uuid": "[0-9a-f]{32}"', other, data) if info.name.endswith("events.jsonl") else data)
            for info, data in entries]  # fmt: skip


def without(suffix):
    return lambda entries: [entry for entry in entries if not entry[0].name.endswith(suffix)]


def same(entries):
    return entries


LINK = tarfile.SYMTYPE


@pytest.mark.parametrize(
    "change, sentence",
    [
        (adding("runs/{run}/outputs/l", LINK, "../../other"), "has a link that leads out of it"),
        (adding("runs/{run}/plan", LINK, "outputs/f"), "has a link that leads out of it"),
        (adding("runs/{run}/lock"), "has a lock"),
        (adding("../x"), "is no path that stays inside"),
        (adding("runs/{run}/outputs/l", LINK, "/etc/passwd"), "is a link that leads out"),
        (without("events.jsonl"), "has no journal that can be read"),
        (replacing("events.jsonl", b'"succeeded"', b'"running"'), "is not over"),
        (replacing("events.jsonl", b'"uuid": "', b'"uuid": "f00'), "has no journal that can be read"),
        (of_another_run, "has the journal of another run"),
        (replacing("myelin.json", b'"format": 1', b'"format": 99'), "newer myelin"),
        (replacing("myelin.json", b'"uuid"', b'"who"'), "is no run"),
        (without("myelin.json"), "not of runs"),
    ],
)
def test_an_archive_that_was_tampered_with_is_refused_and_leaves_nothing(stage, change, sentence):
    stage.train("printf x >f")
    stage.myelin("export", 1, "-o", "a")
    stage.at(stage.there)
    forge(stage, change)
    assert sentence in stage.myelin("import", "forged", status=1).err
    assert stage.left() == [] and stage.runs() == []
    forge(stage, same)
    stage.myelin("import", "forged")


def test_a_home_without_room_or_rights_says_so(stage):
    stage.train("printf x >f")
    stage.myelin("export", 1, "-o", "a")
    if os.getuid() != 0:
        stage.there.mkdir(mode=0o555)
        assert "cannot make the directory" in stage.at(stage.there).myelin("import", "a", status=1).err
        stage.at(stage.here)
        for path in (stage.home, stage.home / "runs/1"):
            path.chmod(0o555)
        stage.myelin("export", 1, "-o", "b")
        for path in (stage.home, stage.home / "runs/1"):
            path.chmod(0o755)


def test_two_that_remove_the_same_runs_do_not_stumble_over_each_other(stage):
    for _ in range(12):
        stage.train("true")
    sweepers = [stage.scenario.start("gc", "--keep", 0, "--yes") for _ in range(3)]
    for sweeper in sweepers:
        _, err = sweeper.communicate(timeout=60)
        assert sweeper.returncode == 0 and b"going on" not in err, err
    assert stage.runs() == []


def test_an_interrupt_ends_an_export_and_leaves_nothing(stage):
    stage.train("head -c 80000000 /dev/urandom >f")
    process = stage.scenario.start("export", 1, "-o", "a")
    stage.scenario.wait_for("a.part.*")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"interrupted" in err
    assert not list(stage.directory.glob("a*"))


def test_killed_imports_leave_no_run_and_what_they_leave_is_found(stage):
    stage.train("head -c 50000000 /dev/zero >f")
    stage.myelin("export", 1, "-o", "a")
    stage.at(stage.there)
    process = stage.scenario.start("import", "a")
    stage.scenario.wait_for("there/import.*/content.part.*")
    process.kill()
    process.wait()
    assert stage.runs() == [] and len(stage.left()) == 1
    stage.myelin("import", "a")
    assert len(stage.runs()) == 1


# -- gc


def quick(stage, n, *tags, cmd="true"):
    """Runs that do next to nothing, with tags."""
    head = "name: quick\n" + (f"tags: [{', '.join(tags)}]\n" if tags else "")
    stage.scenario.job(cmd, head=head)
    for _ in range(n):
        stage.scenario.run("job.yml")
    return stage.json("status", "@")["id"]


def make_old(stage, *runs, days=100):
    """Sets the clock back of runs that are over."""
    then = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - days * 86400))
    for run in runs:
        path = stage.home / "runs" / str(run) / "events.jsonl"
        first, rest = path.read_text().split("\n", 1)
        line = json.loads(first)
        line["time"] = then
        path.write_text(json.dumps(line) + "\n" + rest)
    for path in stage.home.glob("index.db*"):
        path.unlink()


def ids(stage):
    return [run["id"] for run in stage.runs()]


def going(stage, *rules, status=0):
    report = stage_json(stage, ["gc", *rules], status)
    assert_shape(report, "A home that was swept")
    for run in report["runs"]:
        assert_shape(run, "runs that go")
    return [run["id"] for run in report["runs"]]


def test_gc_shows_what_would_go_and_removes_it_only_when_told(stage):
    quick(stage, 4)
    make_old(stage, 1, 2)
    out = stage.myelin("gc", "--older", "30d").out
    assert "2 runs would go, which frees" in out and "stay: 2 runs that ended within 30d" in out and "100d ago" in out
    assert ids(stage) == [1, 2, 3, 4]
    assert going(stage, "--older", "30d") == [1, 2]
    out = stage.myelin("gc", "--older", "30d", "--yes").out
    assert "removed 2 runs" in out and ids(stage) == [3, 4]
    assert "nothing to remove" in stage.myelin("gc", "--older", "30d", "--yes").out


def test_gc_holds_runs_to_all_rules(stage):
    quick(stage, 2, "a", "b")
    quick(stage, 2, "b", cmd="false")
    make_old(stage, 1, 2, 3)
    assert going(stage, "--tags", "a") == [1, 2]
    assert going(stage, "--tags", "b", "--tags", "a", "-q", "id:>1") == [2]
    assert going(stage, "--status", "failed") == [3, 4]
    assert going(stage, "--status", "failed", "--older", "1w") == [3]
    assert going(stage, "--keep", "3") == [1]
    assert going(stage, "--status", "failed|succeeded", "--keep", "1", "--older", "0s") == [1, 2, 3]
    assert going(stage, "--tags", "b", "--keep", "2") == [1, 2]
    assert going(stage, "-q", "~tags:a", "--older", "1d") == [3]
    assert "no rule says which runs may go" in stage.myelin("gc", "--yes").out and ids(stage) == [1, 2, 3, 4]


def test_gc_makes_room_with_the_oldest_runs_first(stage):
    stage.scenario.job("head -c 1000000 /dev/urandom >$MYELIN_OUTPUTS_PATH/f")
    for _ in range(4):
        stage.scenario.run("job.yml")
    assert going(stage, "--size", "10M") == []
    assert going(stage, "--size", "2500K") == [1, 2]
    report = stage.json("gc", "--size", "2500K", "--yes")
    assert [run["outcome"] for run in report["runs"]] == ["removed"] * 2 and report["bytes"] >= 2000000
    used = sum(path.lstat().st_blocks * 512 for path in (stage.home / "runs").rglob("*"))
    assert ids(stage) == [3, 4] and used <= 2500 * 1024
    assert going(stage, "--size", "0") == [3, 4]


def test_gc_never_removes_what_goes_on_or_is_aliased_or_shared(stage):
    for text in ("one", "two"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("model", "alias", "net:1", "best")
    stage.train("true")
    stage.train("true", run=("resume", "3"))
    stage.scenario.job(stage.scenario.script("touch started; exec sleep 60"))
    stage.myelin("run", "-d", "job.yml")
    stage.scenario.wait_for("started")
    make_old(stage, 1, 2, 3)
    report = stage.json("gc", "--older", "30d")
    assert [run["id"] for run in report["runs"]] == [2]
    assert report["needed"] == [
        {"id": 1, "reason": "its model net:1 is 'best'"},
        {"id": 3, "reason": "run 4, which stays, has its outputs"},
    ]
    report = stage.json("gc", "-q", "id:>0", "--yes")
    assert [run["id"] for run in report["runs"]] == [2, 3, 4] and report["needed"][-1] == {"id": 5, "reason": "it goes on"}
    assert ids(stage) == [1, 5] and stage.models() == [("net", 1, 1, ["best"])]
    stage.myelin("stop", 5)
    stage.myelin("restart", 5, "-d")
    assert "run 6, which goes on, was made from it" in stage.myelin("gc", "--keep", "0").out
    stage.myelin("stop", 6)
    assert going(stage, "--keep", "0") == [5, 6]


def make_leftovers(*paths):
    for path in paths:
        (path / "outputs").mkdir(parents=True)
        (path / "outputs" / "f").write_text("x" * 10000)
        os.utime(path, (0, 0))


def test_gc_removes_what_interrupted_work_has_left(stage):
    quick(stage, 1)
    left = [stage.home / "import.abcdef", stage.home / "runs" / "7"]
    make_leftovers(*left)
    for path in left:
        os.utime(path)
    assert going(stage) == [] and stage.json("gc")["leftovers"] == [], "who made them may be at work"
    for path in left:
        os.utime(path, (0, 0))
    found = stage.json("gc")["leftovers"]
    assert [(entry["path"], entry["outcome"]) for entry in found] == [(str(path), "would be removed") for path in left]
    assert all(path.exists() for path in left)
    out = stage.myelin("gc", "--yes").out
    assert "an import that was cut short" in out and "a run that never began" in out
    assert not any(path.exists() for path in left) and ids(stage) == [1]
    assert quick(stage, 1) == 8, "an id is not given again"


@pytest.mark.skipif(os.getuid() == 0, reason="root may remove all")
def test_gc_does_not_say_that_it_removed_what_stays(stage):
    quick(stage, 1)
    left = [stage.home / "import.abcdef", stage.home / "runs" / "7"]
    make_leftovers(*left)
    (stage.home / "runs").chmod(0o555)
    try:
        ended = stage.myelin("gc", "--yes", status=1)
        assert f"removed {left[0]}, " in ended.out and str(left[1]) not in ended.out and "run 7" in ended.err
        os.utime(left[1], (0, 0))
        ended = stage.myelin("gc", "--yes", "--json", status=1)
    finally:
        (stage.home / "runs").chmod(0o755)
    (entry,) = json.loads(ended.out)["leftovers"]
    assert entry["path"] == str(left[1]) and entry["outcome"] == "refused" and entry["error"] and ended.err == ""


def test_an_interrupt_keeps_gc_from_removing_what_is_left(stage):
    quick(stage, 1)
    left = [stage.home / "import.abcdef", stage.home / "runs" / "7"]
    make_leftovers(*left)

    def interrupted():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)

    process = stage.scenario.start("gc", "--yes", preexec_fn=interrupted)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and all(path.exists() for path in left)
    for path in left:
        assert f"'{path}' is not removed: interrupted before" in err.decode() and str(path) not in out.decode()


def test_gc_that_is_killed_leaves_whole_runs(stage):
    stage.scenario.job("for i in $(seq 300); do echo $i >$MYELIN_OUTPUTS_PATH/$i; done")
    for _ in range(6):
        stage.scenario.run("job.yml")
    process = stage.scenario.start("gc", "--keep", "0", "--yes")
    deadline = time.monotonic() + 20
    while (stage.home / "runs" / "6" / "events.jsonl").exists() and time.monotonic() < deadline:
        pass
    process.kill()
    process.wait()
    stage.myelin("ps", "-a")
    for run in ids(stage):
        stage.myelin("status", run)
    stage.myelin("gc", "--keep", "0", "--yes")
    assert ids(stage) == [] and not list((stage.home / "runs").iterdir())


def test_gc_checks_its_command_line(stage):
    for words, sentence in [
        (["--older", "x"], "--older takes an age"),
        (["--older", "30"], "'30' has none"),
        (["--older", "99999999999w"], "--older takes an age"),
        (["--keep", "-1"], "--keep takes a number"),
        (["--size", "20"], "'20' has none"),
        (["--size", "big"], "--size takes a size"),
        (["--status", "asleep"], "there is no such status"),
        (["--query", "loss<3"], "--query:1:"),
        (["12"], "takes only options"),
    ]:
        assert sentence in stage.myelin("gc", *words, status=2).err
    assert "nothing to remove" in stage.myelin("gc", "--keep", "1").out
    assert not stage.home.exists(), "looking makes no home"
