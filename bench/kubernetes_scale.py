# SPDX-License-Identifier: Apache-2.0
"""The part of bench/kubernetes with a thousand pods: fifty gangs at once, on nodes that are simulated.

Ours makes its pods itself, in fifty runs that are submitted at once; the peer is the training operator, which makes as many of
fifty PyTorchJobs. What each asks of the API server is counted in the server's own log of its requests."""
import collections
import ctypes
import json
import os
import subprocess
import threading
import time
from typing import NamedTuple

GANGS, TASKS = 50, 20
PODS = GANGS * TASKS
OURS, PEER = "myelin run -d", "training operator"
OPERATOR = "system:serviceaccount:kubeflow:training-operator"
PR_SET_CHILD_SUBREAPER = 36

POLYAXONFILE = f"""\
version: 1
kind: experiment
backend: BACKEND
framework: pytorch
build: {{image: "myelin.test/small:1"}}
environment:
  node_selector: &where {{simulated: "yes"}}
  tolerations: &may [{{key: simulated, operator: Exists}}]
  annotations: &long {{myelin.test/runs-for: 10s}}
  replicas:
    n_workers: {TASKS - 1}
    default_worker: {{node_selector: *where, tolerations: *may, annotations: *long}}
run: {{cmd: "true"}}
"""


class Measured(NamedTuple):
    created: float  # seconds until all pods were there; None: not within the limit
    ended: float  # until all were over
    pods: int  # that there were
    calls: collections.Counter  # by (verb, resource)
    cpu: float
    mb: float  # the most at one time, of all processes together
    processes: int


# ---- what is read of processes

def owned_mb(pid):
    """Memory in MB; what several processes share is divided among them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
    except (OSError, ValueError):
        return 0  # it is gone


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processes(is_wanted):
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and is_wanted(entry):
                found.append(entry)
        except OSError:
            pass
    return found


class Memory:
    """Looks at some processes again and again, until it is closed."""

    def __init__(self, find):
        self.find, self.mb, self.most, self.is_over = find, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.is_over.wait(2):
            found = self.find()
            self.mb, self.most = max(self.mb, sum(map(owned_mb, found))), max(self.most, len(found))

    def close(self):
        self.is_over.set()
        self.thread.join()


# ---- what the API server has noted

class Audit:
    """Its requests from now on."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "log", "audit")
        self.start = os.path.getsize(self.path)

    def calls(self, namespace, is_wanted):
        found = {}  # a watch has a line for its beginning and one for its end
        with open(self.path, "rb") as file:
            file.seek(self.start)
            for line in file:
                event = json.loads(line)
                what = event.get("objectRef", {})
                if what.get("namespace") == namespace and is_wanted(event):
                    resource = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
                    found[event["auditID"]] = (event["verb"], resource)
        return collections.Counter(found.values())


# ---- the contestants

