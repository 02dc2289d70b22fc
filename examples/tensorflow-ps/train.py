# SPDX-License-Identifier: Apache-2.0
"""Asynchronous training with TensorFlow 2's ParameterServerStrategy.

Nothing in here knows myelin: TF_CONFIG is in the environment of every task. The parameter servers
hold the variables and the workers compute; both only serve, for ever. The chief hands out steps to
whichever worker is free. When it is done it exits, and the other tasks are stopped.
"""
import argparse
import math
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the import: its own log is long

import tensorflow as tf

BATCH = 32


def make_spirals(n, seed):
    """n points of two spirals that wind around each other, and which of the two each belongs to."""
    random = tf.random.Generator.from_seed(seed)
    labels = tf.range(n) % 2
    turn = random.uniform([n])
    angle = 2 * math.pi * turn + math.pi * tf.cast(labels, tf.float32)
    points = tf.stack([turn * tf.cos(angle), turn * tf.sin(angle)], axis=1)
    return 2 * points + random.normal([n, 2], stddev=0.05), labels


class Network(tf.Module):
    """Three dense layers, and Adam to train them."""

    def __init__(self, sizes=(2, 32, 32, 2)):
        super().__init__()
        random = tf.random.Generator.from_seed(3)
        self.layers = []
        for n_in, n_out in zip(sizes, sizes[1:]):
            weights = random.normal([n_in, n_out], stddev=1 / math.sqrt(n_in))
            self.layers.append((tf.Variable(weights), tf.Variable(tf.zeros([n_out]))))
        self.means = [tf.Variable(tf.zeros_like(v)) for layer in self.layers for v in layer]
        self.squares = [tf.Variable(tf.zeros_like(v)) for layer in self.layers for v in layer]
        self.steps = tf.Variable(0.0)

    def parameters(self):
        return [variable for layer in self.layers for variable in layer]

    def __call__(self, points):
        for weights, bias in self.layers[:-1]:
            points = tf.tanh(points @ weights + bias)
        weights, bias = self.layers[-1]
        return points @ weights + bias

    def learn(self, gradients, lr):
        """One step of Adam. The variables live on the parameter servers, so this goes there."""
        t = self.steps.assign_add(1.0)
        rate = lr * tf.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        for variable, mean, square, gradient in zip(
            self.parameters(), self.means, self.squares, gradients
        ):
            mean.assign_add(0.1 * (gradient - mean))
            square.assign_add(0.001 * (gradient**2 - square))
            variable.assign_sub(rate * mean / (tf.sqrt(square) + 1e-7))


def loss_of(scores, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
    return tf.reduce_mean(losses)


def serve(resolver):
    """What workers and parameter servers do: wait for work until they are stopped."""
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    )
    print(f"{resolver.task_type} {resolver.task_id} serves at {server.target}", flush=True)
    server.join()


def coordinate(resolver, epochs, lr):
    """What the chief does."""
    n_workers = resolver.cluster_spec().num_tasks("worker")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    points, labels = make_spirals(4000, seed=1)
    unseen_points, unseen_labels = make_spirals(1000, seed=2)
    with strategy.scope():
        network = Network()

    def batches():
        """The data of one worker: all points, in an order of its own, and the number of the batch."""
        data = tf.data.Dataset.from_tensor_slices((points, labels))
        return data.shuffle(len(points)).repeat().batch(BATCH).enumerate()

    @tf.function
    def step(iterator):
        def compute(number, batch):
            some_points, some_labels = batch
            with tf.GradientTape() as tape:
                loss = loss_of(network(some_points), some_labels)
            network.learn(tape.gradient(loss, network.parameters()), lr)
            if number % 100 == 0:  # printed by the worker that makes this step
                tf.print("my batch", number, " loss", loss, output_stream=sys.stdout)

        strategy.run(compute, args=next(iterator))

    def evaluate(epoch):
        scores = network(unseen_points)
        loss = float(loss_of(scores, unseen_labels))
        right = tf.argmax(scores, axis=1, output_type=tf.int32) == unseen_labels
        accuracy = float(tf.reduce_mean(tf.cast(right, tf.float32)))
        print(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
        return loss, accuracy

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    loss, accuracy = evaluate(0)
    for epoch in range(1, epochs + 1):
        for _ in range(len(points) // BATCH):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()  # all steps are done; raises what a step raised
        loss, accuracy = evaluate(epoch)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
    if outputs:
        tf.train.Checkpoint(network=network).write(os.path.join(outputs, "model"))
    steps = int(network.steps)
    print(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}, {steps} steps by {n_workers} workers")


def main():
    parser = argparse.ArgumentParser(description="asynchronous training with parameter servers")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01, help="the learning rate")
    options = parser.parse_args()

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        coordinate(resolver, options.epochs, options.lr)


if __name__ == "__main__":
    main()
