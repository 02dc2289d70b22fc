# SPDX-License-Identifier: Apache-2.0
"""Synchronous training with TensorFlow 2's MultiWorkerMirroredStrategy.

Nothing in here needs myelin: TF_CONFIG is in the environment of every task, and the strategy reads
it from there. Every task computes the gradient over a batch of its own share of the data, and all
of them make the same step. The chief, or worker 0 where there is no chief, says how it goes and
keeps the weights of each epoch below the outputs of the run. Where the package `myelin` is installed, metrics
and the model are logged.

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

BATCH = 24  # of each task


def make_spirals(n, seed):
    """n points of two spirals that wind around each other, and which of the two each belongs to."""
    random = np.random.default_rng(seed)
    labels = np.arange(n, dtype=np.int32) % 2
    turn = random.random(n)
    angle = 2 * math.pi * turn + math.pi * labels
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1)
    return np.float32(2 * points + random.normal(scale=0.05, size=(n, 2))), labels


class Network(tf.Module):
    """Dense layers with all their weights in one vector, and Adam to train it."""

    SIZES = (2, 32, 32, 2)

    def __init__(self, seed):
        super().__init__()
        random = np.random.default_rng(seed)
        parts = []
        for n_in, n_out in zip(self.SIZES, self.SIZES[1:]):
            parts.append(random.normal(scale=1 / math.sqrt(n_in), size=n_in * n_out))
            parts.append(np.zeros(n_out))
        self.weights = tf.Variable(np.float32(np.concatenate(parts)))
        self.mean = tf.Variable(tf.zeros_like(self.weights))
        self.square = tf.Variable(tf.zeros_like(self.weights))
        self.steps = tf.Variable(0.0)

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

    def gradient(self, points, labels):
        with tf.GradientTape() as tape:
            loss = cross_entropy(self(points), labels)
        return tf.convert_to_tensor(tape.gradient(loss, self.weights))

    def learn(self, gradient, lr):
        """One step of Adam."""
        self.steps.assign_add(1.0)
        self.mean.assign_add(0.1 * (gradient - self.mean))
        self.square.assign_add(0.001 * (gradient**2 - self.square))
        rate = lr * tf.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        self.weights.assign_sub(rate * self.mean / (tf.sqrt(self.square) + 1e-7))


def cross_entropy(scores, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return tf.reduce_mean(losses)


def evaluate(network, points, labels):
    scores = network(points)
    right = tf.argmax(scores, axis=1, output_type=tf.int32) == labels
    return float(cross_entropy(scores, labels)), float(tf.reduce_mean(tf.cast(right, tf.float32)))


def weights_are_equal(strategy, network):
    """Whether all tasks have the same weights, to the last bit."""

    @tf.function
    def weights_of_all():
        mine = strategy.run(lambda: tf.expand_dims(network.weights, 0))
        return strategy.gather(mine, axis=0)

    weights = weights_of_all()
    return bool(tf.reduce_all(weights == weights[0]))


def keep(outputs, name, network):
    """Writes the weights to a file, and gives its path."""
    path = os.path.join(outputs, name)
    tf.io.gfile.makedirs(os.path.dirname(path))
    tf.io.write_file(path, tf.io.serialize_tensor(network.weights))
    return path


def train(strategy, epochs, lr, outputs, say):
    points, labels = make_spirals(4000, seed=1)
    unseen = make_spirals(1000, seed=2)
    with strategy.scope():
        network = Network(seed=3)

    def share(context):
        """The endless batches of one task."""
        data = tf.data.Dataset.from_tensor_slices((points, labels))
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
        return data.shuffle(len(points), seed=4).repeat().batch(BATCH)

    @tf.function
    def step(batch):
        gradients = strategy.run(network.gradient, args=batch)
        network.learn(strategy.reduce(tf.distribute.ReduceOp.MEAN, gradients, axis=None), lr)

    batches = iter(strategy.distribute_datasets_from_function(share))
    loss, accuracy = evaluate(network, *unseen)
    say(f"epoch {0:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
    if myelin:
        myelin.init().log(loss=loss, accuracy=accuracy, step=0)
    for epoch in range(1, epochs + 1):
        for _ in range(len(points) // (BATCH * strategy.num_replicas_in_sync)):
            step(next(batches))
        loss, accuracy = evaluate(network, *unseen)
        say(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)
        if outputs:
            keep(outputs, f"checkpoints/epoch-{epoch}", network)
    return network, loss, accuracy


def main():
    parser = argparse.ArgumentParser(description="MultiWorkerMirroredStrategy")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02, help="the learning rate")
    options = parser.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    me = strategy.cluster_resolver
    is_chief = me.task_type == "chief" or (
        me.task_id == 0 and "chief" not in me.cluster_spec().jobs
    )

    def say(text):
        if is_chief:
            print(text, flush=True)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH") if is_chief else None
    network, loss, accuracy = train(strategy, options.epochs, options.lr, outputs, say)
    equal = weights_are_equal(strategy, network)
    name = f"{me.task_type} {me.task_id}, one of {strategy.num_replicas_in_sync}"
    print(f"{name}: weights {'equal' if equal else 'DIFFER'}", flush=True)

    if outputs:
        path = keep(outputs, "weights", network)
        if myelin:
            metadata = {"step": options.epochs, "loss": loss, "accuracy": accuracy}
            myelin.init().log_artifact(path, name="spirals", type="model", metadata=metadata)
    say(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
