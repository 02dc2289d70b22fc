# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training in plain Python: the smallest program that is really distributed.

Every task runs this same file. The environment tells each one who it is, in the four variables
that PyTorch programs know as well:

    MASTER_ADDR, MASTER_PORT   where rank 0 listens
    RANK, WORLD_SIZE           which of how many this task is

A small neural network learns to tell two interleaved half-moons of points apart. Each step takes
one batch; every rank works out the gradient over its share of the batch, the shares are summed
over TCP, and every rank makes the same step. So the result does not depend on the number of
tasks, beyond rounding.

Without those variables it trains alone: python3 train.py
"""
import argparse
import array
import json
import math
import os
import random
import socket
import struct
import sys
import time

try:
    import myelin  # pip install ./sdk/python: optional
except ImportError:
    myelin = None

HIDDEN = 12
BATCH = 32


# ---------------------------------------------------------------------------- communication


class Gang:
    """All tasks of the run, joined by one TCP connection from each worker to the master."""

    MAGIC = b"quickstart"
    HELLO = struct.Struct("!10sII")  # magic, rank, world size
    LENGTH = struct.Struct("!I")

    def __init__(self, timeout):
        self.rank = int(os.environ.get("RANK", 0))
        self.size = int(os.environ.get("WORLD_SIZE", 1))
        self.timeout = timeout
        self.peers = {}  # rank -> connection; the master has all workers here, a worker the master
        if not 0 <= self.rank < self.size:
            raise SystemExit(f"RANK is {self.rank}, but WORLD_SIZE is {self.size}")
        if self.size > 1:
            try:
                address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            except KeyError as missing:
                raise SystemExit(f"WORLD_SIZE is {self.size}, but {missing.args[0]} is not set")
            if self.rank == 0:
                self._accept_workers(address)
            else:
                self._join_master(address)

    def _accept_workers(self, address):
        deadline = time.monotonic() + self.timeout
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(self.size)
            while len(self.peers) < self.size - 1:
                try:
                    listener.settimeout(max(0.001, deadline - time.monotonic()))
                    connection, _ = listener.accept()
                except socket.timeout:
                    missing = sorted(set(range(1, self.size)) - set(self.peers))
                    raise ConnectionError(f"ranks {missing} did not join in {self.timeout:g} s")
                rank = self._greet(connection)
                if rank is None:
                    connection.close()  # a stranger: this port is open to every process here
                else:
                    self.peers[rank] = self._configure(connection)

    def _greet(self, connection):
        """The rank of the worker at the other end, or None for anybody else."""
        try:
            connection.settimeout(5)
            hello = self._receive_exactly(connection, self.HELLO.size)
        except OSError:
            return None
        magic, rank, size = self.HELLO.unpack(hello)
        known = magic == self.MAGIC and size == self.size and 0 < rank < size
        return rank if known and rank not in self.peers else None

    def _join_master(self, address):
        """Tasks start together, so the master may not listen yet: try again, ever more slowly."""
        deadline = time.monotonic() + self.timeout
        pause = 0.01
        while True:
            try:
                connection = socket.create_connection(address, timeout=5)
                break
            except OSError as error:
                if time.monotonic() + pause > deadline:
                    raise ConnectionError(
                        f"no master at {address[0]}:{address[1]} after {self.timeout:g} s: {error}"
                    )
                time.sleep(pause)
                pause = min(1, pause * 2)
        self.peers[0] = self._configure(connection)
        connection.sendall(self.HELLO.pack(self.MAGIC, self.rank, self.size))

    def _configure(self, connection):
        connection.settimeout(self.timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def all_reduce(self, numbers):
        """Sums lists of equal length, element by element; every rank gets the same sums."""
        if self.size == 1:
            return list(numbers)
        if self.rank > 0:
            self._send(0, numbers)
            return self._receive(0, len(numbers))
        sums = list(numbers)
        for rank in range(1, self.size):  # always in this order, so that rounding is the same
            for i, number in enumerate(self._receive(rank, len(sums))):
                sums[i] += number
        for rank in range(1, self.size):
            self._send(rank, sums)
        return sums

    def _send(self, rank, numbers):
        payload = array.array("d", numbers).tobytes()
        try:
            self.peers[rank].sendall(self.LENGTH.pack(len(payload)) + payload)
        except OSError as error:
            raise ConnectionError(f"lost rank {rank} while sending to it: {error}")

    def _receive(self, rank, count):
        try:
            head = self._receive_exactly(self.peers[rank], self.LENGTH.size)
            (length,) = self.LENGTH.unpack(head)
            if length != count * 8:
                raise ConnectionError(f"{length} bytes came, {count * 8} were expected")
            numbers = array.array("d")
            numbers.frombytes(self._receive_exactly(self.peers[rank], length))
            return numbers.tolist()
        except OSError as error:
            raise ConnectionError(f"lost rank {rank} while waiting for it: {error}")

    @staticmethod
    def _receive_exactly(connection, n):
        received = bytearray()
        while len(received) < n:
            piece = connection.recv(n - len(received))
            if not piece:
                raise ConnectionError("the connection was closed")
            received += piece
        return bytes(received)

    def close(self):
        for connection in self.peers.values():
            connection.close()


# ------------------------------------------------------------------------------- the model


def make_moons(n, seed):
    """n points (x, y, label) of two interleaved half-circles, with some noise."""
    rng = random.Random(seed)
    points = []
    for i in range(n):
        angle, label = rng.uniform(0, math.pi), i % 2
        x, y = math.cos(angle), math.sin(angle)
        if label:
            x, y = 1 - x, 0.5 - y
        points.append((x + rng.gauss(0, 0.15), y + rng.gauss(0, 0.15), label))
    return points


def make_weights(seed):
    """Four weights for each hidden unit (two in, its bias, one out), and the bias of the output."""
    rng = random.Random(seed)
    return [rng.gauss(0, 1) for _ in range(4 * HIDDEN)] + [0.0]


def predict(weights, x, y):
    """The probability of label 1, and the hidden activations it came from."""
    hidden = [
        math.tanh(weights[k] * x + weights[k + 1] * y + weights[k + 2])
        for k in range(0, 4 * HIDDEN, 4)
    ]
    z = weights[-1] + sum(h * weights[4 * j + 3] for j, h in enumerate(hidden))
    z = max(-30.0, min(30.0, z))
    return 1 / (1 + math.exp(-z)), hidden


def gradient(weights, points):
    """The gradient of the cross-entropy, summed over the points."""
    total = [0.0] * len(weights)
    for x, y, label in points:
        probability, hidden = predict(weights, x, y)
        error = probability - label
        for j, h in enumerate(hidden):
            k = 4 * j
            back = error * weights[k + 3] * (1 - h * h)
            total[k] += back * x
            total[k + 1] += back * y
            total[k + 2] += back
            total[k + 3] += error * h
        total[-1] += error
    return total


def evaluate(weights, points):
    """The cross-entropy, summed over the points, and how many are told apart rightly."""
    loss, right = 0.0, 0
    for x, y, label in points:
        probability, _ = predict(weights, x, y)
        loss -= math.log(probability if label else 1 - probability)
        right += (probability > 0.5) == bool(label)
    return [loss, right]


# ---------------------------------------------------------------------------- the training


def share(points, gang):
    """This rank's part of the points."""
    return points[gang.rank :: gang.size]


