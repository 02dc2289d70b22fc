# SPDX-License-Identifier: Apache-2.0
"""What `run --on kubernetes` says before anything is sent to a cluster; runs on one are conformance tests."""
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
