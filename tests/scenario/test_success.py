# SPDX-License-Identifier: Apache-2.0
"""Whose success is the run's, framework by framework."""
import json
import re

import pytest

# A TensorFlow task that does `chief` as the chief and `other` as anybody else.
TF_TASK = """
    import json, os, sys, time
    config = json.loads(os.environ["TF_CONFIG"])
    kind, index = config["task"]["type"], config["task"]["index"]
    open("up.%s.%d" % (kind, index), "w").close()
    expected = sum(len(hosts) for hosts in config["cluster"].values())
    while len([name for name in os.listdir(".") if name.startswith("up.")]) < expected:
        time.sleep(0.01)
    is_chief = kind in ("chief", "master") or ("chief" not in config["cluster"] and (kind, index) == ("worker", 0))
    if is_chief:
        {chief}
    {other}
"""

MX_TASK = """
    case "$DMLC_ROLE" in
    worker) {worker} ;;
    *) exec sleep 600 ;;
    esac
"""


def tf_run(scenario, chief, other, *arguments, masterless=False, workers=2):
    cmd = scenario.python(TF_TASK.format(chief=chief, other=other))
    topology = "master: false" if masterless else ""
    job = scenario.job(cmd, "tensorflow", workers=workers, ps=1, topology=topology)
    return scenario.run(job, *arguments)


def test_the_success_of_the_chief_ends_those_who_sit_for_ever(scenario):
    ended = tf_run(scenario, "sys.exit(0)", "time.sleep(600)", "--grace", "1")
    assert ended.status == 0, ended
    assert ended.seconds < 6, ended


def test_what_the_others_exit_with_after_the_chief_does_not_count(scenario):
    ended = tf_run(scenario, "sys.exit(0)", "time.sleep(0.4); sys.exit(3)", "--grace", "2")
    assert ended.status == 0, ended


def test_a_worker_that_ends_well_before_the_chief_ends_nothing(scenario):
    ended = tf_run(scenario, "time.sleep(0.5); print('chief done'); sys.exit(0)", "sys.exit(0)", "--grace", "1")
    assert ended.status == 0, ended
    assert "chief done" in ended.out


def test_a_worker_that_fails_before_the_chief_is_done_fails_the_run(scenario):
    ended = tf_run(scenario, "time.sleep(600)", "sys.exit(4 if (kind, index) == ('worker', 1) else 0)")
    assert ended.status == 4, ended
    assert re.search(r"worker\.1\b.*\b4\b", ended.err), ended


def test_without_a_master_worker_0_is_the_chief(scenario):
    ended = tf_run(scenario, "print('I lead'); sys.exit(0)", "time.sleep(600)", "--grace", "1", masterless=True)
    assert ended.status == 0, ended
    assert ended.lines_of("worker.0") == ["I lead"], ended
    assert "master" not in ended.out


def test_mxnet_is_done_when_every_worker_is(scenario):
    cmd = scenario.script(MX_TASK.format(worker="exit 0"))
    ended = scenario.run(scenario.job(cmd, "mxnet", workers=3, ps=2), "--grace", "1")
    assert ended.status == 0, ended
    assert ended.seconds < 6, ended


def test_mxnet_is_not_done_when_only_some_workers_are(scenario):
    worker = 'if [ "$DMLC_WORKER_ID" = 1 ]; then sleep 0.5; exit 6; fi; exit 0'
    cmd = scenario.script(MX_TASK.format(worker=worker))
    ended = scenario.run(scenario.job(cmd, "mxnet", workers=3, ps=1))
    assert ended.status == 6, ended
    assert re.search(r"worker\.1\b.*\b6\b", ended.err), ended


@pytest.mark.parametrize("framework, rank", [("pytorch", "RANK"), ("horovod", "HOROVOD_RANK")])
def test_every_rank_has_to_succeed(scenario, framework, rank):
    text = f'[ "${rank}" = 0 ] || sleep 0.4; echo done; [ "${rank}" != 2 ] || exit 8'
    ended = scenario.run(scenario.job(scenario.script(text), framework, workers=2))
    assert ended.status == 8, ended
    assert ended.lines_of("worker.1") == ["done"], ended


@pytest.mark.parametrize("framework", ["pytorch", "horovod"])
def test_all_ranks_done_is_success(scenario, framework):
    ended = scenario.run(scenario.job("true", framework, workers=3))
    assert ended.status == 0, ended


def test_sixty_four_tasks_start_and_end(scenario):
    ended = scenario.run(scenario.job(scenario.script('echo "$RANK of $WORLD_SIZE"'), "pytorch", workers=63))
    assert ended.status == 0, ended
    said = sorted(line.split("│ ", 1)[1] for line in ended.out.splitlines())
    assert said == sorted(f"{rank} of 64" for rank in range(64))


def test_it_is_looked_up_that_nobody_listens_any_more(scenario):
    """Horovod's rendezvous listens for the run itself: it is closed before the look."""
    ended = scenario.run(scenario.job("true", "horovod", workers=2))
    assert ended.status == 0, ended
    journal = [json.loads(line) for line in (scenario.home / "runs/1/events.jsonl").read_text().splitlines()]
    checked = [line for line in journal if line["event"] == "checked"]
    assert len(checked) == 1 and checked[0]["processes"] == 0 and checked[0]["listeners"] == 0, checked
