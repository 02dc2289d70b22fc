# SPDX-License-Identifier: Apache-2.0
"""The part of bench/track in Python: what a call of the package costs a training, with its extension and
without, beside tensorboardX, MLflow (to its own server, over HTTP on the loopback), Aim and W&B offline.

Each is timed in a process of its own, after a tenth as many calls that are not counted; of several
runs the shortest counts. A peer that takes longer than the limit is ended, and one that cannot be
installed is named and left out."""
import glob
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from peers import INSTALL_LIMIT_S, PYTHON, install, quiet

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
GOAL_NS = {1: 250, 5: 600}
RATIO_GOAL = 100

# name: (what is installed, calls that are timed)
PEERS = {
    "tensorboardX": ("tensorboardX==2.6.5", 20000),
    "Aim": ("aim==3.29.1", 5000),
    "W&B offline": ("wandb==0.31.0", 5000),
    "MLflow log_batch": ("mlflow", 5000),
    "MLflow log_metric": ("mlflow", 100),
}
OURS = (("myelin", {}, 300000), ("myelin, Python only", {"MYELIN_PURE_PYTHON": "1"}, 50000))


# ---- environments

def build_package(scratch):
    ok, said = quiet([PYTHON, "setup.py", "-q", "build", "--build-base", os.path.join(scratch, "base"), "--build-lib",
                      os.path.join(scratch, "lib")], INSTALL_LIMIT_S, cwd=os.path.join(ROOT, "sdk", "python"))
    if not ok or not glob.glob(os.path.join(scratch, "lib", "myelin", "_native*.so")):
        sys.exit(f"the package cannot be built:\n{said[-2000:]}")
    return os.path.join(scratch, "lib")


class Server:
    """MLflow's own server, as its manual starts it, on a free port of the loopback."""

    def __init__(self, python, scratch):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        folder = tempfile.mkdtemp(dir=scratch)
        self.process = subprocess.Popen(
            [os.path.join(os.path.dirname(python), "mlflow"), "server", "--host", "127.0.0.1", "--port", str(self.port),
             "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", folder, "--workers", "1"],
            cwd=folder, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, PATH=os.path.dirname(python) + ":" + os.environ["PATH"]))

    def wait(self, limit):
        until = time.monotonic() + limit
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(0.2)
        return False

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


# ---- measuring

def measure(python, name, metrics, calls, environment, options):
    """The shortest wall and processor time of a call, in ns; a sentence where there is none."""
    best = None
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory(prefix="myelin-bench.") as directory:
            ok, said = quiet([python, os.path.join(HERE, "track_peer.py"), name, str(metrics), str(calls), directory],
                             options.limit, cwd=directory, env=dict(os.environ, **environment))
        if not ok:
            return best or said.strip().splitlines()[-1]
        found = json.loads(next(line for line in said.splitlines() if line.startswith('{"wall"')))
        each = [found[kind] / calls * 1e9 for kind in ("wall", "cpu")]
        best = [min(pair) for pair in zip(best, each)] if best else each
    return best


def shown(ns):
    return f"{ns:.0f} ns" if ns < 10000 else f"{ns / 1000:.1f} us" if ns < 1e7 else f"{ns / 1e6:.1f} ms"


def row(label, found, ours):
    cells = [label]
    for metrics in GOAL_NS:
        result = found[metrics]
        if isinstance(result, str):
            cells += [result[:24], "", ""]
            continue
        ratio = min(theirs / mine for theirs, mine in zip(result, ours[metrics])) if ours else 1
        cells += [shown(result[0]), shown(result[1]), f"{ratio:.0f}" if ours else ""]
    print("{:<22} {:>10} {:>10} {:>8}   {:>10} {:>10} {:>8}".format(*cells), flush=True)


def table(options, scratch):
    """Prints a row for each tracker; returns {label: {metrics: (wall, cpu)}}."""
    results = {}
    library = build_package(scratch)
    print("{:<22} {:>30}   {:>30}".format("a call with", "one metric", "five metrics"))
    print("{:<22} {:>10} {:>10} {:>8}   {:>10} {:>10} {:>8}".format("", *("clock", "cpu", "ratio") * 2))
    for label, environment, calls in OURS:
        environment = dict(environment, PYTHONPATH=library)
        results[label] = {metrics: measure(PYTHON, "myelin", metrics, calls, environment, options) for metrics in GOAL_NS}
        for result in results[label].values():
            if isinstance(result, str):
                sys.exit(f"{label}: {result}")
        row(label, results[label], results["myelin"] if label != "myelin" else None)
    for name in options.peers:
        what, calls = PEERS[name]
        python = install(what)
        if not python:
            continue
        server = Server(python, scratch) if what == "mlflow" else None
        try:
            if server and not server.wait(options.limit):
                print(f"{name}: its server did not start")
                continue
            environment = {"TRACK_SERVER": server.address} if server else {}
            results[name] = {metrics: measure(python, name, metrics, calls, environment, options) for metrics in GOAL_NS}
        finally:
            if server:
                server.stop()
        row(name, results[name], results["myelin"])
    return results


def goals(results):
    """[(whether it was met, sentence)]"""
    lines = []
    for metrics, goal in GOAL_NS.items():
        ns = min(results["myelin"][metrics])
        lines.append((ns <= goal, f"{ns:.0f} ns for a call with {metrics} metric{'s' * (metrics > 1)}; "
                                  f"at most {goal} are wanted"))
    theirs = {name: result[1] for name, result in results.items()
              if not name.startswith("myelin") and not isinstance(result[1], str)}
    if theirs:
        fastest = min(theirs, key=lambda name: min(theirs[name]))
        ratio = min(t / o for t, o in zip(theirs[fastest], results["myelin"][1]))
        lines.append((ratio >= RATIO_GOAL, f"{ratio:.0f} times as fast as {fastest}, the fastest of the peers; "
                                           f"at least {RATIO_GOAL} are wanted"))
    return lines


def run(options):
    """Prints the table; returns [(whether it was met, sentence)] of the goals."""
    subprocess.run(["sh", os.path.join(ROOT, "tools", "setup"), "packages", "build", "test", "bench"], check=True)
    with tempfile.TemporaryDirectory(prefix="myelin-bench.") as scratch:
        return goals(table(options, scratch))
