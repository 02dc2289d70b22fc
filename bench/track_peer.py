# SPDX-License-Identifier: Apache-2.0
"""Times one tracker's call that logs a metric: what bench/track starts, with the Python that has it.

    track_peer.py NAME METRICS CALLS DIRECTORY

Prints {"wall": seconds, "cpu": seconds} for all calls: this process's own, with its threads."""
import json
import os
import resource
import sys
import time

NAMES = ("loss", "accuracy", "lr", "grad_norm", "throughput")


def myelin(directory, metrics):
    os.environ["MYELIN_SPOOL"] = directory
    os.environ["MYELIN_RUN_ID"] = "1"
    import myelin

    run, x = myelin.init(), 0.25

    # As users write it, keywords and all: a loop in each case.
    def one(n):
        for i in range(n):
            run.log(loss=x, step=i)

    def five(n):
        for i in range(n):
            run.log(loss=x, accuracy=x, lr=x, grad_norm=x, throughput=x, step=i)

    return (one if metrics == 1 else five), lambda: check(run)


def check(run):
    assert run.dropped == 0, "%d points were dropped: %s" % (run.dropped, run.reason)
    run.finish()


def tensorboardx(directory, metrics):
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(directory)

    def log(n):
        for i in range(n):
            for name in NAMES[:metrics]:
                writer.add_scalar(name, 0.25, i)

    return log, writer.close


def mlflow_client(directory, metrics, batch):
    import mlflow
    from mlflow.entities import Metric

    mlflow.set_tracking_uri(os.environ["TRACK_SERVER"])
    client = mlflow.tracking.MlflowClient()
    run = client.create_run(client.create_experiment("bench-%d" % os.getpid())).info.run_id

    def one_by_one(n):
        for i in range(n):
            for name in NAMES[:metrics]:
                client.log_metric(run, name, 0.25, step=i)

    def batches(n):
        points = [Metric(name, 0.25, int(time.time() * 1000), i) for i in range(n) for name in NAMES[:metrics]]
        for at in range(0, len(points), 1000):
            client.log_batch(run, metrics=points[at:at + 1000])

    return (batches if batch else one_by_one), lambda: None


def aim(directory, metrics):
    from aim import Run

    run = Run(repo=directory, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)

    def log(n):
        for i in range(n):
            for name in NAMES[:metrics]:
                run.track(0.25, name=name, step=i)

    return log, run.close


def wandb(directory, metrics):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=directory)
    import wandb

    run = wandb.init(project="bench", settings=wandb.Settings(x_disable_stats=True))
    values = {name: 0.25 for name in NAMES[:metrics]}

    def log(n):
        for i in range(n):
            run.log(values, step=i)

    return log, run.finish


PEERS = {
    "myelin": myelin,
    "tensorboardX": tensorboardx,
    "MLflow log_metric": lambda directory, metrics: mlflow_client(directory, metrics, False),
    "MLflow log_batch": lambda directory, metrics: mlflow_client(directory, metrics, True),
    "Aim": aim,
    "W&B offline": wandb,
}


def main():
    name, metrics, calls, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    log, close = PEERS[name](directory, metrics)
    log(max(1, calls // 10))  # what only the first calls cost: imports, files, threads
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    log(calls)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("\n" + json.dumps({"wall": wall, "cpu": cpu}), flush=True)
    close()


if __name__ == "__main__":
    main()