class Scale:
    def __init__(self, bench, namespace, limit):
        self.bench, self.namespace, self.limit = bench, namespace, limit
        self.folder = os.environ["MYELIN_CLUSTER"]
        # Keepers come back to us, so that the kernel's own account of their processor time is complete.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def file_of(self, backend):
        path = os.path.join(self.bench.scratch, f"{backend}.yml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(POLYAXONFILE.replace("BACKEND", backend))
        return path

    def wait(self, start, is_reached):
        """Seconds until it is so; None: not within the limit."""
        moment = self.bench.pods.reach(start + self.limit - time.monotonic(), is_reached)
        return moment and moment - start

    def until_all_ended(self, start):
        seen = self.bench.pods.seen
        created = self.wait(start, lambda _: len(seen) >= PODS)
        pods = len(seen)
        # Ours are deleted as soon as their gang is over.
        ended = created and self.wait(start, lambda states: all(state in ("Succeeded", "Terminating") for state in states))
        return created, ended, pods

    def ours(self):
        exe, audit = os.path.realpath(self.bench.program), Audit(self.folder)
        memory = Memory(lambda: processes(lambda pid: os.readlink(f"/proc/{pid}/exe") == exe))
        self.bench.pods.seen.clear()
        before, start = os.times(), time.monotonic()
        command = [self.bench.program, "run", "-d", "--on", "kubernetes", "--namespace", self.namespace, self.file_of("native")]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(GANGS)]
        runs = [process.communicate()[0].strip() for process in started]
        if any(process.returncode for process in started):
            raise SystemExit(f"bench/kubernetes: not all of {GANGS} runs were started")
        ended = None
        try:
            created, ended, pods = self.until_all_ended(start)
        finally:  # a run goes on until its cluster says that it is over, and would outlive that
            if not ended:
                subprocess.run([self.bench.program, "kill", *runs], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.reap(start)
        memory.close()
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        calls = audit.calls(self.namespace, lambda event: event.get("userAgent", "").startswith("myelin/"))
        return Measured(created, ended, pods, calls, cpu, memory.mb, memory.most)

    def reap(self, start):
        """Until the last of our runs has left."""
        while processes(lambda pid: os.readlink(f"/proc/{pid}/exe") == os.path.realpath(self.bench.program)):
            if time.monotonic() > start + 2 * self.limit:
                raise SystemExit("bench/kubernetes: runs of ours do not end")
            try:
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.2)

    def peer(self, rendered):
        operator = processes(self.is_operator)
        if len(operator) != 1:
            raise SystemExit("bench/kubernetes: the training operator is not to be found")
        jobs = [self.numbered(rendered, number) for number in range(GANGS)]
        audit, memory = Audit(self.folder), Memory(lambda: operator)
        connection = self.bench.server.connect()
        self.bench.pods.seen.clear()
        before, start = cpu_of(operator[0]), time.monotonic()
        for job in jobs:
            self.bench.server.create(connection, job)
        created, ended, pods = self.until_all_ended(start)
        cpu = cpu_of(operator[0]) - before
        calls = audit.calls(self.namespace, lambda event: event.get("user", {}).get("username") == OPERATOR)
        memory.close()
        connection.close()
        self.bench.delete_all("pytorchjobs")
        return Measured(created, ended, pods, calls, cpu, memory.mb, memory.most)

    def is_operator(self, pid):
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
            return os.readlink(f"/proc/{pid}/exe") == "/manager" and self.bench.group in file.read()

    @staticmethod
    def numbered(rendered, number):
        """The job of `myelin render`, under a name of its own, with its pods."""
        job = json.loads(rendered.replace(json.loads(rendered)["items"][0]["metadata"]["name"], f"scale-{number}"))["items"][0]
        return job


# ---- what is printed

def print_row(name, measured):
    if measured.created is None:
        print(f"{PODS} pods  {name:<18} {measured.pods} of them were there after the limit", flush=True)
        return
    ended = f"over after {measured.ended:.1f} s" if measured.ended else "not over within the limit"
    logs = sum(n for (_, resource), n in measured.calls.items() if resource in ("pods/log", "pods/proxy"))
    print(f"{PODS} pods  {name:<18} all there after {measured.created:.1f} s, {ended}; processor time {measured.cpu:.2f} s, "
          f"at most {measured.mb:.0f} MB in {measured.processes} processes; {(measured.calls.total() - logs) / PODS:.2f} requests a task"
          + (f", and {logs / PODS:.2f} for logs that nobody has" if logs else ""), flush=True)
    for (verb, resource), n in sorted(measured.calls.items(), key=lambda item: -item[1])[:8]:
        print(f"      {n:>6} {verb} {resource}", flush=True)


def verdicts(ours, peer):
    """Pairs of: whether it is met; the sentence."""
    if ours.created is None or ours.ended is None:
        return [(False, f"{PODS} pods of {GANGS} gangs are not over within the limit")]
    if peer.created is None:
        return [(True, f"{PODS} pods are there after {ours.created:.1f} s; the training operator had made {peer.pods} by its limit")]
    asked = sum(n for (_, resource), n in ours.calls.items() if resource not in ("pods/log", "pods/proxy"))
    rows = (("the time until all pods are there", "s", ours.created, peer.created),
            ("requests a task, without logs", "", asked / PODS, peer.calls.total() / PODS))
    return [(mine <= theirs, f"{what}: {mine:.2f} {unit}".rstrip() + f", {mine / theirs:.2f} times that of the training operator; at most 1 is wanted")
            for what, unit, mine, theirs in rows]


def measure(bench, namespace, limit):
    scale = Scale(bench, namespace, limit)
    rendered = bench.render(scale.file_of("kubeflow"))
    ours = scale.ours()
    print_row(OURS, ours)
    bench.pods.wait(limit, lambda states: not states, "the end of our pods")
    peer = scale.peer(rendered)
    print_row(PEER, peer)
    bench.pods.wait(limit, lambda states: not states, "the end of the operator's pods")
    return verdicts(ours, peer)
