# SPDX-License-Identifier: Apache-2.0
"""A sample of what `./test faults` injects: each fault once, and the laws that hold after it."""
import os
import pathlib
import random
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "faults"))

from stage import Stage, compile_training  # noqa: E402
from table import FAULTS  # noqa: E402


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return compile_training(tmp_path_factory.mktemp("training"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_after_a_fault_the_state_is_true_and_nothing_is_left(tmp_path, training, fault):
    if not fault.is_possible():
        pytest.skip("no mount can be made here")
    if fault.name == "memory" and "ASAN_OPTIONS" in os.environ:
        pytest.skip("the sanitizers need more address space than there is")
    stage = Stage(tmp_path, training)
    try:
        assert fault.inject(stage, random.Random(fault.name))
    finally:
        stage.end()
