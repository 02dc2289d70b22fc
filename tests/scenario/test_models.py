# SPDX-License-Identifier: Apache-2.0
"""What tasks log as artifacts is hashed and found again; models have versions that stay, and aliases."""
import hashlib
import json
import os
import sqlite3

import pytest
from conftest import Ended, compile_logger, kill_both
from shapes import assert_shape

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* Logs each argument as an artifact, and "loss" at steps 0 to 9; "wait" as the last one waits. */
int main(int argc, char **argv) {
    struct myelin *m = myelin_open();
    const uint32_t name = myelin_name(m, "loss");

    for (int i = 0; i < 10; i++)
        myelin_log(m, &name, &(double){ 1.0 / (i + 1) }, 1, i, MYELIN_NOW);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "wait") == 0) {
            fclose(fopen("logged", "w"));
            pause();
        }
        myelin_record(m, MYELIN_ARTIFACT, argv[i], strlen(argv[i]));
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, PROGRAM)


class Stage:
    def __init__(self, scenario, logger):
        self.scenario, self.home, self.directory, self.logger = scenario, scenario.home, scenario.directory, logger

    def myelin(self, *arguments, status=0):
        process = self.scenario.start(*arguments)
        out, err = process.communicate(timeout=60)
        ended = Ended(process.returncode, out, err, 0)
        assert ended.status == status, ended
        return ended

    def json(self, *arguments):
        return json.loads(self.myelin(*arguments, "--json").out)

    def task(self, shell, *records, wait=False):
        """Writes the script of a task: shell commands in the outputs, then artifacts that are logged."""
        words = " ".join("'%s'" % json.dumps(record) for record in records) + (" wait" if wait else "")
        command = self.scenario.script(f"cd $MYELIN_OUTPUTS_PATH && {{ {shell} ; }} && cd - >/dev/null; exec {self.logger} {words}\n")
        self.scenario.job(command, head="name: mnist")

    def train(self, shell, *records, run=("run",)):
        self.task(shell, *records)
        ended = self.scenario.run("job.yml") if run == ("run",) else self.myelin(*run)
        assert ended.status == 0, ended
        return self.json("status", "@")["id"], ended

    def models(self, *arguments):
        listed = self.json("model", "ls", *arguments)
        for model in listed:
            assert_shape(model, "A model")
        return [(m["name"], m["version"], m["run"], m["aliases"]) for m in listed]


@pytest.fixture
def stage(scenario, logger):
    return Stage(scenario, logger)


def model(name="net", path="net.bin", **more):
    return {"name": name, "type": "model", "path": path, "metadata": {"layers": [1, 2]}, **more}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def journal(stage, run):
    return stage.home / "runs" / str(run) / "events.jsonl"


# -- artifacts


def test_an_artifact_has_the_hash_the_size_and_the_number_of_its_files(stage):
    run, _ = stage.train(
        "printf abc >one; mkdir -p dir/deep; printf x >dir/deep/f; printf yz >dir/a; ln -s a dir/l",
        {"name": "one", "path": "one", "type": "data", "metadata": {"a": 1}},
        {"name": "all", "path": "dir"},
    )
    one, folder = stage.json("outputs", run, "--artifacts")
    for artifact in (one, folder):
        assert_shape(artifact, "artifacts")
    assert (one["sha256"], one["size"], one["files"], one["type"]) == (sha256(b"abc"), 3, 1, "data")
    listing = "".join(f"{sha256(data)}  {path}\n" for path, data in [("a", b"yz"), ("deep/f", b"x"), ("l", b"a")])
    assert (folder["sha256"], folder["size"], folder["files"]) == (sha256(listing.encode()), 3, 3)
    assert stage.json("status", run)["artifacts"] == [one, folder]
    lines = [json.loads(line) for line in journal(stage, run).read_text().splitlines()]
    found = [line for line in lines if line["event"] == "artifact"]
    assert len(found) == 2
    for line in found:
        assert_shape(line, "artifact", "run-directory.md", besides=["seq", "time", "elapsed", "event", "attempt"])
    assert lines[-1]["event"] == "status", "artifacts are recorded before the end is told"
    assert "one" in stage.myelin("outputs", run, "--artifacts").out


