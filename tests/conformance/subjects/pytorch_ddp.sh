# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# PyTorch's DistributedDataParallel over gloo, with a master and three workers.
packages="python3-torch python3-dev python3-venv"
environments=sdk-3.11
once=the_better_of_two_trainings_is_found_compared_and_fetched
limit=300

prepare() { sdk_venv 3.11; }

# ddp_job CODE: a job whose ranks join, meet once, and then run the Python lines of CODE.
ddp_job() {
    cat >job.py <<EOF
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(1))
$1
EOF
    cat >job.yml <<EOF
version: 1
kind: experiment
framework: pytorch
environment:
  replicas:
    n_workers: 3
run:
  cmd: python3 job.py
EOF
}

test_four_ranks_train_one_model() {
    local rank first last
    can_track
    myelin run examples/pytorch/polyaxonfile.yml
    expect_status 0
    expect_out '^master\.0 .*rank 0 of 4: weights equal$'
    for rank in 1 2 3; do
        expect_out "^worker\.$((rank - 1)) .*rank $rank of 4: weights equal\$"
    done
    first=$(sed -n 's/.*epoch  0  loss \([0-9.]*\) .*/\1/p' out)
    last=$(sed -n 's/.*result: loss \([0-9.]*\),.*/\1/p' out)
    awk -v first="$first" -v last="$last" 'BEGIN { exit !(last > 0 && last < first / 2) }' ||
        fail "the loss did not fall by half: from '$first' to '$last'"
    expect_tracked master.0 worker.0 worker.1 worker.2
    expect_nobody_left
}

test_the_better_of_two_trainings_is_found_compared_and_fetched() {
    can_track
    expect_found_again pytorch '
import torch, train
model = train.make_model()
model.load_state_dict(torch.load("best/model.pt"))
points, labels = train.make_spirals(1000, seed=2)
with torch.no_grad():
    scores = model(points)
loss = torch.nn.functional.cross_entropy(scores, labels)
accuracy = (scores.argmax(dim=1) == labels).float().mean()
print(f"loss {loss:.4f}, accuracy {accuracy:.4f}")'
    myelin outputs 2 checkpoints/epoch-3.pt --copy checkpoint
    expect_status 0
    python3 -c 'import torch
kept = torch.load("checkpoint/checkpoints/epoch-3.pt"); model = torch.load("best/model.pt")
assert kept["epoch"] == 3 and all(torch.equal(kept["model"][name], model[name]) for name in model)' 2>err ||
        fail "the checkpoint of the last epoch is not the model"
    myelin outputs 2 --media learned
    expect_out '^learned +3 +master\.0 +image '
}

test_a_rank_that_raises_is_the_one_named() {
    ddp_job '
if rank == 2:
    raise ValueError("the batch of rank 2 is rotten")
dist.all_reduce(torch.ones(1))'
    myelin run job.yml
    expect_status 1 134 # while Python takes it down, PyTorch aborts now and then: the exception is told all the same
    expect_blamed worker.1
    expect_err 'ValueError: the batch of rank 2 is rotten'
    expect_nobody_left
}

test_the_exit_code_of_the_failed_rank_is_handed_on() {
    ddp_job '
if rank == 3:
    os._exit(37)
dist.all_reduce(torch.ones(1))'
    myelin run job.yml
    expect_status 37
    expect_err 'worker\.2.*37'
    expect_nobody_left
}

test_a_rank_that_crashes_is_named_with_its_signal() {
    ddp_job '
if rank == 1:
    os.abort()
dist.all_reduce(torch.ones(1))'
    myelin run job.yml
    expect_status 134
    expect_err 'worker\.0.*(SIGABRT|signal 6|Aborted)'
    expect_nobody_left
}
