# SPDX-License-Identifier: Apache-2.0
"""Puts runs into MLflow's own store in SQLite and asks it for them: what bench/search starts, with MLflow's Python.

    search_peer.py DIRECTORY SECONDS REPEAT SIZE...

Reads runs from standard input, as search_fill dumps them, and puts them in by MLflow's client: a call that makes the run,
one for all of its params and metrics, one that ends it. At each SIZE, and where SECONDS are over, the queries are asked. Prints
a JSON object for each size: {"runs", "seconds", "bytes", "queries": {name: {"wall": ms, "cpu": ms, "found": [runs]}}}."""
import json
import logging
import os
import statistics
import sys
import time

PAGE = 50

# The same as those of bench/search: the least and greatest values are half and twice the last one. MLflow has no
# condition with alternatives of a param.
QUERIES = {
    "the newest": ("", ["attributes.start_time DESC"]),
    "one value": ("params.p0 = '0.3'", ["attributes.start_time DESC"]),
    "few, sorted by a metric": ("metrics.m0 < 0.001", ["metrics.m0 ASC"]),
    "half, sorted by a metric": ("metrics.m1 < 0.5", ["metrics.m1 DESC"]),
    "five conditions": (
        "attributes.status = 'FINISHED' AND params.p1 = '0.1' AND params.p3 != 'adam' AND metrics.m2 >= 0.2 "
        "AND metrics.m2 <= 0.8 AND metrics.m3 >= 0.25", ["metrics.m2 ASC"]),
    "a pattern, sorted by text": ("params.p3 LIKE '%d%'", ["params.p7 ASC", "metrics.m5 DESC"]),
}  # fmt: skip


def put(client, experiment, run):
    from mlflow.entities import Metric, Param

    start = int(run["created_at"] * 1000)
    made = client.create_run(experiment, start_time=start, tags={"run": str(run["run"])}, run_name="search").info.run_id
    params = [Param(name[7:], str(value)) for name, value in run.items() if name.startswith("params.")]
    metrics = [Metric(name[8:], value, start, 0) for name, value in run.items() if name.startswith("metrics.")]
    client.log_batch(made, metrics=metrics, params=params)
    client.set_terminated(made, {"succeeded": "FINISHED"}.get(run["status"], "FAILED"), end_time=start + 1000)


def ask(client, experiment, query, order, repeat):
    walls, cpus, found = [], [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        found = client.search_runs([experiment], query, max_results=PAGE, order_by=order)
        walls.append((time.perf_counter() - wall) * 1e3)
        cpus.append((time.process_time() - cpu) * 1e3)
    return {"wall": statistics.median(walls), "cpu": statistics.median(cpus),
            "found": [int(run.data.tags["run"]) for run in found]}


def main():
    directory, seconds, repeat, sizes = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), [int(n) for n in sys.argv[4:]]
    logging.disable(logging.INFO)
    os.chdir(directory)
    from mlflow.tracking import MlflowClient

    file = os.path.join(directory, "mlflow.db")
    client = MlflowClient("sqlite:///" + file)
    experiment = client.create_experiment("bench")
    begun, spent, done = time.perf_counter(), 0.0, 0
    for line in sys.stdin:
        put(client, experiment, json.loads(line))
        done += 1
        spent += time.perf_counter() - begun
        if done in sizes or spent > seconds:
            queries = {name: ask(client, experiment, query, order, repeat) for name, (query, order) in QUERIES.items()}
            print(json.dumps({"runs": done, "seconds": spent, "bytes": os.path.getsize(file), "queries": queries}), flush=True)
        if spent > seconds or done == sizes[-1]:
            break
        begun = time.perf_counter()


if __name__ == "__main__":
    main()