@pytest.mark.parametrize("path", ["../events.jsonl", "/etc/passwd", "link/passwd", "missing", ""])
def test_a_path_that_leaves_the_outputs_is_refused_with_a_sentence(stage, path):
    run, ended = stage.train("ln -s /etc link", model(path=path))
    (artifact,) = stage.json("status", run)["artifacts"]
    assert artifact["problem"] and artifact["sha256"] is None and artifact["version"] is None
    assert "the artifact 'net' is not recorded: " in ended.err
    assert ("leaves the outputs" in artifact["problem"]) == (path.startswith(("..", "/")))
    assert stage.models() == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may read all")
def test_a_model_that_cannot_be_read_gets_its_version_when_it_can(stage):
    run, ended = stage.train("printf abc >net.bin; chmod 0 net.bin; printf x >one", model(), {"name": "one", "path": "one"})
    assert "artifacts are not recorded yet: outputs/net.bin of run 1: Permission denied" in ended.err
    for _ in range(2):
        assert stage.models() == []
        assert "Permission denied" in stage.myelin("model", "ls").err
        shown = stage.myelin("outputs", run, "--artifacts", "--json")
        net, one = json.loads(shown.out)
        assert net["problem"] is None and net["sha256"] is None and one["sha256"] == sha256(b"x")
        assert "not all recorded: outputs/net.bin of run 1: Permission denied" in shown.err
    (stage.home / "runs" / "1" / "outputs" / "net.bin").chmod(0o644)
    assert stage.models() == [("net", 1, 1, [])]


def test_a_model_whose_name_cannot_be_said_gets_no_version(stage):
    run, ended = stage.train("printf x >net.bin", model("a:b"))
    assert "cannot be the name of a model" in ended.err and stage.models() == []


# -- the files of two runs


def test_outputs_of_two_runs_are_compared_by_content(stage):
    first, _ = stage.train("mkdir d; printf same >d/s; printf aaa >x; printf 1 >here; printf 12 >size; ln -s a l")
    second, _ = stage.train("mkdir d; printf same >d/s; printf bbb >x; printf 1 >there; printf 123 >size; ln -s b l")
    rows = stage.json("outputs", first, "--diff", second)
    for row in rows:
        assert_shape(row, "The files of two runs")
    assert [(row["path"], row["change"]) for row in rows] == [
        ("d/s", "same"), ("here", "only_here"), ("l", "different"), ("size", "different"),
        ("there", "only_there"), ("x", "different"),
    ]  # fmt: skip
    assert (rows[5]["sha256"], rows[5]["other_sha256"]) == (sha256(b"aaa"), sha256(b"bbb"))
    assert rows[3]["sha256"] is None and (rows[3]["size"], rows[3]["other_size"]) == (2, 3)
    text = stage.myelin("outputs", first, "--diff", second).out
    assert "1 only in run 1, 1 only in run 2, 3 different, 1 the same" in text and "d/s" not in text
    assert "there is no run" in stage.myelin("outputs", first, "--diff", 99, status=1).err
    stage.myelin("outputs", first, "d", "--diff", second, status=2)
    stage.myelin("outputs", first, "--diff", second, "--artifacts", status=2)


# -- versions and aliases


