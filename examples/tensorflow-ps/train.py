# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training with TensorFlow 2's ParameterServerStrategy.

Nothing in here needs myelin: TF_CONFIG is in the environment of every task. The parameter servers
hold the variables and the workers compute; both only serve, for ever. The chief hands out steps to
whichever worker is free. When it is done it exits, and the other tasks are stopped.

The network is written with plain variables, because `fit` of Keras 3 fails with this strategy.
"""
import argparse
import math
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the import: its own log is long

import numpy as np
import tensorflow as tf

try:
    import myelin  # pip install ./sdk/python: optional
except ImportError:
    myelin = None

BATCH = 32


def make_spirals(n, seed):
    """n points of two spirals that wind around each other, and which of the two each belongs to."""
    random = np.random.default_rng(seed)
    labels = np.arange(n, dtype=np.int32) % 2
    turn = random.random(n)
    angle = 2 * math.pi * turn + math.pi * labels
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1)
    return np.float32(2 * points + random.normal(scale=0.05, size=(n, 2))), labels


class Network(tf.Module):
    """Dense layers with all their weights in one vector, and Adagrad to train it."""

    SIZES = (2, 32, 32, 2)

    def __init__(self, seed):
        super().__init__()
        random = np.random.default_rng(seed)
        parts = []
        for n_in, n_out in zip(self.SIZES, self.SIZES[1:]):
            parts.append(random.normal(scale=1 / math.sqrt(n_in), size=n_in * n_out))
            parts.append(np.zeros(n_out))
        self.weights = tf.Variable(np.float32(np.concatenate(parts)))
        self.squares = tf.Variable(tf.zeros_like(self.weights))
        self.steps = tf.Variable(0)

    def __call__(self, points):
        weights, start = tf.convert_to_tensor(self.weights), 0
        for n_in, n_out in zip(self.SIZES, self.SIZES[1:]):
            if start > 0:
                points = tf.tanh(points)
            end = start + n_in * n_out
            points = points @ tf.reshape(weights[start:end], [n_in, n_out])
            points += weights[end : end + n_out]
            start = end + n_out
        return points

    def learn(self, points, labels, lr):
        """One step of Adagrad, and the loss before it. Workers change the variables at the same
        time; the sum of squares only grows, so no step gets large because of that."""
        with tf.GradientTape() as tape:
            loss = cross_entropy(self(points), labels)
        gradient = tf.convert_to_tensor(tape.gradient(loss, self.weights))
        self.steps.assign_add(1)
        self.squares.assign_add(gradient**2)
        self.weights.assign_sub(lr * gradient / (tf.sqrt(self.squares) + 1e-7))
        return loss


def cross_entropy(scores, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return tf.reduce_mean(losses)


def evaluate(network, points, labels):
    scores = network(points)
    right = tf.argmax(scores, axis=1, output_type=tf.int32) == labels
    return float(cross_entropy(scores, labels)), float(tf.reduce_mean(tf.cast(right, tf.float32)))


def serve(resolver):
    """What workers and parameter servers do: wait for work until they are stopped."""
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    )
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()


def coordinate(resolver, epochs, lr):
    """What the chief does."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    points, labels = make_spirals(4000, seed=1)
    unseen = make_spirals(1000, seed=2)
    with strategy.scope():
        network = Network(seed=3)
    print(f"the weights are kept by {network.weights.device}", flush=True)

    def batches():
        """The endless batches of one worker, numbered."""
        data = tf.data.Dataset.from_tensor_slices((points, labels))
        return data.shuffle(len(points)).repeat().batch(BATCH).enumerate()

    @tf.function
    def step(iterator):
        number, batch = next(iterator)
        loss = network.learn(*batch, lr)
        if number % 100 == 0:  # the worker that makes this step prints it
            tf.print("batch", number, "of this worker, loss", loss, output_stream=sys.stdout)

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    loss, accuracy = evaluate(network, *unseen)
    print(f"epoch {0:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
    if myelin:
        myelin.init().log(loss=loss, accuracy=accuracy, step=0)
    for epoch in range(1, epochs + 1):
        for _ in range(len(points) // BATCH):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()  # until all steps are done; raises what a step has raised
        loss, accuracy = evaluate(network, *unseen)
        print(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
    if outputs:
        tf.io.write_file(os.path.join(outputs, "weights"), tf.io.serialize_tensor(network.weights))
    steps = int(network.steps)
    print(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}, {steps} steps", flush=True)


def main():
    parser = argparse.ArgumentParser(description="ParameterServerStrategy")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.1, help="the learning rate")
    options = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        coordinate(resolver, options.epochs, options.lr)


if __name__ == "__main__":
    main()
