# SPDX-License-Identifier: Apache-2.0
"""The first thing a new user runs."""
import json
import os
import re
import socket
import subprocess

from conftest import PYTHON, ROOT

FILE = "examples/quickstart/polyaxonfile.yml"
TRAIN = ROOT / "examples" / "quickstart" / "train.py"


def epochs(ended):
    """epoch -> (loss, accuracy), as the master printed them."""
    found = {}
    for line in ended.lines_of("master.0"):
        match = re.match(r"epoch +(\d+)  loss ([\d.]+)  accuracy ([\d.]+)$", line)
        if match:
            found[int(match[1])] = float(match[2]), float(match[3])
    return found


def test_the_quickstart_learns_and_all_ranks_agree(scenario):
    ended = scenario.run(FILE, cwd=ROOT)
    assert ended.status == 0, ended
    seen = epochs(ended)
    assert sorted(seen) == list(range(11))
    assert seen[10][0] < seen[0][0] / 3
    assert seen[10][1] > 0.95 > 0.75 > seen[0][1]
    for rank, task in enumerate(["master.0", "worker.0", "worker.1", "worker.2"]):
        assert f"rank {rank} of 4: weights equal" in ended.lines_of(task), ended
    assert "4 of 4 ranks agree" in ended.lines_of("master.0")[-1]


def test_only_rank_0_reports_progress(scenario):
    ended = scenario.run(FILE, "-P", "epochs=1", cwd=ROOT)
    for task in ["worker.0", "worker.1", "worker.2"]:
        assert len(ended.lines_of(task)) == 1, ended


def test_a_parameter_given_with_P_reaches_the_command(scenario):
    ended = scenario.run(FILE, "-P", "epochs=3", cwd=ROOT)
    assert ended.status == 0, ended
    assert sorted(epochs(ended)) == [0, 1, 2, 3]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def train_by_hand(directory, size):
    """Trains with `size` processes and gives the model that came out."""
    directory.mkdir()
    wiring = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    processes = [
        subprocess.Popen(
            [PYTHON, str(TRAIN), "--epochs=4", "--timeout=15"],
            env={**os.environ, **wiring, "RANK": str(rank), "POLYAXON_RUN_OUTPUTS_PATH": str(directory)},
            stdout=subprocess.DEVNULL,
        )
        for rank in range(size)
    ]
    assert [process.wait(timeout=30) for process in processes] == [0] * size
    return json.loads((directory / "model.json").read_text())


def test_the_model_does_not_depend_on_the_number_of_tasks(tmp_path):
    alone = train_by_hand(tmp_path / "alone", 1)
    for size in [3, 4]:
        together = train_by_hand(tmp_path / str(size), size)
        assert max(abs(a - b) for a, b in zip(alone, together)) < 1e-9
        assert len(alone) == len(together)
