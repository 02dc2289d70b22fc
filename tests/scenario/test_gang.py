# SPDX-License-Identifier: Apache-2.0
"""Gangs of pods take turns, on a cluster that one process plays: an API server as far as a turn needs it, and a scheduler
that has room for as many pods as a scenario says. Gangs on a real cluster are conformance tests."""
import http.server
import json
import threading
import time
import urllib.parse

import pytest

from conftest import kill_both
from shapes import assert_shape

LEASES = "/apis/coordination.k8s.io/v1/namespaces/team/leases"
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."


class Cluster:
    def __init__(self, room, has_leases=True):
        self.room, self.has_leases = room, has_leases
        self.objects, self.history, self.version = {}, [], 0
        self.changed = threading.Condition()
        self.most_open = 0  # gangs with open gates and without a place, at once
        self.is_over = False
        cluster = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def body(self):
                return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")

            def do_any(self):
                path, _, query = self.path.partition("?")
                query = dict(urllib.parse.parse_qsl(query))
                if cluster.is_over:  # connections of before serve nobody either
                    self.close_connection = True
                    return None
                if query.get("watch"):
                    return cluster.watch(self, path, query)
                if path.endswith("/log"):
                    return self.answer(200, {})
                return self.answer(*cluster.ask(self.command, path, query, self.body()))

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        self.server.shutdown()
        self.server.server_close()

    # -- the API server

    def tell(self, kind, path):
        self.version += 1
        body = self.objects[path]
        body["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, kind, path, json.dumps(body)))
        self.changed.notify_all()

    def ask(self, method, path, query, body):
        failure = lambda code, reason: (code, {"kind": "Status", "code": code, "reason": reason, "message": f"{reason}: {path}"})
        if path.endswith("/selfsubjectaccessreviews"):  # nothing runs in these pods that could be asked for anything
            return 201, {"status": {"allowed": False}}
        with self.changed:
            if "/leases" in path and not self.has_leases:
                return failure(403, "Forbidden")
            if method == "POST":
                full = f"{path}/{body['metadata']['name']}"
                if full in self.objects:
                    return failure(409, "AlreadyExists")
                body["metadata"]["uid"] = f"u{self.version}"
                self.objects[full] = body
                self.tell("ADDED", full)
                return 201, body
            if method == "GET" and path.rsplit("/", 1)[-1] in ("pods", "configmaps", "leases"):
                items = [item for name, item in self.objects.items() if self.selects(name, item, path, query)]
                return 200, {"metadata": {"resourceVersion": str(self.version)}, "items": items}
            if path not in self.objects:
                return failure(404, "NotFound")
            return self.change(method, path, body, failure)

    def change(self, method, path, body, failure):
        there = self.objects[path]
        if method == "PUT":
            if body["metadata"].get("resourceVersion") != there["metadata"]["resourceVersion"]:
                return failure(409, "Conflict")
            self.objects[path] = body | {"metadata": there["metadata"] | body["metadata"]}
            self.tell("MODIFIED", path)
        elif method == "PATCH":
            del there["spec"]["schedulingGates"]
            self.tell("MODIFIED", path)
            self.schedule()
        elif method == "DELETE":
            seen = body.get("preconditions", {}).get("resourceVersion")
            if seen and seen != there["metadata"]["resourceVersion"]:
                return failure(409, "Conflict")
            self.delete(path)
            self.schedule()
        return 200, self.objects.get(path, there)

    def delete(self, path):
        uid = self.objects[path]["metadata"]["uid"]
        self.tell("DELETED", path)
        del self.objects[path]
        for owned in [name for name, item in self.objects.items() if item["metadata"].get("ownerReferences", [{}])[0].get("uid") == uid]:
            self.delete(owned)

    @staticmethod
    def selects(name, item, path, query):
        wanted = dict(pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair)
        field = query.get("fieldSelector", "").removeprefix("metadata.name=")
        labels = item["metadata"].get("labels", {})
        return name.startswith(path + "/") and (not field or name.endswith("/" + field)) and wanted.items() <= labels.items()

    def watch(self, request, path, query):
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        seen = int(query["resourceVersion"])
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.is_over or self.version > seen, 1)
                news = [entry for entry in self.history if entry[0] > seen]
                seen = self.version
                if self.is_over:
                    return
            for _, kind, name, text in news:
                if self.selects(name, json.loads(text), path, query):
                    line = json.dumps({"type": kind, "object": json.loads(text)}) + "\n"
                    request.wfile.write(f"{len(line):x}\r\n{line}\r\n".encode())
                    request.wfile.flush()

    # -- the scheduler

    def pods(self):
        return [(name, item) for name, item in self.objects.items() if "/pods/" in name]

    def schedule(self):
        open_pods = [(name, pod) for name, pod in self.pods() if not pod["spec"].get("schedulingGates")]
        waiting = {pod["metadata"]["labels"]["myelin/run"] for _, pod in open_pods if not pod["spec"].get("nodeName")}
        self.most_open = max(self.most_open, len(waiting))
        free = self.room - sum(bool(pod["spec"].get("nodeName")) for _, pod in open_pods)
        for name, pod in open_pods:
            if pod["spec"].get("nodeName"):
                continue
            if free > 0:
                free -= 1
                pod["spec"]["nodeName"] = "node"
                pod["status"] = {"phase": "Pending"}
            else:
                pod["status"] = {
                    "phase": "Pending",
                    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_ROOM}],
                }
            self.tell("MODIFIED", name)

    def end_pods(self, of_run):
        """All containers of a run succeed."""
        with self.changed:
            for name, pod in self.pods():
                if pod["metadata"]["labels"]["myelin/run"] == of_run and pod["spec"].get("nodeName"):
                    ended = {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}
                    pod["status"] = {"phase": "Succeeded", "containerStatuses": [{"name": "task", "state": {"terminated": ended}}]}
                    self.tell("MODIFIED", name)

    def holder(self):
        return self.objects.get(f"{LEASES}/myelin-gang", {}).get("spec", {}).get("holderIdentity")


