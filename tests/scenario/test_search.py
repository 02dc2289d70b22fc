# SPDX-License-Identifier: Apache-2.0
"""Runs are found again by what is known of them."""
import csv
import io
import json
import pathlib
import shutil

import pytest
from conftest import Ended, compile_logger
from shapes import assert_shape

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "myelin.h"

/* LR LOSS...: logs params, tags, a summary, and each loss. */
int main(int argc, char **argv) {
    struct myelin *m = myelin_open();
    const uint32_t name = myelin_name(m, "loss");
    char text[128];

    snprintf(text, sizeof text, "{\"lr\": %s, \"optimiser\": \"adam\", \"deep\": true}", argv[1]);
    myelin_record(m, MYELIN_PARAMS, text, strlen(text));
    snprintf(text, sizeof text, "{\"logged\": true, \"team\": \"vision\"}");
    myelin_record(m, MYELIN_TAGS, text, strlen(text));
    snprintf(text, sizeof text, "{\"best\": %s}", argv[2]);
    myelin_record(m, MYELIN_SUMMARY, text, strlen(text));
    for (int i = 2; i < argc; i++) {
        const double loss = atof(argv[i]);

        myelin_log(m, &name, &loss, 1, i, MYELIN_NOW);
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def logger(tmp_path_factory):
    return compile_logger(tmp_path_factory, PROGRAM)


class Stage:
    """Three runs that logged, and one that failed."""

    def __init__(self, scenario, logger):
        self.scenario, self.home, self.logger = scenario, scenario.home, logger
        for lr, losses in [(0.1, "0.9 0.2 0.4"), (0.2, "0.8 0.3"), (0.5, "0.7 nan")]:
            scenario.run(scenario.job(f"{logger} {lr} {losses}", framework="pytorch", workers=1))
        scenario.run(scenario.job("exit 3"))

    def myelin(self, *arguments):
        process = self.scenario.start(*arguments)
        out, err = process.communicate(timeout=60)
        return Ended(process.returncode, out, err, 0)

    def found(self, query, *arguments):
        ended = self.myelin("runs", "--query", query, "--json", *arguments)
        assert ended.status == 0, ended
        told = json.loads(ended.out)
        assert_shape(told, "Runs that were found")
        return [run["id"] for run in told["runs"]]


@pytest.fixture
def stage(scenario, logger):
    return Stage(scenario, logger)


@pytest.mark.parametrize(
    "query, runs",
    [
        ("", [4, 3, 2, 1]),
        ("status:failed", [4]),
        ("status:~failed", [3, 2, 1]),
        ("exit_status:3", [4]),
        ("framework:pytorch, tasks:2", [3, 2, 1]),
        ("params.lr:0.1|0.2", [2, 1]),
        ("params.lr:0.15..0.5", [3, 2]),
        ("metrics.loss:<0.35", [2]),
        ("min.loss:<=0.2", [1]),
        ("max.loss:>=0.8", [2, 1]),
        ("metrics.loss:nan", [3]),
        ("~metrics.loss:<0.35", [4, 3, 1]),
        ("summary.best:>0.75, params.optimiser:AD%", [2, 1]),
        ("tags:logged, tags.team:vision, params.deep:true", [3, 2, 1]),
        ("~tags:logged", [4]),
        ("created_at:>2020, finished_at:<2020", []),
        ("id:2..3, ~id:3", [2]),
    ],
)
def test_a_query_finds_the_runs_that_fulfil_it(stage, query, runs):
    assert stage.found(query) == runs


def test_runs_are_sorted_and_come_in_pages(stage):
    assert stage.found("", "--sort", "min.loss") == [1, 2, 3, 4]
    assert stage.found("", "--sort", "-params.lr, id") == [3, 2, 1, 4]
    assert stage.found("", "--sort", "id", "--limit", "2", "--offset", "1") == [2, 3]


def test_columns_are_shown_as_they_were_logged(stage):
    wanted = "id,params.lr,metrics.loss,min.loss,max.loss,tags,params.optimiser"
    ended = stage.myelin("runs", "--columns", wanted, "--sort", "id", "--csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert list(rows[0]) == wanted.split(",")
    assert list(rows[0].values()) == ["1", "0.1", "0.4", "0.2", "0.9", "logged team", "adam"]
    assert rows[2]["metrics.loss"] == "nan" and rows[3]["params.lr"] == ""
    table = stage.myelin("runs", "-q", "params.lr:<0.3").out.splitlines()
    assert table[0].split()[-1] == "params.lr" and table[1].split()[-1] == "0.2"


def test_what_the_file_gives_is_found_too(scenario):
    job = scenario.job("exit 0", head="params: {lr: 0.25, kind: big}\ntags: [mine]")
    assert scenario.run(job).status == 0
    out = scenario.start("runs", "-q", "params.lr:0.25, tags:mine, params.kind:big", "--json").communicate()[0]
    assert json.loads(out)["total"] == 1


def test_mistakes_are_told_below_the_query(stage):
    ended = stage.myelin("runs", "-q", "status:runing, colour:red")
    assert ended.status == 2 and ended.out == ""
    assert "--query:1:8: error: there is no such status" in ended.err
    assert "did you mean 'running'?" in ended.err
    assert "--query:1:16: error: there is no such field" in ended.err
    lines = ended.err.splitlines()
    assert lines[2].index("^") == lines[1].index("runing")


def test_a_living_run_is_found_as_it_is_now(scenario):
    assert scenario.start("run", "-d", scenario.job("exec sleep 600")).wait(20) == 0

    def found(query):
        return json.loads(scenario.start("runs", "-q", query, "--json").communicate()[0])["total"]

    assert found("~status:succeeded|failed|stopped") == 1
    assert scenario.start("stop", "@").wait(20) == 0
    assert found("~status:succeeded|failed|stopped") == 0
    assert found("status:stopped") == 1


def test_a_lost_index_is_made_again_and_a_removed_run_is_gone(stage):
    assert stage.found("params.lr:>0") == [3, 2, 1]
    index = pathlib.Path(stage.home) / "index.db"
    index.unlink()
    assert stage.found("params.lr:>0") == [3, 2, 1]
    index.write_text("no database at all")
    assert stage.found("params.lr:>0") == [3, 2, 1]
    assert stage.myelin("rm", "2").status == 0
    assert stage.found("params.lr:>0") == [3, 1]
    told = json.loads(stage.myelin("reindex", "--json").out)
    assert told["indexed"] == 3
    shutil.rmtree(pathlib.Path(stage.home) / "runs" / "1")
    assert stage.found("params.lr:>0") == [3]


# -- side by side


def test_what_differs_between_runs_is_put_side_by_side(stage):
    told = json.loads(stage.myelin("compare", "1", "2", "4", "--json").out)
    assert_shape(told, "Runs that are compared")
    assert told["runs"] == [1, 2, 4]
    fields = {row["field"]: row["values"] for row in told["fields"]}
    assert fields["params.lr"] == [0.1, 0.2, None]
    assert fields["min.loss"] == [0.2, 0.3, None] and fields["metrics.loss"] == [0.4, 0.3, None]
    assert fields["status"] == ["succeeded", "succeeded", "failed"]
    assert "owner" not in fields and all(row["differs"] for row in told["fields"])
    everything = json.loads(stage.myelin("compare", "1", "2", "--all", "--json").out)
    equal = {row["field"] for row in everything["fields"] if not row["differs"]}
    assert {"owner", "host", "directory", "params.optimiser", "tags.logged"} <= equal


def test_curves_of_runs_are_drawn_on_one_axis(stage):
    ended = stage.myelin("compare", "1", "2", "-m", "loss")
    assert ended.status == 0, ended
    assert "run 1" in ended.out and "run 2" in ended.out and "step 4" in ended.out
    ended = stage.myelin("compare", "1", "2", "-m", "gone")
    assert ended.status == 1 and "none of these runs has logged 'gone'" in ended.err


def test_equal_runs_are_said_to_be_equal_and_one_run_is_not_compared(stage):
    assert "nothing differs" in stage.myelin("compare", "1", "1").out
    assert stage.myelin("compare", "1").status == 2
    assert stage.myelin("compare", "1", "99").status == 1
