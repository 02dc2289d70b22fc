# SPDX-License-Identifier: Apache-2.0
"""Training with PyTorch's DistributedDataParallel over gloo.

Nothing in here needs myelin: MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are in the environment
of every task, and init_process_group reads them from there. Works with PyTorch 1.13 and later.

Rank 0 keeps a checkpoint of each epoch below the outputs of the run, and the model. Where the package
`myelin` is installed, metrics, an image of what the network has learned and the model are logged.
"""
import argparse
import math
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
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
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    with torch.no_grad():
        scores = model(points[mine])
        loss = nn.functional.cross_entropy(scores, labels[mine], reduction="sum")
        right = (scores.argmax(dim=1) == labels[mine]).sum()
    sums = torch.stack([loss, right.to(loss.dtype)])
    dist.all_reduce(sums)
    return (sums / len(labels)).tolist()


def weights_are_equal(model):
    """Whether this rank's weights are those of rank 0, to the last bit."""
    mine = nn.utils.parameters_to_vector(model.parameters()).detach()
    master = mine.clone()
    dist.broadcast(master, src=0)
    return torch.equal(mine, master)


def keep(outputs, epoch, model, optimizer):
    """A checkpoint to go on from. It has its name only when it is whole."""
    folder = os.path.join(outputs, "checkpoints")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"epoch-{epoch}.pt")
    torch.save({"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".part")
    os.replace(path + ".part", path)


def picture(model, size=64):
    """How sure the network is of the second spiral, at each place of the plane: rows of shares."""
    axis = torch.linspace(-2.2, 2.2, size)
    plane = torch.stack([axis.repeat(size), axis.flip(0).repeat_interleave(size)], dim=1)
    with torch.no_grad():
        return torch.softmax(model(plane), dim=1)[:, 1].reshape(size, size)


def train(epochs, lr, outputs, say):
    unseen = make_spirals(1000, seed=2)
    dataset = TensorDataset(*make_spirals(4000, seed=1))
    sampler = DistributedSampler(dataset, seed=3)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)

    torch.manual_seed(dist.get_rank())  # DDP starts every rank with the weights of rank 0
    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_of = nn.CrossEntropyLoss()

    loss, accuracy = evaluate(model.module, *unseen)
    say(f"epoch {0:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
    if myelin:
        myelin.init().log(loss=loss, accuracy=accuracy, step=0)
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        for points, labels in loader:
            optimizer.zero_grad()
            loss_of(model(points), labels).backward()
            optimizer.step()
        loss, accuracy = evaluate(model.module, *unseen)
        say(f"epoch {epoch:2d}  loss {loss:.4f}  accuracy {accuracy:.4f}")
        if myelin:
            myelin.init().log(loss=loss, accuracy=accuracy, step=epoch)
        if outputs:
            keep(outputs, epoch, model.module, optimizer)
            if myelin:
                myelin.init().log_image("learned", picture(model.module), step=epoch)
    return model.module, loss, accuracy


def main():
    parser = argparse.ArgumentParser(description="DistributedDataParallel over gloo")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02, help="the learning rate")
    options = parser.parse_args()

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    dist.init_process_group("gloo", init_method="env://")
    rank, size = dist.get_rank(), dist.get_world_size()

    def say(text):
        if rank == 0:
            print(text, flush=True)

    outputs = os.environ.get("POLYAXON_RUN_OUTPUTS_PATH") if rank == 0 else None
    model, loss, accuracy = train(options.epochs, options.lr, outputs, say)
    equal = weights_are_equal(model)
    print(f"rank {rank} of {size}: weights {'equal' if equal else 'DIFFER'}", flush=True)

    if outputs:
        path = os.path.join(outputs, "model.pt")
        torch.save(model.state_dict(), path)
        if myelin:
            metadata = {"step": options.epochs, "loss": loss, "accuracy": accuracy}
            myelin.init().log_artifact(path, name="spirals", type="model", metadata=metadata)
    say(f"result: loss {loss:.4f}, accuracy {accuracy:.4f}")
    dist.destroy_process_group()
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
