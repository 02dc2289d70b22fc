# SPDX-License-Identifier: Apache-2.0
"""A cluster of one process, for scenarios: an API server as far as runs need it, and a kubelet whose containers are
processes of this machine. What stands in a pod is what `myelin` puts there: the shim of its ConfigMap starts the command.

It does to runs what clusters do: refuses a right, cuts a stream, deletes a pod, rotates a log away.
"""
import base64
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

NAMESPACE = "team"
PATH = re.compile(r"^/(api/v1|apis/scheduling.x-k8s.io/v1alpha1)/namespaces/team/(?P<plural>configmaps|services|podgroups|pods)(/(?P<name>[^/:]+)(:7746/proxy(?P<behind>/.*))?(?P<log>/log)?)?$")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Pod:
    """One object of kind Pod, and the process that is its container."""

    def __init__(self, cluster, body):
        self.cluster, self.body = cluster, body
        self.name = body["metadata"]["name"]
        self.directory = cluster.directory / "pods" / self.name
        self.port = free_port()
        self.log = self.directory / "stdout"
        self.process = None
        self.over = {}  # what is said of a pod that the node ended
        self.stamps = []  # of the lines of its log, as a node keeps them

    def stamp(self, line):
        with self.cluster.changed:
            while len(self.stamps) <= line:
                self.stamps.append(f"{moment()[:-1]}.000000000Z ".encode())
            return self.stamps[line]

    def variables(self):
        """Those of its manifest."""
        return {variable["name"]: variable.get("value") for variable in self.body["spec"]["containers"][0]["env"]}

    def start(self):
        container = self.body["spec"]["containers"][0]
        for folder in ("logs", "spool", "outputs", "shim"):
            (self.directory / folder).mkdir(parents=True)
        environment = {"PATH": os.environ["PATH"], **self.cluster.environment}
        for variable in container["env"]:
            value = variable.get("value", "127.0.0.1").replace("$$", "$")
            environment[variable["name"]] = value.replace("/myelin/", f"{self.directory}/")
        environment |= {
            "MYELIN_SHIM_DIRECTORY": str(self.directory),
            "MYELIN_SHIM_PORT": str(self.port),
            "MYELIN_SHIM_MESSAGE": str(self.directory / "message"),
        }
        environment.pop("MYELIN_SHIM_WAIT", None)  # nobody resolves the names of a Service here
        environment.pop("MYELIN_SHIM_LEADER", None)
        environment |= self.cluster.given.get(self.body["metadata"]["labels"]["myelin/role"], {})
        command = [word.replace("$$", "$") for word in container["command"]]
        if command[0] == "/myelin/shim/shim":
            shim = self.directory / "shim" / "shim"
            shim.write_bytes(self.cluster.shim)
            shim.chmod(0o555)
            command[0] = str(shim)
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(command, env=environment, cwd=self.directory, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                            start_new_session=True)
        self.show({"running": {"startedAt": moment()}}, "Running")
        threading.Thread(target=self.wait, daemon=True).start()
        if deadline := self.body["spec"].get("activeDeadlineSeconds"):
            timer = threading.Timer(deadline, self.expire)
            timer.daemon = True
            timer.start()

    def expire(self):
        """As a kubelet does: the pod has failed from then on, while its containers get their time."""
        if self.process.poll() is not None:
            return
        self.over = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}
        self.show({"running": {"startedAt": moment()}}, "Failed")
        self.send(signal.SIGTERM)
        threading.Timer(self.body["spec"].get("terminationGracePeriodSeconds", 5), self.kill).start()

    def wait(self):
        code = self.process.wait()
        message = self.directory / "message"
        ended = {"exitCode": code if code >= 0 else 128 - code, "startedAt": moment(), "finishedAt": moment()}
        ended["reason"] = "Completed" if code == 0 else "Error"
        if message.exists():
            ended["message"] = message.read_text()
        self.show({"terminated": ended}, "Failed" if code or self.over else "Succeeded")
        if "deletionTimestamp" in self.body["metadata"]:
            self.cluster.remove("pods", self.name)

    def show(self, state, phase):
        with self.cluster.changed:
            self.body["status"] = {"phase": phase, "containerStatuses": [{"name": "task", "state": state, "restartCount": 0}], **self.over}
            if "deletionTimestamp" in self.body["metadata"] and "running" in state:
                return
            self.cluster.event("pods", "MODIFIED", self.body)

    def delete(self, grace):
        with self.cluster.changed:
            if "deletionTimestamp" not in self.body["metadata"]:
                self.body["metadata"]["deletionTimestamp"] = moment(grace)
                self.body["metadata"]["deletionGracePeriodSeconds"] = grace
                self.cluster.event("pods", "MODIFIED", self.body)
        if self.process.poll() is not None:
            self.cluster.remove("pods", self.name)
            return
        self.send(signal.SIGTERM if grace else signal.SIGKILL)
        threading.Timer(max(grace, 0.01), self.kill).start()

    def kill(self):
        if self.process.poll() is None:
            self.kill_now()

    def send(self, number):
        try:
            self.process.send_signal(number)
        except ProcessLookupError:
            pass

    def kill_now(self):
        """As the end of a container's process namespace: nobody in it is left."""
        self.send(signal.SIGKILL)
        needle = f"MYELIN_SHIM_DIRECTORY={self.directory}".encode()
        task = f"MYELIN_SPOOL={self.directory}".encode()
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    environ = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
                    if needle in environ or task in environ:
                        os.kill(int(entry), signal.SIGKILL)
                except (OSError, ProcessLookupError):
                    continue


