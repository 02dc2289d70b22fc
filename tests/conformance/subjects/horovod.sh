# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Horovod with PyTorch over gloo: the ranks meet at the rendezvous that myelin serves. The build has
# MPI as well, so that a rank which was not told to use gloo fails.
packages="${HOROVOD_PACKAGES:-} python3-venv"
venv=horovod
environments=sdk-3.11
once=sixteen_ranks_train_one_model
limit=300

prepare() {
    local wheel
    wheel=$(horovod_wheel) && make_venv horovod "$wheel" --system-site-packages && sdk_venv 3.11
}

# hvd_job CODE: a job whose ranks join, meet once, and then run the Python lines of CODE.
hvd_job() {
    cat >job.py <<EOF
import os, sys, time, torch, horovod.torch as hvd
hvd.init()
rank = hvd.rank()
assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name="first").item() == hvd.size()

def failing():
    open("failed_at", "w").write(str(time.time()))
$1
EOF
    cat >job.yml <<EOF
version: 1
kind: experiment
framework: horovod
environment:
  replicas:
    n_workers: ${2:-3}
run:
  cmd: python3 job.py
EOF
}

# expect_ranks N: each of N ranks said that it has the weights of rank 0.
expect_ranks() {
    local rank
    expect_out "^master\.0 .*rank 0 of $1: weights equal\$"
    for ((rank = 1; rank < $1; rank++)); do
        expect_out "^worker\.$((rank - 1)) .*rank $rank of $1: weights equal\$"
    done
}

test_four_ranks_train_one_model() {
    can_track
    myelin run examples/horovod/polyaxonfile.yml
    expect_status 0
    expect_ranks 4
    expect_learned
    expect_tracked master.0 worker.0 worker.1 worker.2
    expect_nobody_left
}

test_sixteen_ranks_train_one_model() {
    sed 's/n_workers: .*/n_workers: 15/' examples/horovod/polyaxonfile.yml >many.yml
    myelin run many.yml -P epochs=2
    expect_status 0
    expect_ranks 16
    expect_learned
    expect_nobody_left
}

test_one_rank_trains_alone() {
    sed '/^environment:/,/n_workers:/d' examples/horovod/polyaxonfile.yml >alone.yml
    myelin run alone.yml
    expect_status 0
    expect_out 'rank 0 of 1: weights equal$'
    expect_learned
    expect_nobody_left
}

test_each_rank_is_a_node_of_its_own() {
    hvd_job '
gathered = hvd.allgather(torch.tensor([[rank, hvd.cross_rank()]]), name="ranks").tolist()
assert gathered == [[i, i] for i in range(hvd.size())], gathered
print("local", hvd.local_rank(), "of", hvd.local_size(), "cross", hvd.cross_rank(), "of", hvd.cross_size())'
    myelin run job.yml
    expect_status 0
    expect_out '^master\.0 .*local 0 of 1 cross 0 of 4$'
    expect_out '^worker\.2 .*local 0 of 1 cross 3 of 4$'
    expect_nobody_left
}

test_a_rank_that_raises_is_the_one_named() {
    hvd_job '
if rank == 2:
    failing()
    raise ValueError("the batch of rank 2 is rotten")
hvd.allreduce(torch.ones(1), name="second")'
    myelin run job.yml
    expect_status 1 134 # PyTorch aborts now and then when it is taken down
    expect_blamed worker.1
    expect_err 'ValueError: the batch of rank 2 is rotten'
    expect_over_soon
    expect_nobody_left
}

test_a_rank_that_dies_before_it_joins_is_the_one_named() {
    # The others wait for it at the rendezvous.
    hvd_job ''
    sed -i '/^hvd.init/i if os.environ["HOROVOD_RANK"] == "3":\n    open("failed_at", "w").write(str(time.time()))\n    sys.exit(41)' job.py
    myelin run job.yml
    expect_status 41
    expect_blamed worker.2
    expect_over_soon
    expect_nobody_left
}