def test_models_get_versions_that_count_up_by_name(stage):
    stage.train("printf one >net.bin", model(), model("other", "net.bin"))
    stage.train("printf two >net.bin", model(step=7))
    assert stage.models() == [("net", 2, 2, []), ("net", 1, 1, []), ("other", 1, 1, [])]
    assert stage.models("other") == [("other", 1, 1, [])]
    newest, first = stage.json("model", "ls", "net")
    assert newest["sha256"] == sha256(b"two") and newest["step"] == 7 and first["step"] == 9
    assert newest["metadata"] == {"layers": [1, 2]} and newest["run_name"] == "mnist"
    (loss,) = newest["metrics"]
    assert (loss["name"], loss["last"], loss["last_step"]) == ("loss", 0.1, 9)
    text = stage.myelin("model", "show", "net:1").out
    assert "net:1" in text and sha256(b"one") in text and "loss=0.1" in text
    assert "net:2" in stage.myelin("status", 2).out
    assert "there is no model 'nothing'" in stage.myelin("model", "show", "nothing", status=1).err
    assert "its newest version is 2" in stage.myelin("model", "show", "net:3", status=1).err


def test_an_alias_names_one_version_and_can_be_moved_and_removed(stage):
    for text in ("one", "two"):
        stage.train(f"printf {text} >net.bin", model())
    assert "net:1 is best" in stage.myelin("model", "alias", "net:1", "best").out
    assert "which was version 1" in stage.myelin("model", "alias", "net", "best").out
    assert_shape(stage.json("model", "alias", "net:1", "production"), "A model")
    assert stage.models() == [("net", 2, 2, ["best"]), ("net", 1, 1, ["production"])]
    assert stage.json("model", "show", "net:best")["version"] == 2
    assert stage.json("model", "show", "net:latest")["version"] == 2
    for bad in ("1", "a b", "latest", "x/y", ""):
        stage.myelin("model", "alias", "net:1", bad, status=1)
    assert "has no alias 'best'" in stage.myelin("model", "alias", "net:1", "best", "--remove", status=1).err
    stage.myelin("model", "alias", "net:best", "best", "--remove")
    assert stage.models()[0] == ("net", 2, 2, [])


def test_a_model_is_copied_out_as_it_was_or_not_at_all(stage):
    stage.train("mkdir -p m/deep; printf w >m/deep/w; ln -s deep/w m/in; ln -s ../../.. m/out", model(path="m"))
    stage.train("mkdir artifacts; printf two >artifacts/net.bin", model(path="artifacts/net.bin"))
    stage.myelin("model", "get", "net", "out")
    assert (stage.directory / "out" / "net.bin").read_text() == "two"
    stage.myelin("model", "get", "net:2", "out", status=1)
    stage.myelin("model", "get", "net:2", "out", "--force")
    assert "symbolic link" in stage.myelin("model", "get", "net:1", "folder").err
    assert (stage.directory / "folder" / "in").read_text() == "w" and not (stage.directory / "folder" / "out").is_symlink()
    (stage.home / "runs" / "2" / "outputs" / "artifacts" / "net.bin").write_text("TWO")
    assert "is not what it was" in stage.myelin("model", "get", "net:2", "again", status=1).err
    assert not (stage.directory / "again").exists()


def test_a_resumed_run_makes_its_own_version_of_the_same_file(stage):
    stage.train("printf one >net.bin", model())
    stage.train("printf two >net.bin", model(), run=("resume", "1"))
    assert stage.models() == [("net", 2, 2, []), ("net", 1, 1, [])]
    stage.myelin("model", "get", "net:2", "out")
    assert "a run that resumed it" in stage.myelin("model", "get", "net:1", "old", status=1).err


