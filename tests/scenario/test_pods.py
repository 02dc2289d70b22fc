# SPDX-License-Identifier: Apache-2.0
"""What tasks in pods of our own leave comes here: log, metrics, outputs and ends, each once, whatever happens between."""
import json
import os
import signal
import time

import pytest

from conftest import PYTHON, SECONDS, compile_logger
from small_cluster import Cluster


@pytest.fixture
def cluster(scenario, tmp_path):
    stage = Cluster(tmp_path, {"HOME": str(tmp_path)})
    yield stage
    stage.close()


def submit(scenario, cluster, job, *arguments):
    return scenario.start("run", job, "--on", "kubernetes", "--kubeconfig", cluster.kubeconfig(), *arguments)


def run(scenario, cluster, job, *arguments):
    return scenario.finish(submit(scenario, cluster, job, *arguments), 3 * SECONDS)


def gang(scenario, cmd, workers=1):
    return scenario.job(cmd, "pytorch", workers=workers, head="build: {image: x}")


def log_of(scenario, task):
    return (scenario.home / "runs" / "1" / "logs" / f"{task}.log").read_bytes()


def test_a_run_in_pods_has_its_logs_and_its_end(scenario, cluster):
    ended = run(scenario, cluster, gang(scenario, "echo line of $MYELIN_TASK"))
    assert ended.status == 0, ended
    assert ended.lines_of("master.0") == ["line of master.0"]
    assert ended.lines_of("worker.0") == ["line of worker.0"]
    assert sum("/proxy/end" in request for request in cluster.requests) == 2
    assert not any("/log?" in request for request in cluster.requests)