def train(gang, epochs, lr, say):
    points = make_moons(640, seed=1)
    unseen = make_moons(400, seed=2)
    weights = make_weights(seed=7)
    shuffle = random.Random(4).shuffle  # the same order on every rank

    for epoch in range(epochs + 1):
        if epoch > 0:  # the first line shows the untrained network
            shuffle(points)
            for start in range(0, len(points), BATCH):
                batch = points[start : start + BATCH]
                summed = gang.all_reduce(gradient(weights, share(batch, gang)))
                weights = [w - lr * g / len(batch) for w, g in zip(weights, summed)]
        loss, right = gang.all_reduce(evaluate(weights, share(unseen, gang)))
        loss, accuracy = loss / len(unseen), right / len(unseen)
        say(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)
    return weights, loss, accuracy


def equal_to_master(gang, weights):
    """Whether this rank's weights are the master's, to the last bit."""
    mine_if_master = weights if gang.rank == 0 else [0.0] * len(weights)
    return gang.all_reduce(mine_if_master) == weights


def save(weights):
    """Keeps the model where myelin keeps what a run makes."""
    directory = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
    if directory:
        with open(os.path.join(directory, "model.json"), "w") as file:
            json.dump(weights, file)


def main():
    parser = argparse.ArgumentParser(description="data-parallel training in plain Python")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=1.0, help="the learning rate")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for the others")
    options = parser.parse_args()

    gang = Gang(options.timeout)

    def say(text):
        if gang.rank == 0:
            print(text, flush=True)

    weights, loss, accuracy = train(gang, options.epochs, options.lr, say)
    equal = equal_to_master(gang, weights)
    n_equal = int(gang.all_reduce([float(equal)])[0])
    print(f"rank {gang.rank} of {gang.size}: weights {'equal' if equal else 'DIFFER'}", flush=True)
    if gang.rank == 0:
        save(weights)
    say(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}, {n_equal} of {gang.size} ranks agree")
    gang.close()
    return 0 if n_equal == gang.size else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(f"rank {os.environ.get('RANK', 0)}: {error}")