@pytest.fixture
def make_cluster(scenario):
    clusters = []

    def make(**options):
        clusters.append(Cluster(**options))
        scenario.write(
            "kubeconfig",
            f"""
            current-context: lab
            contexts: [{{name: lab, context: {{cluster: lab, namespace: team}}}}]
            clusters: [{{name: lab, cluster: {{server: 'http://127.0.0.1:{clusters[-1].server.server_address[1]}'}}}}]
            """,
        )
        return clusters[-1]

    yield make
    for cluster in clusters:
        cluster.close()


def gang(scenario, workers, patience=60):
    scenario.home.mkdir(mode=0o700, exist_ok=True)
    # What a gang lacks beyond its turn belongs to other scenarios.
    (scenario.home / "config.yml").write_text(f"kubernetes: {{placement_patience: {patience}}}\n")
    return scenario.job("true", "pytorch", workers=workers, head="build: {image: x}", name=f"gang{workers}.yml")


def begin(scenario, job):
    process = scenario.start("run", job, "-d", "--on", "kubernetes", "--kubeconfig", scenario.directory / "kubeconfig")
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    return int(out)


def say(scenario, *arguments):
    process = scenario.start(*arguments)
    out, err = process.communicate(timeout=30)
    return out.decode() + err.decode()


def status(scenario, run):
    return json.loads(say(scenario, "status", run, "--json"))


def wait_until(what, true, seconds=20):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


def test_one_gang_at_a_time_is_put_before_the_scheduler_and_why_says_which(scenario, make_cluster):
    cluster = make_cluster(room=3)
    first = begin(scenario, gang(scenario, workers=3))  # one more than there is room for
    wait_until("the first has its turn", lambda: NO_ROOM in say(scenario, "status", first))
    second = begin(scenario, gang(scenario, workers=1))
    wait_until("the second waits", lambda: f"it waits for its turn: run {first} of" in say(scenario, "status", second))
    told = say(scenario, "why", second)
    assert f"run {second} waits since" in told and "on cluster lab, namespace team" in told
    assert "it has 2 pods: 2 held back until their turn" in told
    assert f"run {first} of " in told and "has the turn to be placed, since" in told
    told = say(scenario, "why", first)
    assert "1 without a node" in told and NO_ROOM in told and "it has the turn to be placed" in told
    (facts,) = json.loads(say(scenario, "why", second, "--json"))
    assert_shape(facts, "Why runs wait")
    assert_shape(facts["cluster"], "What the cluster says")
    assert facts["answer"] == "waits" and facts["cluster"]["pods"]["gated"] == 2
    assert facts["cluster"]["turn"]["run"] == str(first) and not facts["cluster"]["turn"]["is_ours"]
    say(scenario, "stop", first)
    wait_until("the second is placed", lambda: status(scenario, second)["phase"] == "submitted")
    cluster.end_pods(cluster.pods()[0][1]["metadata"]["labels"]["myelin/run"])
    wait_until("the second succeeds", lambda: status(scenario, second)["status"] == "succeeded")
    assert cluster.most_open == 1 and cluster.holder() is None
    assert not cluster.pods()


