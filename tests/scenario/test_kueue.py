# SPDX-License-Identifier: Apache-2.0
"""Gangs that Kueue admits, on a cluster that one process plays: its gate and its finalizer, by the rules of its own sources. Kueue itself is a
conformance test."""
import json

import pytest

from test_gang import Cluster, begin, say, status, wait_until

KUEUE = "kueue.x-k8s.io"
WORKLOADS = f"/apis/{KUEUE}/v1beta1/namespaces/team/workloads"
TERMINAL = ("Succeeded", "Failed")


class Kueue(Cluster):
    """Pods of a group are kept until all have ended and none is to be replaced, or their Workload is deleted."""

    def __init__(self, may_delete=True):
        self.may_delete = may_delete
        super().__init__(room=9)

    def ask(self, method, path, query, body):
        if path == f"/apis/{KUEUE}":
            version = {"groupVersion": f"{KUEUE}/v1beta1", "version": "v1beta1"}
            return 200, {"kind": "APIGroup", "name": KUEUE, "versions": [version], "preferredVersion": version}
        if path == f"/apis/{KUEUE}/v1beta1":
            return 200, {"kind": "APIResourceList", "resources": [{"name": "workloads", "kind": "Workload", "namespaced": True}]}
        if method == "DELETE" and path.startswith(WORKLOADS) and not self.may_delete:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "workloads is forbidden"}
        if method == "POST" and path.endswith("/pods") and f"{KUEUE}/queue-name" in body["metadata"]["labels"]:
            body["metadata"]["finalizers"] = [f"{KUEUE}/managed"]
            body["spec"]["schedulingGates"] = [{"name": f"{KUEUE}/admission"}]
        answer = super().ask(method, path, query, body)
        with self.changed:
            self.reconcile()
        return answer

    def members(self):
        groups = {}
        for name, pod in self.pods():
            groups.setdefault(pod["metadata"]["labels"].get(f"{KUEUE}/pod-group-name"), []).append((name, pod))
        return groups

    def reconcile(self):
        for group, pods in self.members().items():
            annotations = pods[0][1]["metadata"].get("annotations", {})
            if group and len(pods) == int(annotations[f"{KUEUE}/pod-group-total-count"]) and not getattr(self, "has_counted", False):
                self.has_counted = True
                self.objects[f"{WORKLOADS}/{group}"] = {"metadata": {"name": group, "uid": "workload"}}
                self.tell("ADDED", f"{WORKLOADS}/{group}")
            over = all(pod.get("status", {}).get("phase") in TERMINAL for _, pod in pods)
            if not group:
                over = "deletionTimestamp" in pods[0][1]["metadata"]
            elif any(pod["status"]["phase"] != "Succeeded" for _, pod in pods if over):
                over = over and annotations.get(f"{KUEUE}/retriable-in-group") == "false"
            if over:
                self.finalize(pods)

    def finalize(self, pods):
        for name, pod in pods:
            pod["metadata"].pop("finalizers", None)
            if "deletionTimestamp" in pod["metadata"]:
                super().delete(name)

    def delete(self, path):
        there = self.objects[path]
        if path.startswith(WORKLOADS):
            self.finalize(self.members().get(there["metadata"]["name"], []))
        if not there["metadata"].get("finalizers"):
            return super().delete(path)
        there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if there["spec"].get("nodeName"):
            there["status"] = {"phase": "Failed"}
        return self.tell("MODIFIED", path)

    def admit(self):
        with self.changed:
            for name, pod in self.pods():
                pod["spec"].pop("schedulingGates", None)
                self.tell("MODIFIED", name)
            self.schedule()

    def fail_pod(self, end):
        with self.changed:
            for name, pod in self.pods():
                if name.endswith(end):
                    ended = {"exitCode": 3, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}
                    pod["status"] = {"phase": "Failed", "containerStatuses": [{"name": "task", "state": {"terminated": ended}}]}
                    self.tell("MODIFIED", name)


@pytest.fixture
def make_cluster(scenario):
    clusters = []

    def make(**options):
        clusters.append(Kueue(**options))
        server = f"http://127.0.0.1:{clusters[-1].server.server_address[1]}"
        scenario.write("kubeconfig", json.dumps({
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "namespace": "team"}}],
            "clusters": [{"name": "lab", "cluster": {"server": server}}],
        }))
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.close()


def job(scenario, workers):
    scenario.home.mkdir(mode=0o700, exist_ok=True)
    (scenario.home / "config.yml").write_text("kubernetes: {queue: research, shim: false}\n")
    return scenario.job("true", "pytorch", workers=workers, head="build: {image: x}")


def gated(scenario, cluster, workers=1):
    run = begin(scenario, job(scenario, workers))
    wait_until("the pods", lambda: len(cluster.pods()) == workers + 1)
    return run


def test_why_says_that_kueue_holds_a_gang_back(scenario, make_cluster):
    cluster = make_cluster()
    run = gated(scenario, cluster)
    told = say(scenario, "why", run)
    assert "it has 2 pods: 2 held back by Kueue until it admits them" in told
    assert "turn" not in told
    (facts,) = json.loads(say(scenario, "why", run, "--json"))
    assert facts["cluster"]["gate"] == f"{KUEUE}/admission" and facts["cluster"]["turn"] is None
    say(scenario, "stop", run)


def test_a_gang_that_is_stopped_before_kueue_admits_it_leaves_nothing(scenario, make_cluster):
    cluster = make_cluster()
    run = gated(scenario, cluster)
    say(scenario, "stop", run)
    assert status(scenario, run)["status"] == "stopped"
    assert not cluster.pods() and not [name for name in cluster.objects if name.startswith(WORKLOADS)]


@pytest.mark.parametrize("may_delete", [True, False])
def test_a_gang_that_fails_under_kueue_ends(scenario, make_cluster, may_delete):
    cluster = make_cluster(may_delete=may_delete)
    run = gated(scenario, cluster)
    cluster.admit()
    cluster.fail_pod("worker-0")
    wait_until("its end", lambda: status(scenario, run)["status"] == "failed")
    assert not cluster.pods()


def test_a_single_task_is_a_single_pod_of_kueues(scenario, make_cluster):
    cluster = make_cluster(may_delete=False)
    run = gated(scenario, cluster, workers=0)
    ((_, pod),) = cluster.pods()
    assert pod["metadata"]["labels"][f"{KUEUE}/queue-name"] == "research"
    assert not [key for key in pod["metadata"]["labels"] if "group" in key]
    say(scenario, "stop", run)
    assert status(scenario, run)["status"] == "stopped" and not cluster.pods()