def moment(later=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))


class Cluster:
    def __init__(self, directory, environment):
        self.directory, self.environment = pathlib.Path(directory), environment
        self.objects = {"configmaps": {}, "services": {}, "podgroups": {}, "pods": {}}
        self.pods = {}
        self.changed = threading.Condition(threading.RLock())
        self.events = []  # (plural, kind, object as it was)
        self.shim = b""
        self.given = {}  # variables by role, over those of the manifest
        self.late_s = {}  # by role, that a node needs until it starts the container
        self.refused = set()  # of "right" (to ask pods), "proxy", "log"; and what a shim is asked: "end"
        self.requests = []
        self.refusal = 403  # with which the proxy refuses
        self.cuts = []  # of the next streams, each after so many bytes
        self.pause_s = 0  # after each piece of a stream, of 64 KiB at most
        self.streams = set()  # connections of those that are open
        self.kept = None  # bytes of a log that its node has not rotated away; None: all
        self.log_takes = 0  # seconds, that a node needs for a log
        self.logs_open = self.most_logs = 0  # that are read at once
        handler = type("Handler", (Handler,), {"cluster": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kubeconfig(self):
        path = self.directory / "kubeconfig"
        server = f"http://127.0.0.1:{self.server.server_port}"
        path.write_text(
            json.dumps(
                {
                    "current-context": "x",
                    "contexts": [{"name": "x", "context": {"cluster": "x", "namespace": NAMESPACE}}],
                    "clusters": [{"name": "x", "cluster": {"server": server}}],
                }
            )
        )
        return path

    def event(self, plural, kind, body):
        with self.changed:
            body["metadata"]["resourceVersion"] = str(len(self.events) + 1)
            self.events.append((plural, kind, json.loads(json.dumps(body))))
            self.changed.notify_all()

    def create(self, plural, body):
        name = body["metadata"]["name"]
        with self.changed:
            if name in self.objects[plural]:
                return None
            body["metadata"]["uid"] = f"{plural}-{name}"
            self.objects[plural][name] = body
            for key, value in body.get("binaryData", {}).items():
                self.shim = base64.b64decode(value) if key.startswith("shim") else self.shim
            self.event(plural, "ADDED", body)
            if plural == "pods":
                self.pods[name] = Pod(self, body)
        if plural == "pods":
            late_s = self.late_s.get(body["metadata"]["labels"]["myelin/role"])
            if late_s:
                threading.Timer(late_s, self.pods[name].start).start()
            else:
                self.pods[name].start()
        return body

    def remove(self, plural, name):
        with self.changed:
            body = self.objects[plural].pop(name, None)
            if body:
                self.event(plural, "DELETED", body)

    def delete(self, plural, name, grace=None):
        if plural == "pods" and name in self.objects["pods"]:
            pod = self.pods[name]
            pod.delete(pod.body["spec"].get("terminationGracePeriodSeconds", 5) if grace is None else grace)
        elif plural == "configmaps":
            self.remove(plural, name)
            for owned in [*self.objects["pods"]]:
                self.delete("pods", owned)
            for other in ("services", "podgroups", "configmaps"):
                for owned in [*self.objects[other]]:
                    self.remove(other, owned)

    def pod(self, task):
        role, index = task.split(".")
        (name,) = (name for name in self.pods if name.endswith(f"-{role}-{index}"))
        return self.pods[name]

    def cut(self):
        """Ends every stream that is open."""
        for connection in [*self.streams]:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self):
        for pod in self.pods.values():
            if pod.process and pod.process.poll() is None:
                pod.kill_now()
                pod.process.wait()
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, kind="application/json"):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, status, reason, message):
        self.answer(status, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status})

    def handle_request(self):
        address = urllib.parse.urlsplit(self.path)
        match = PATH.match(urllib.parse.unquote(address.path))
        query = dict(urllib.parse.parse_qsl(address.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.cluster.requests.append(f"{self.command} {urllib.parse.unquote(self.path)}")
        if address.path.endswith("/selfsubjectaccessreviews"):
            self.answer(201, {"kind": "SelfSubjectAccessReview", "status": {"allowed": "right" not in self.cluster.refused}})
        elif not match:
            self.refuse(404, "NotFound", "no such path")
        elif match["behind"]:
            self.pass_on(match["name"], match["behind"], address.query, body)
        elif match["log"]:
            self.log(match["name"], query)
        else:
            self.object(match["plural"], match["name"], query, body)

    do_GET = do_POST = do_DELETE = handle_request

    def object(self, plural, name, query, body):
        cluster = self.cluster
        if self.command == "POST":
            made = cluster.create(plural, json.loads(body))
            if made:
                self.answer(201, made)
            else:
                self.refuse(409, "AlreadyExists", "it exists")
        elif self.command == "DELETE":
            options = json.loads(body or b"{}")
            cluster.delete(plural, name, options.get("gracePeriodSeconds"))
            self.answer(200, {"kind": "Status", "status": "Success"})
        elif name:
            found = cluster.objects[plural].get(name)
            self.answer(200, found) if found else self.refuse(404, "NotFound", "not there")
        elif query.get("watch"):
            self.watch(plural, query)
        else:
            with cluster.changed:
                items = [item for item in cluster.objects[plural].values() if self.selects(item, query)]
                self.answer(200, {"kind": "List", "metadata": {"resourceVersion": str(len(cluster.events))}, "items": items})

    @staticmethod
    def selects(item, query):
        field = query.get("fieldSelector", "")
        return not field.startswith("metadata.name=") or item["metadata"]["name"] == field.split("=")[1]

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def begin_chunks(self, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def watch(self, plural, query):
        at = int(query.get("resourceVersion") or 0)
        self.begin_chunks()
        try:
            while True:
                with self.cluster.changed:
                    while len(self.cluster.events) <= at:
                        self.cluster.changed.wait(1)
                    news, at = self.cluster.events[at:], len(self.cluster.events)
                for of, kind, body in news:
                    if of == plural and self.selects(body, query):
                        self.chunk(json.dumps({"type": kind, "object": body}).encode() + b"\n")
        except OSError:
            self.close_connection = True

    def log(self, name, query):
        pod = self.cluster.pods.get(name)
        if "log" in self.cluster.refused or not pod or name not in self.cluster.objects["pods"]:
            self.refuse(404, "NotFound", "no log")
            return
        line_number, stamped = 0, query.get("timestamps") == "true"
        at = 0 if self.cluster.kept is None else max(0, pod.log.stat().st_size - self.cluster.kept)
        with self.cluster.changed:
            self.cluster.logs_open += 1
            self.cluster.most_logs = max(self.cluster.most_logs, self.cluster.logs_open)
        time.sleep(self.cluster.log_takes)
        self.begin_chunks("text/plain")
        try:
            while True:
                over = pod.process.poll() is not None
                data = pod.log.read_bytes()
                end = len(data) if over else data.rfind(b"\n") + 1
                for line in data[at:end].splitlines(keepends=True):
                    self.chunk((pod.stamp(line_number) if stamped else b"") + line)
                    line_number += 1
                at = max(at, end)
                if over or query.get("follow") != "true":
                    break
                time.sleep(0.05)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            with self.cluster.changed:
                self.cluster.logs_open -= 1

    def pass_on(self, name, behind, query, body):
        """The proxy of an API server: to the port of the pod, and back as it comes."""
        cluster, pod = self.cluster, self.cluster.pods.get(name)
        if "proxy" in cluster.refused:
            self.refuse(cluster.refusal, "Forbidden", f'pods "{name}" is forbidden: User "x" cannot create resource "pods/proxy"')
            return
        if not pod or name not in cluster.objects["pods"]:
            self.refuse(404, "NotFound", "no such pod")
            return
        if behind.strip("/") in cluster.refused:
            self.refuse(503, "ServiceUnavailable", "error trying to reach service: it is said")
            return
        upstream = http.client.HTTPConnection("127.0.0.1", pod.port)
        try:
            upstream.request("POST", behind + (f"?{query}" if query else ""), body, {"Myelin-Key": self.headers.get("Myelin-Key", "")})
            got = upstream.getresponse()
        except (OSError, http.client.HTTPException) as trouble:
            self.refuse(503, "ServiceUnavailable", f"error trying to reach service: {trouble}")
            return
        if behind != "/stream" or got.status != 200:
            text = got.read()
            self.send_response(got.status)
            if got.status != 204:
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text if got.status != 204 else b"")
            return
        self.begin_chunks("application/octet-stream")
        left = cluster.cuts.pop(0) if cluster.cuts else None
        cluster.streams.add(self.connection)
        try:
            while data := got.read1(65536):
                if left is not None and len(data) >= left:
                    if left:
                        self.chunk(data[:left])
                    self.connection.shutdown(socket.SHUT_RDWR)
                    break
                left = left - len(data) if left is not None else None
                self.chunk(data)
                time.sleep(cluster.pause_s)
            else:
                self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            cluster.streams.discard(self.connection)
            upstream.close()
            self.close_connection = True
