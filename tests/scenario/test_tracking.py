# SPDX-License-Identifier: Apache-2.0
"""What tasks log is kept, whatever happens to them, and is shown."""
import csv
import io
import json
import pathlib
import signal
import time

import pytest
from conftest import Ended, compile_logger, kill_both
from shapes import assert_shape
from test_queue import install_gpus

PROGRAM = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "myelin.h"

/* logs N points of "loss" (rank + 1/step) and "nan", with params; then does as it is told. */
int main(int argc, char **argv) {
    const int n = atoi(argv[1]), rank = atoi(getenv("MYELIN_RANK"));
    const char *end = argc > 2 ? argv[2] : "", *params = "{\"lr\": 0.5, \"sizes\": [1, 2]}";
    struct myelin *m = myelin_open();
    const uint32_t names[2] = { myelin_name(m, "loss"), myelin_name(m, "odd/nan") };

    myelin_record(m, MYELIN_PARAMS, params, strlen(params));
    myelin_record(m, MYELIN_TAGS, "{\"kind\": \"test\"}", 16);
    for (int i = 0; i < n; i++) {
        const double values[2] = { rank + 1.0 / (i + 1), i % 2 ? NAN : 1 };

        myelin_log(m, names, values, 2, i, MYELIN_NOW);
        if (strcmp(end, "slow") == 0)
            usleep(1000);
    }
    if (strcmp(end, "wait") == 0) {
        fclose(fopen("logged", "w"));
        pause();
    }
    if (strcmp(end, "die") == 0)
        abort();
    if (strcmp(end, "fail-once") == 0 && atoi(getenv("MYELIN_ATTEMPT")) == 0)
        return 3;
    return 0;
}
"""


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, PROGRAM)


class Stage:
    """A scenario with what these tests share."""

    def __init__(self, scenario):
        self.scenario, self.home = scenario, scenario.home
        self.run, self.script, self.wait_for = scenario.run, scenario.script, scenario.wait_for

    def gang(self, name, command, workers):
        self.scenario.job(command, framework="pytorch", workers=workers, name=name)

    def myelin(self, *arguments):
        """A command that leaves runs alone."""
        process = self.scenario.start(*arguments)
        out, err = process.communicate(timeout=60)
        return Ended(process.returncode, out, err, 0)

    def run_directory(self, run):
        return pathlib.Path(json.loads(self.myelin("status", run, "--json").out)["paths"]["run"])


@pytest.fixture
def stage(scenario):
    return Stage(scenario)


def metrics(stage, *arguments):
    ended = stage.myelin("metrics", *arguments, "--json")
    assert ended.status == 0, ended
    return json.loads(ended.out)


def by_task(series, name):
    return {entry["task"]: entry for entry in series if entry["name"] == name}


def test_what_every_task_logs_is_kept_to_the_last_point(stage, logger):
    stage.gang("track.yml", f"{logger} 5000", workers=2)
    assert stage.run("track.yml").status == 0
    series = metrics(stage, "@", "loss")
    assert sorted(by_task(series, "loss")) == ["master.0", "worker.0", "worker.1"]
    for entry in series:
        assert_shape(entry, "What a run has measured")
        assert entry["count"] == len(entry["points"]) == 5000
        assert [point["step"] for point in entry["points"]] == list(range(5000))
        assert entry["points"][7]["value"] == entry["rank"] + 1 / 8
        assert entry["max"] == entry["rank"] + 1 and entry["last"] == entry["rank"] + 1 / 5000
    assert not (stage.run_directory("@") / "spool").exists()


def test_nan_is_a_value_and_is_counted_apart(stage, logger):
    stage.gang("track.yml", f"{logger} 100", workers=0)
    assert stage.run("track.yml").status == 0
    (entry,) = metrics(stage, "@", "odd/*")
    assert (entry["count"], entry["nans"], entry["mean"]) == (100, 50, 1.0)
    assert entry["last"] == entry["points"][-1]["value"] == "NaN"


def test_a_task_that_is_killed_has_logged_all_that_it_logged(stage, logger):
    stage.gang("track.yml", f"{logger} 3000 die", workers=1)
    assert stage.run("track.yml").status == 128 + signal.SIGABRT
    assert any(entry["count"] == 3000 for entry in metrics(stage, "@", "loss"))


def test_a_killed_supervisor_loses_nothing(stage, logger):
    stage.gang("track.yml", f"{logger} 4000 wait", workers=0)
    run = stage.myelin("run", "-d", "track.yml").out.strip()
    stage.wait_for("logged")
    kill_both(stage, run)
    (entry,) = metrics(stage, run, "loss")
    assert entry["count"] == 4000
    status = json.loads(stage.myelin("status", run, "--json").out)
    assert status["status"] == "failed" and status["params"] == {"lr": 0.5, "sizes": [1, 2]}


def test_status_and_ps_show_the_last_values(stage, logger):
    stage.gang("track.yml", f"{logger} 10", workers=1)
    assert stage.run("track.yml").status == 0
    status = json.loads(stage.myelin("status", "@", "--json").out)
    assert_shape(status, "A run")
    assert status["tags"] == {"kind": "test"} and status["params"]["lr"] == 0.5
    (loss,) = [entry for entry in status["metrics"] if entry["name"] == "loss"]
    assert_shape(loss, "metrics")
    assert (loss["last"], loss["last_step"]) == (0.1, 9)
    assert "loss=0.1" in stage.myelin("ps", "-a").out
    text = stage.myelin("status", "@").out
    assert "lr=0.5" in text and "loss=0.1" in text


def test_metrics_of_attempts_are_kept_apart(stage, logger):
    stage.scenario.job(f"{logger} 50 fail-once", head="environment: {max_restarts: 1}", name="track.yml")
    assert stage.run("track.yml", "--backoff", "0").status == 0
    series = metrics(stage, "@", "loss")
    assert [(entry["attempt"], entry["count"]) for entry in series] == [(0, 50), (1, 50)]
    assert [entry["attempt"] for entry in metrics(stage, "@", "loss", "--attempt", "1")] == [1]


def test_csv_has_every_point_and_summaries_every_extreme(stage, logger):
    stage.gang("track.yml", f"{logger} 2000", workers=0)
    assert stage.run("track.yml").status == 0
    rows = list(csv.DictReader(io.StringIO(stage.myelin("metrics", "@", "loss", "--csv").out)))
    assert [int(row["step"]) for row in rows] == list(range(2000))
    few = list(csv.DictReader(io.StringIO(stage.myelin("metrics", "@", "loss", "--csv", "--points", "10").out)))
    assert len(few) == 10 and sum(int(row["count"]) for row in few) == 2000
    assert float(few[0]["max"]) == 1.0 and float(few[-1]["min"]) == 1 / 2000
    (entry,) = metrics(stage, "@", "loss", "--points", "4")
    assert len(entry["buckets"]) == 4 and "points" not in entry


def test_a_curve_is_drawn_and_a_list_has_sparks(stage, logger):
    stage.gang("track.yml", f"{logger} 300", workers=1)
    assert stage.run("track.yml").status == 0
    drawn = stage.myelin("metrics", "@", "loss").out
    assert "step 0" in drawn and "step 299" in drawn and "worker.0" in drawn
    assert any(0x2800 < ord(letter) <= 0x28FF for letter in drawn)
    listed = stage.myelin("metrics", "@").out
    assert "loss" in listed and "odd/nan" in listed and "█" in listed and "system/" not in listed


def measured(stage, file, pattern):
    """What is measured of a run while it goes on: how often depends on how busy the machine is."""
    run = stage.myelin("run", "-d", file).out.strip()
    deadline = time.monotonic() + 60
    while not (series := metrics(stage, run, pattern)):
        assert time.monotonic() < deadline, "nothing was measured"
        time.sleep(0.2)
    assert stage.myelin("kill", run).status == 0
    return series


def test_what_tasks_use_is_measured(stage, logger):
    stage.gang("track.yml", f"{logger} 10 wait", workers=0)
    names = {entry["name"] for entry in measured(stage, "track.yml", "system/*")}
    assert {"system/cpu_percent", "system/memory_bytes", "system/read_bytes_per_second"} <= names


def test_each_task_is_told_of_the_gpus_that_it_was_granted(scenario, stage, logger):
    install_gpus(scenario)
    scenario.write(
        "gpus.yml",
        f"""
        version: 1
        kind: experiment
        framework: pytorch
        environment:
          resources: {{gpu: {{requests: 1, limits: 1}}}}
          replicas:
            n_workers: 1
            default_worker: {{resources: {{gpu: {{requests: 1, limits: 1}}}}}}
        run:
          cmd: {logger} 10 wait
        """,
    )
    series = measured(stage, "gpus.yml", "system/gpu*_percent")
    assert [(entry["name"], entry["rank"], entry["last"]) for entry in series] == [
        ("system/gpu0_percent", 0, 42.0),
        ("system/gpu1_percent", 1, 42.0),
    ]
    assert {entry["last"] for entry in metrics(stage, "@", "system/gpu*_memory_bytes")} == {3.0 * 2**30}


def test_following_shows_points_as_they_come_and_ends_with_the_run(stage, logger):
    stage.gang("track.yml", f"{logger} 2500 slow", workers=0)
    run = stage.myelin("run", "-d", "track.yml").out.strip()
    ended = stage.myelin("metrics", run, "loss", "--csv", "-f")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert ended.status == 0 and [int(row["step"]) for row in rows] == list(range(2500))


def test_an_sdk_of_another_version_is_named(stage, scenario):
    """As one that was installed for an older program: not a number of it is read, and not in silence."""
    stage.gang("old.yml", scenario.python("""
        import os, pathlib
        folder = pathlib.Path(os.environ["MYELIN_SPOOL"])
        folder.mkdir(exist_ok=True)
        (folder / f"{os.getpid()}-1-000000.spool").write_bytes(b"myspool\\0\\x01" + bytes(4096 - 9))
    """), workers=0)
    ended = stage.run("old.yml")
    assert ended.status == 0 and "tracks with the SDK of another version" in ended.err, ended


def test_what_is_not_there_is_said(stage):
    stage.gang("quiet.yml", "/bin/true", workers=0)
    assert stage.run("quiet.yml").status == 0
    none = stage.myelin("metrics", "@")
    assert none.status == 0 and "no metrics" in none.err
    named = stage.myelin("metrics", "@", "loss")
    assert named.status == 1 and "nothing of that name" in named.err
    assert stage.myelin("metrics", "@", "--json").out.strip() == "[]"
    assert stage.myelin("metrics", "@", "--points", "x").status == 2
    assert not (stage.run_directory("@") / "series").exists()


def test_a_store_that_cannot_be_made_hurts_no_task_and_what_was_logged_is_folded_later(stage, logger):
    # A file in the place of its directory, as hard to pass as a disk that is full.
    run = stage.script(f': >"$(dirname "$(dirname "$MYELIN_SPOOL")")/series"; exec {logger} 1000')
    stage.gang("track.yml", run, workers=0)
    ended = stage.run("track.yml")
    assert ended.status == 0 and "metrics cannot be kept" in ended.err
    (stage.run_directory("@") / "series").unlink()
    (entry,) = metrics(stage, "@", "loss")
    assert entry["count"] == 1000
    assert not (stage.run_directory("@") / "spool").exists()
    assert json.loads(stage.myelin("status", "@", "--json").out)["params"]["lr"] == 0.5


NAMES = r"""
#include <stdio.h>

#include "myelin.h"

/* as many names as a process may have, which begin with the word */
int main(int argc, char **argv) {
    struct myelin *m = myelin_open();

    for (int i = 0; argc > 1 && i < MYELIN_NAMES_MAX; i++) {
        char text[64];
        double value = i;
        uint32_t name;

        snprintf(text, sizeof text, "%s/%d", argv[1], i);
        name = myelin_name(m, text);
        myelin_log(m, &name, &value, 1, 0, MYELIN_NOW);
    }
    return 0;
}
"""


def test_metrics_that_are_too_many_to_keep_are_told(scenario, stage, tmp_path_factory):
    names = compile_logger(tmp_path_factory, NAMES)
    ended = stage.run(scenario.job(f"for word in a b c d e; do {names} $word; done"), seconds=60)
    assert ended.status == 0, ended
    assert "more different metrics than a run keeps (262144)" in (stage.run_directory(1) / "events.jsonl").read_text()
