# SPDX-License-Identifier: Apache-2.0
"""The outcome for a script: standard output is one JSON document and nothing else."""
import json
import os
import signal


def test_a_success_is_told_with_all_its_tasks(scenario):
    ended = scenario.run(scenario.job("echo words", "pytorch", workers=2), "--json")
    assert ended.status == 0, ended
    told = json.loads(ended.out)
    assert (told["status"], told["exit_status"], told["first_failed"]) == ("succeeded", 0, None)
    assert [task["name"] for task in told["tasks"]] == ["master.0", "worker.0", "worker.1"]
    assert [task["rank"] for task in told["tasks"]] == [0, 1, 2]
    assert {task["status"] for task in told["tasks"]} == {"succeeded"}
    assert {task["exit_code"] for task in told["tasks"]} == {0}
    assert "words" in ended.err, "what the tasks write goes to standard error"


def test_a_failure_is_told_with_who_why_and_the_last_lines(scenario):
    cmd = scenario.script('if [ "$RANK" = 2 ]; then echo oops; exit 5; fi; exec sleep 600')
    ended = scenario.run(scenario.job(cmd, "pytorch", workers=2), "--json")
    assert ended.status == 5, ended
    told = json.loads(ended.out)
    assert (told["status"], told["exit_status"]) == ("failed", 5)
    first = told["first_failed"]
    assert (first["task"], first["exit_code"], first["last_lines"]) == ("worker.1", 5, ["oops"])
    assert {task["name"]: task["status"] for task in told["tasks"]} == {
        "master.0": "stopped", "worker.0": "stopped", "worker.1": "failed"
    }  # fmt: skip


def test_a_stop_is_told(scenario):
    job = scenario.job(scenario.script("touch up; exec sleep 600"))
    process = scenario.start("run", job, "--json")
    scenario.wait_for("up")
    process.send_signal(signal.SIGINT)
    ended = scenario.finish(process)
    told = json.loads(ended.out)
    assert (told["status"], told["exit_status"], ended.status) == ("stopped", 130, 130)
    assert told["tasks"][0]["signal"] == signal.SIGTERM


def test_output_that_is_no_text_still_makes_valid_json(scenario):
    cmd = scenario.script("printf '\\377\\001\"\\\\ end\\n'; exit 1")
    told = json.loads(scenario.run(scenario.job(cmd), "--json").out)
    assert told["first_failed"]["last_lines"][-1].endswith("end")


def test_the_paths_that_are_told_exist(scenario):
    cmd = scenario.script('echo hello; echo model >"$POLYAXON_RUN_OUTPUTS_PATH/model"')
    paths = json.loads(scenario.run(scenario.job(cmd), "--json").out)["paths"]
    assert os.listdir(paths["outputs"]) == ["model"]
    with open(os.path.join(paths["logs"], "master.0.log")) as log:
        assert log.read() == "hello\n"
