# SPDX-License-Identifier: Apache-2.0
"""The outcome for a script: standard output is one JSON document and nothing else."""
import json
import os
import signal
import time

from shapes import DOCS, assert_shape
from test_queue import UNTIL_GO, asking, cores


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


def told_by(scenario, *arguments, status=0):
    ended = scenario.finish(scenario.start(*arguments, "--json"))
    assert ended.status == status, ended
    return json.loads(ended.out)


def members(text, *names):
    """Whether a row of docs/json.md names each of these members."""
    return all(f"`{name}`" in text for name in names)


def row_of(heading, member):
    section = (DOCS / "json.md").read_text().split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    return next(line for line in section.splitlines() if line.startswith(f"| `{member}` |"))


def test_the_program_tells_what_it_is(scenario):
    told = told_by(scenario, "version")
    assert_shape(told, "The program itself")
    assert told["name"] == "myelin" and set(told["shims"]) <= {"amd64", "arm64"}


def test_a_machine_has_the_shape_that_is_documented(scenario):
    told = told_by(scenario, "node")
    assert_shape(told, "A machine")
    assert set(told["resources"]) == {"cpu", "memory", "gpu"}
    for amounts in told["resources"].values():
        assert set(amounts) == {"total", "reserved", "free"}
    assert members(row_of("A machine", "topology"), *told["topology"])
    for node in told["topology"]["numa_nodes"]:
        assert members(row_of("A machine", "topology"), *node)


def test_a_reservation_has_the_members_that_are_documented(scenario):
    process = scenario.start("run", asking(scenario, scenario.script(UNTIL_GO), cpu=1))
    scenario.wait_for("up")
    waits = scenario.start("run", asking(scenario, "true", name="waits.yml", cpu=cores(scenario)))
    deadline = time.monotonic() + 10
    while not (told := json.loads(scenario.start("node", "--json").communicate()[0]))["queue"]:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    (scenario.directory / "go").touch()
    assert [run.wait(timeout=20) for run in (process, waits)] == [0, 0]
    assert_shape(told, "A machine")
    for name in ("reservations", "queue"):
        assert told[name] and members(row_of("A machine", name), *told[name][0]), told[name]


def test_a_check_has_the_shape_that_is_documented(scenario):
    scenario.job("true", name="right.yml")
    scenario.write("wrong.yml", "version: 1\nkind: experimen\n")
    (right,) = told_by(scenario, "check", "right.yml")
    (wrong,) = told_by(scenario, "check", "wrong.yml", status=1)
    for told in (right, wrong):
        assert_shape(told, "A check")
    assert right["valid"] and not wrong["valid"] and wrong["errors"] == len(wrong["diagnostics"])
    for diagnostic in wrong["diagnostics"]:
        assert members(row_of("A check", "diagnostics"), *diagnostic)