def test_a_gang_without_room_gives_it_back_and_others_pass(scenario, make_cluster):
    cluster = make_cluster(room=2)
    large = begin(scenario, gang(scenario, workers=2, patience=1))
    wait_until("it gives its room back", lambda: "no room for 1 of 3 tasks after 1s" in say(scenario, "status", large))
    small = begin(scenario, gang(scenario, workers=1, patience=1))
    wait_until("the small one is placed", lambda: status(scenario, small)["phase"] == "submitted")
    with cluster.changed:
        cluster.room = 5
    wait_until("the large one is placed", lambda: status(scenario, large)["phase"] == "submitted")
    assert len(status(scenario, large)["attempts"]) == 1, "giving room back is no attempt"
    for run in (large, small):
        cluster.end_pods(status(scenario, run)["uuid"])
        wait_until("its success", lambda: status(scenario, run)["status"] == "succeeded")
    assert not cluster.pods() and cluster.holder() is None


@pytest.mark.parametrize("order", ["stop", "kill"])
def test_an_order_to_end_gives_the_turn_back(scenario, make_cluster, order):
    cluster = make_cluster(room=1)
    run = begin(scenario, gang(scenario, workers=1))
    wait_until("it has its turn", lambda: NO_ROOM in say(scenario, "status", run))
    assert cluster.holder() == status(scenario, run)["uuid"] + "-0"
    say(scenario, order, run)
    assert status(scenario, run)["status"] == "stopped"
    assert cluster.holder() is None and not cluster.pods()


def test_a_gang_that_may_not_have_the_lease_fails_with_the_right_that_is_missing(scenario, make_cluster):
    cluster = make_cluster(room=9, has_leases=False)
    ended = scenario.run(gang(scenario, workers=1), "--on", "kubernetes", "--kubeconfig", scenario.directory / "kubeconfig")
    assert ended.status == 125, ended
    assert "the gang cannot wait for its turn" in ended.err and "leases" in ended.err
    assert not cluster.pods()


def test_why_of_a_run_whose_cluster_is_away_says_what_was_told_last(scenario, make_cluster):
    cluster = make_cluster(room=1)
    run = begin(scenario, gang(scenario, workers=1))
    wait_until("it has its turn", lambda: NO_ROOM in say(scenario, "status", run))
    kubeconfig = scenario.directory / "kubeconfig"
    port = str(cluster.server.server_address[1])
    kubeconfig.write_text(kubeconfig.read_text().replace(port, "9"))  # nothing listens there; its supervisor knows the way
    told = say(scenario, "why", run)
    assert "1 of 2 tasks wait for room" in told and NO_ROOM in told
    assert "the cluster cannot be asked" in told
    say(scenario, "stop", run)


def test_a_kill_while_the_cluster_is_away_ends_and_says_what_it_leaves_behind(scenario, make_cluster):
    cluster = make_cluster(room=1)
    run = begin(scenario, gang(scenario, workers=1))
    wait_until("its pods are there", lambda: NO_ROOM in say(scenario, "status", run))
    cluster.close()
    ended = scenario.finish(scenario.start("kill", run), 60)
    assert ended.status == 0, ended
    assert "left behind: the cluster could not be reached" in ended.err
    assert "kubectl --namespace team delete configmaps myelin-" in ended.err
    status = json.loads(say(scenario, "status", run, "--json"))
    assert (status["status"], status["left_nothing"]) == ("stopped", False)
    assert "could not be reached" in status["left"]


def test_a_gang_that_nobody_watches_any_more_is_stopped_whole(scenario, make_cluster):
    cluster = make_cluster(room=1)
    run = begin(scenario, gang(scenario, workers=1))
    wait_until("it has its turn", lambda: NO_ROOM in say(scenario, "status", run))
    kill_both(scenario, run)
    ended = scenario.finish(scenario.start("stop", run), 60)
    assert ended.status == 0 and "left behind" not in ended.err, ended
    assert not [path for path in cluster.objects if "/pods/" in path or "/configmaps/" in path]
