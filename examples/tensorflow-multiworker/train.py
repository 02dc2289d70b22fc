# SPDX-License-Identifier: Apache-2.0
"""Synchronous training with TensorFlow 2's MultiWorkerMirroredStrategy.

Nothing in here knows myelin: TF_CONFIG is in the environment of every task, and the strategy reads
it from there. Every task computes the gradients of its share of each batch, and all of them make
the same step. The chief, or worker 0 where there is no chief, says how it goes and keeps the model.
"""
import argparse
import hashlib
import math
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before the import: its own log is long

import tensorflow as tf

BATCH = 64  # over all tasks


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

    def __init__(self, seed, sizes=(2, 32, 32, 2)):
        super().__init__()
        random = tf.random.Generator.from_seed(seed)
        self.layers = []
        for n_in, n_out in zip(sizes, sizes[1:]):
            weights = random.normal([n_in, n_out], stddev=1 / math.sqrt(n_in))
            self.layers.append((variable(weights), variable(tf.zeros([n_out]))))
        self.means = [variable(tf.zeros_like(v)) for v in self.parameters()]
        self.squares = [variable(tf.zeros_like(v)) for v in self.parameters()]
        self.steps = variable(0.0)

    def parameters(self):
        return [v for layer in self.layers for v in layer]

    def __call__(self, points):
        for weights, bias in self.layers[:-1]:
            points = tf.tanh(points @ weights + bias)
        weights, bias = self.layers[-1]
        return points @ weights + bias
