# SPDX-License-Identifier: Apache-2.0
"""What `run --on kubernetes` says before anything is sent to a cluster; runs on one are conformance tests."""
import json

import pytest

# Nothing listens there: whoever asks it anything fails.
KUBECONFIG = """\
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, namespace: team}}]
clusters: [{name: nowhere, cluster: {server: 'http://127.0.0.1:9'}}]
"""


def run_there(scenario, head, framework="pytorch"):
    job = scenario.job("true", framework, workers=1, head=head)
    return scenario.run(job, "--on", "kubernetes", "--kubeconfig", scenario.write("kubeconfig", KUBECONFIG))


@pytest.mark.parametrize("backend", ["backend: native\n", ""])
def test_horovod_in_pods_of_our_own_without_the_shim_is_refused_with_the_way_out(scenario, backend):
    scenario.home.mkdir(exist_ok=True)
    (scenario.home / "config.yml").write_text("kubernetes: {shim: false}\n")
    ended = run_there(scenario, backend + "build: {image: x}", "horovod")
    assert ended.status == 125, ended
    assert "nothing serves Horovod's rendezvous" in ended.err
    assert "`kubernetes.shim: true`" in ended.err and "use `backend: kubeflow`" in ended.err
    assert ("backend: native" in ended.err) == bool(backend), "the place is shown where there is one"
    assert not list(scenario.home.glob("runs/*")), "nothing was begun"


@pytest.mark.parametrize("backend", ["mpi", "other"])
def test_a_backend_that_no_cluster_has_is_refused_at_its_place(scenario, backend):
    ended = run_there(scenario, f"backend: {backend}\nbuild: {{image: x}}")
    assert ended.status == 125, ended
    assert f"there is no `backend: {backend}` on a cluster" in ended.err
    assert "use `backend: native`" in ended.err


@pytest.mark.parametrize("backend", ["native", "kubeflow"])
def test_a_file_without_an_image_is_refused(scenario, backend):
    ended = run_there(scenario, f"backend: {backend}")
    assert ended.status == 125, ended
    assert "names no image" in ended.err


def there(scenario, *arguments, seconds=60):
    return scenario.finish(scenario.start(*arguments), seconds)


@pytest.fixture
def given_up(scenario):
    """A run that a cluster was to make that nobody reaches, killed."""
    job = scenario.job("true", "pytorch", workers=1, head="build: {image: x}")
    kubeconfig = scenario.write("kubeconfig", KUBECONFIG)
    process = scenario.start("run", job, "--on", "kubernetes", "--kubeconfig", kubeconfig, "-d")
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, b"1\n"), err
    return there(scenario, "kill", "1")


def test_a_kill_before_anything_was_made_leaves_nothing_and_says_no_more(scenario, given_up):
    assert given_up.status == 0, given_up
    assert "left behind" not in given_up.err
    status = json.loads(there(scenario, "status", "1", "--json").out)
    assert (status["status"], status["left_nothing"]) == ("stopped", True)
    assert (status["cluster"], status["namespace"], status["image"], status["volume"]) == ("nowhere", "team", "x", None)


# What is asked of it, and what has to be in the answer.
REFUSALS = {
    "resume 1": ["were its pods' own, and went with them", "name a claim as `outputs` in config.yml", "'myelin restart 1'"],
    "copy 1": ["outputs on a cluster are not copied", "'myelin resume 1'"],
    "rerun 1": ["the code is what the image holds", "'myelin restart 1'"],
    "resume 1 --on this-machine": ["on a cluster (nowhere), where tasks of this machine do not see them"],
}


def test_a_run_is_restarted_where_it_was_and_what_it_cannot_take_over_is_refused(scenario, given_up):
    (scenario.home / "config.yml").write_text("kubernetes: {namespace: elsewhere}\n")
    for command, sentences in REFUSALS.items():
        ended = there(scenario, *command.split())
        assert ended.status == 125, ended
        assert all(sentence in ended.err for sentence in sentences), ended
    assert len(list(scenario.home.glob("runs/*"))) == 1, "nothing was begun"
    assert "to nowhere, namespace team;" in there(scenario, "restart", "1", "--dry-run").out
    assert "to nowhere, namespace mine;" in there(scenario, "restart", "1", "--dry-run", "--namespace", "mine").out
    here = there(scenario, "restart", "1", "--on", "this-machine")
    assert here.status == 0, here


@pytest.mark.parametrize("command", ["restart", "resume", "copy"])
def test_a_run_of_this_machine_stays_here_whatever_the_settings_say_later(scenario, command):
    assert scenario.run(scenario.job("true", "pytorch", workers=1)).status == 0
    (scenario.home / "config.yml").write_text("runs_on: kubernetes\nkubernetes: {image: x}\n")
    assert there(scenario, command, "1").status == 0
    # What was read beside the file is not of the file.
    assert there(scenario, command, "2").status == 0
    assert not list(scenario.home.glob("runs/*/polyaxonfile.2.yml"))


def test_outputs_of_this_machine_do_not_go_to_a_cluster(scenario):
    assert scenario.run(scenario.job("true", "pytorch", workers=1, head="build: {image: x}")).status == 0
    ended = there(scenario, "resume", "1", "--on", "kubernetes", "--kubeconfig", scenario.write("kubeconfig", KUBECONFIG))
    assert ended.status == 125, ended
    assert "are on this machine, where pods do not see them" in ended.err


LOST = "this myelin has no shim for nodes of `s390x`: the pods are without it"
HERE = "`node_selector` has no effect on this machine"


def test_who_looks_ahead_is_told_what_is_lost_where_the_run_would_go(scenario):
    head = "build: {image: x}\nenvironment: {node_selector: {kubernetes.io/arch: s390x}}"
    job = scenario.write("job.yml", f"version: 1\nkind: experiment\nrun: {{cmd: 'true'}}\n{head}\n")
    told = there(scenario, "plan", job)
    assert told.status == 0 and HERE in told.out and LOST not in told.out, told
    told = there(scenario, "plan", job, "--on", "kubernetes")
    assert told.status == 0 and LOST in told.out and HERE not in told.out, told
    rehearsal = there(scenario, "run", job, "--dry-run", "--on", "kubernetes", "--kubeconfig", scenario.write("kubeconfig", KUBECONFIG))
    assert rehearsal.status == 0 and LOST in rehearsal.err, rehearsal
    scenario.home.mkdir(exist_ok=True)
    (scenario.home / "config.yml").write_text("runs_on: kubernetes\n")
    told = there(scenario, "plan", job)
    assert told.status == 0 and LOST in told.out and HERE not in told.out, told
    told = there(scenario, "plan", job, "--on", "this-machine")
    assert told.status == 0 and HERE in told.out, told


def test_a_plan_that_no_cluster_can_hold_is_told_with_the_way_out(scenario):
    job = scenario.job("true", "pytorch", workers=1)
    told = there(scenario, "plan", job, "--on", "kubernetes")
    assert told.status == 1 and "names no image" in told.err and "--image" in told.err and not told.out, told
    assert there(scenario, "plan", job, "--on", "kubernetes", "--image", "x").status == 0
