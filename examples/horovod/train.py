# SPDX-License-Identifier: Apache-2.0
"""Training with Horovod's DistributedOptimizer for PyTorch.

Nothing in here needs myelin: HOROVOD_RANK, HOROVOD_SIZE and their fellows are in the environment of
every task, and hvd.init() reads them from there. Works with Horovod 0.28 and PyTorch 1.13.
"""
import argparse
import math
import os
import sys

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

try:
    import myelin  # pip install ./sdk/python: optional
except ImportError:
    myelin = None


def make_spirals(n, seed):
    """n points of two spirals that wind around each other, and which of the two each belongs to."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2
    turn = torch.rand(n, generator=generator)
    angle = 2 * math.pi * turn + math.pi * labels
    points = torch.stack([turn * torch.cos(angle), turn * torch.sin(angle)], dim=1)
    return 2 * points + 0.05 * torch.randn(n, 2, generator=generator), labels


def make_model():
    return nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2)
    )


def evaluate(model, points, labels):
    """Loss and accuracy over all ranks, each of which looks at its share of the points."""
    mine = slice(hvd.rank(), None, hvd.size())
    with torch.no_grad():
        scores = model(points[mine])
        loss = nn.functional.cross_entropy(scores, labels[mine], reduction="sum")
        right = (scores.argmax(dim=1) == labels[mine]).sum()
    sums = hvd.allreduce(torch.stack([loss, right.to(loss.dtype)]), op=hvd.Sum, name="evaluate")
    return (sums / len(labels)).tolist()


def weights_are_equal(model):
    """Whether this rank's weights are those of rank 0, to the last bit."""
    mine = nn.utils.parameters_to_vector(model.parameters()).detach()
    return torch.equal(mine, hvd.broadcast(mine, root_rank=0, name="weights"))


def train(epochs, lr, say):
    unseen = make_spirals(1000, seed=2)
    dataset = TensorDataset(*make_spirals(4000, seed=1))
    sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), seed=3)
    loader = DataLoader(dataset, batch_size=max(1, 64 // hvd.size()), sampler=sampler)

    torch.manual_seed(hvd.rank())
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # all start with those of rank 0
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    loss_of = nn.CrossEntropyLoss()

    loss, accuracy = evaluate(model, *unseen)
    say(f"epoch {0:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
    if myelin:
        myelin.init().log(loss=loss, accuracy=accuracy, step=0)
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        for points, labels in loader:
            optimizer.zero_grad()
            loss_of(model(points), labels).backward()
            optimizer.step()
        loss, accuracy = evaluate(model, *unseen)
        say(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)
    return model, loss, accuracy


def main():
    parser = argparse.ArgumentParser(description="Horovod's DistributedOptimizer")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02, help="the learning rate")
    options = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    hvd.init()
    rank, size = hvd.rank(), hvd.size()

    def say(text):
        if rank == 0:
            print(text, flush=True)

    model, loss, accuracy = train(options.epochs, options.lr, say)
    equal = weights_are_equal(model)
    print(f"rank {rank} of {size}: weights {'equal' if equal else 'DIFFER'}", flush=True)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH")
    if rank == 0 and outputs:
        torch.save(model.state_dict(), os.path.join(outputs, "model.pt"))
    say(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}")
    hvd.shutdown()
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
