# SPDX-License-Identifier: Apache-2.0
"""Synchronous training with MXNet's distributed key-value store.

Nothing in here needs myelin: DMLC_ROLE and its fellows are in the environment of every task. In the
scheduler and in the servers `import mxnet` serves until the workers are done and does not return,
so what follows it is run by the workers alone. Works with MXNet 1.9.
"""
import argparse
import hashlib
import math
import os
import sys
import traceback

if os.environ.get("DMLC_ROLE") in ("scheduler", "server"):
    print(f"{os.environ['DMLC_ROLE']}: serving", flush=True)

import mxnet as mx
from mxnet import autograd, gluon, nd

try:
    import myelin  # pip install ./sdk/python: optional
except ImportError:
    myelin = None

BATCH = 16


def make_spirals(n, seed):
    """n points of two spirals that wind around each other, and which of the two each belongs to."""
    mx.random.seed(seed)
    labels = nd.arange(n) % 2
    turn = nd.random.uniform(shape=n)
    angle = 2 * math.pi * turn + math.pi * labels
    points = nd.stack(turn * nd.cos(angle), turn * nd.sin(angle), axis=1)
    return 2 * points + nd.random.normal(scale=0.05, shape=(n, 2)), labels


def make_model():
    model = gluon.nn.Sequential()
    model.add(
        gluon.nn.Dense(32, activation="tanh", in_units=2),
        gluon.nn.Dense(32, activation="tanh", in_units=32),
        gluon.nn.Dense(2, in_units=32),
    )
    model.initialize(mx.init.Xavier())
    return model


def evaluate(model, points, labels):
    scores = model(points)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()(scores, labels).mean()
    right = (scores.argmax(axis=1) == labels).mean()
    return loss.asscalar(), right.asscalar()


def digest(parameters):
    """A few characters that differ as soon as one bit of the weights does."""
    weights = b"".join(parameter.data().asnumpy().tobytes() for parameter in parameters)
    return hashlib.sha256(weights).hexdigest()[:16]


def train(kv, epochs, lr, say):
    points, labels = make_spirals(4000, seed=1)
    unseen = make_spirals(1000, seed=2)
    mx.random.seed(kv.rank)  # the servers start every worker with the weights of worker 0
    model = make_model()
    parameters = list(model.collect_params().values())
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    # The optimizer works on the servers: a push adds a gradient there, and when those of all
    # workers have come, a pull gets the new weights.
    scale = 1 / (BATCH * kv.num_workers)
    kv.set_optimizer(mx.optimizer.Adam(learning_rate=lr, rescale_grad=scale))
    for key, parameter in enumerate(parameters):
        kv.init(key, parameter.data())
        kv.pull(key, out=parameter.data())

    loss, accuracy = evaluate(model, *unseen)
    say(f"epoch {0:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
    if myelin:
        myelin.init().log(loss=loss, accuracy=accuracy, step=0)
    for epoch in range(1, epochs + 1):
        order = nd.random.shuffle(nd.arange(len(points) // kv.num_workers)) * kv.num_workers
        mine = order + kv.rank  # this worker's share of the points
        for start in range(0, len(mine) - BATCH + 1, BATCH):
            batch = mine[start : start + BATCH]
            with autograd.record():
                loss = loss_of(model(points.take(batch)), labels.take(batch))
            loss.backward()
            for key, parameter in enumerate(parameters):
                kv.push(key, parameter.grad(), priority=-key)
                kv.pull(key, out=parameter.data(), priority=-key)
        loss, accuracy = evaluate(model, *unseen)
        say(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)
    return model, parameters, loss, accuracy


def end_at_once(kind, error, where):
    """Ends the task that has raised. Otherwise MXNet would wait, before the process exits, for the
    other workers, and they for this one: nobody would learn of the error."""
    traceback.print_exception(kind, error, where)
    os._exit(1)


def main():
    parser = argparse.ArgumentParser(description="synchronous training with a key-value store")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02, help="the learning rate")
    options = parser.parse_args()

    sys.excepthook = end_at_once
    kv = mx.kv.create("dist_sync")

    def say(text):
        if kv.rank == 0:  # given by the scheduler, in the order in which workers arrive
            print(text, flush=True)

    model, parameters, loss, accuracy = train(kv, options.epochs, options.lr, say)
    print(f"rank {kv.rank} of {kv.num_workers}: weights {digest(parameters)}", flush=True)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
    if kv.rank == 0 and outputs:
        model.save_parameters(os.path.join(outputs, "model.params"))
    say(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