def test_a_run_with_an_aliased_model_is_not_removed(stage):
    for text in ("one", "two"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("model", "alias", "net:1", "best")
    for arguments in (("rm", 1), ("rm", 1, "--force")):
        err = stage.myelin(*arguments, status=1).err
        assert "which is 'best'" in err and "myelin model alias net:1 best --remove" in err
    stage.myelin("rm", 2)
    stage.train("printf three >net.bin", model())
    assert stage.models() == [("net", 3, 3, []), ("net", 1, 1, ["best"])], "a number is not given twice"
    stage.myelin("model", "alias", "net:1", "best", "--remove")
    stage.myelin("rm", 1)
    assert stage.models() == [("net", 3, 3, [])]


# -- what is lost comes back


def aliased(stage):
    for text in ("one", "two", "three"):
        stage.train(f"printf {text} >net.bin", model())
    stage.myelin("rm", 2)
    stage.myelin("model", "alias", "net:1", "best")
    return stage.json("model", "ls")


def remove_database(stage):
    for path in stage.home.glob("myelin.db*"):
        path.unlink()


@pytest.mark.parametrize("loss", ["nothing", "database", "damage"])
def test_reindex_gives_the_same_versions_and_aliases(stage, loss):
    before = aliased(stage)
    if loss == "database":
        remove_database(stage)
    elif loss == "damage":
        (stage.home / "myelin.db").write_bytes(b"nonsense" * 1000)
    stage.myelin("reindex")
    assert stage.json("model", "ls") == before
    stage.train("printf four >net.bin", model())
    assert stage.models()[0] == ("net", 4, 4, [])


def test_without_database_and_dump_the_versions_are_those_of_the_journals(stage):
    aliased(stage)
    remove_database(stage)
    (stage.home / "models.json").unlink()
    stage.train("printf four >net.bin", model())
    assert stage.models() == [("net", 4, 4, []), ("net", 3, 3, []), ("net", 1, 1, [])]


def test_a_dump_that_makes_no_sense_is_told_and_kept(stage):
    aliased(stage)
    remove_database(stage)
    (stage.home / "models.json").write_text('{"version": 1, "models": [{"name": "net"}]}')
    err = stage.myelin("model", "ls", status=1).err
    assert "models.json' cannot be used" in err and "an entry of 'models' is no model" in err
    assert (stage.home / "models.json").exists()


def test_models_of_a_newer_myelin_are_left_alone(stage):
    aliased(stage)
    with sqlite3.connect(stage.home / "myelin.db") as database:
        database.execute("UPDATE models_schema SET version = 99")
    assert "newer myelin" in stage.myelin("model", "ls", status=1).err


def test_a_run_whose_supervisor_was_killed_is_recorded_by_who_looks(stage):
    stage.task("printf one >net.bin", model(), wait=True)
    run = stage.myelin("run", "-d", "job.yml").out.strip()
    stage.scenario.wait_for("logged")
    kill_both(stage, run)
    assert stage.models() == [("net", 1, 1, [])]
    before = journal(stage, run).read_bytes()
    assert stage.models() == [("net", 1, 1, [])] and journal(stage, run).read_bytes() == before
    assert stage.json("status", run)["artifacts"][0]["version"] == 1


def test_models_are_shown_where_nothing_can_be_written(stage):
    before = aliased(stage)
    places = [stage.home, *stage.home.glob("runs/*")]
    for place in places:
        place.chmod(0o555)
    try:
        assert stage.json("model", "ls") == before
        stage.myelin("model", "get", "net:best", "out")
        if os.getuid() != 0:
            assert "cannot write the ledger" in stage.myelin("model", "alias", "net:1", "x", status=1).err
    finally:
        for place in places:
            place.chmod(0o755)


def test_one_run_that_cannot_be_recorded_does_not_hide_the_others(stage):
    aliased(stage)
    lines = journal(stage, 3).read_text().splitlines(keepends=True)
    journal(stage, 3).write_text("".join(line for line in lines if '"event": "artifact"' not in line))
    remove_database(stage)
    (stage.home / "runs" / "3" / "outputs" / "net.bin").unlink()
    assert stage.models() == [("net", 1, 1, ["best"])]
    assert "net.bin" in stage.json("status", 3)["artifacts"][0]["problem"]


def test_the_command_line_is_checked(stage):
    assert "cannot be 'rename'; it is one of: ls, show, get, alias" in stage.myelin("model", "rename", status=2).err
    for words in ([], ["show"], ["get", "net"], ["alias", "net:1"], ["ls", "a", "b"], ["ls", "--force"], ["show", "n", "--remove"]):
        stage.myelin("model", *words, status=2)
    assert stage.json("model", "ls") == [] and not (stage.home / "myelin.db").exists()
