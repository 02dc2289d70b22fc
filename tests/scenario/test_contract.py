# SPDX-License-Identifier: Apache-2.0
"""docs/contract.md is true: it names what tasks are given, all of it, and nothing else."""
import re

import pytest

from conftest import ROOT

PAGE = ROOT / "docs" / "contract.md"
SECTIONS = {"tensorflow": "TensorFlow", "pytorch": "PyTorch", "mxnet": "MXNet", "horovod": "Horovod"}


def documented(section):
    """The variables in the table of one section of the page."""
    text = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (found,) = [part for part in text if part.startswith(section + "\n")]
    return set(re.findall(r"^\| `(\w+)` \|", found, flags=re.MULTILINE))


def given(scenario, framework, head=""):
    """The variables that are laid over the user's environment, of all tasks together."""
    cmd = scenario.script('tr "\\0" "\\n" </proc/$$/environ | cut -d= -f1 >names.$$')
    ps = 1 if framework in ("tensorflow", "mxnet") else 0
    ended = scenario.run(scenario.job(cmd, framework, workers=2, ps=ps, head=head))
    assert ended.status == 0, ended
    names = set()
    for path in scenario.directory.glob("names.*"):
        names |= set(path.read_text().split())
    return names - set(scenario.environment)


@pytest.mark.parametrize("framework", [None, *SECTIONS])
def test_the_page_names_exactly_what_tasks_are_given(scenario, framework):
    expected = documented("Every task")
    if framework:
        expected |= documented(SECTIONS[framework])
    actual = given(scenario, framework) - documented("Only sometimes")
    assert actual == expected, {
        "given, not on the page": sorted(actual - expected),
        "on the page, not given": sorted(expected - actual),
    }


def test_the_page_knows_when_threads_are_suggested(scenario):
    assert documented("Only sometimes") >= {"OMP_NUM_THREADS"}
    asks = given(scenario, None, head="environment: {resources: {cpu: {requests: 2}}}")
    assert "OMP_NUM_THREADS" in asks
