# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Runs on a real cluster, as jobs of Kubeflow's operators: they look like runs of this machine.
. "$TESTS/conformance/cluster_runs.sh"
backend=kubeflow
packages+=" ${HOROVOD_PACKAGES:-}"

# The image that trainings run in has Horovod, for the law that needs it.
prepare() { cluster build && horovod_wheel >/dev/null && cluster start --while $$; }

# -- each framework

test_tensorflow_runs_as_a_tfjob_and_sees_what_it_sees_here() {
    in_namespace tensorflow
    job tensorflow 'env; sleep 1; if [ "$MYELIN_ROLE" = ps ]; then exec sleep 300; fi'
    submit job.yml
    expect_status 0
    expect_err '^run 1 succeeded'
    expect_nothing_left
    expect_environments tensorflow master.0 worker.0 worker.1
}

test_pytorch_runs_as_a_pytorchjob_and_sees_what_it_sees_here() {
    in_namespace pytorch
    # The pods of workers wait for the name of the master, which has to be there until the last of them has started.
    job pytorch 'env; if [ "$RANK" = 0 ]; then sleep 20; fi'
    submit job.yml
    expect_status 0
    expect_nothing_left
    expect_environments pytorch master.0 worker.0 worker.1
}

test_mxnet_runs_as_an_mxjob_and_sees_what_it_sees_here() {
    in_namespace mxnet
    job mxnet 'env; sleep 1'
    submit job.yml
    expect_status 0
    expect_nothing_left
    expect_environments mxnet master.0 worker.0 worker.1 ps.0
}

test_horovod_trains_as_an_mpijob_whose_launcher_is_rank_0() {
    load_training
    in_namespace horovod
    sed 's/^framework: horovod/&\nbackend: kubeflow/; s/n_workers: 3/n_workers: 1/' examples/horovod/polyaxonfile.yml >job.yml
    submit job.yml --image myelin.test/mpi:1 -P epochs=3
    expect_status 0
    expect_out 'rank 0 of 2: weights equal'
    expect_out 'rank 1 of 2: weights equal'
    expect_nothing_left
}

test_pytorch_trains_in_pods() {
    load_training
    in_namespace training
    sed 's/^framework: pytorch/&\nbackend: kubeflow/; s/n_workers: 3/n_workers: 1/' examples/pytorch/polyaxonfile.yml >job.yml
    submit job.yml --image myelin.test/pytorch:1 -P epochs=3
    expect_status 0
    expect_out '^master\.0 .*rank 0 of 2: weights equal$'
    expect_out '^worker\.0 .*rank 1 of 2: weights equal$'
    expect_learned_in_part
    expect_nothing_left
}

# -- what goes wrong

test_the_task_that_failed_first_is_named_with_its_code() { expect_the_first_failure_to_be_named; }

test_a_task_over_its_memory_limit_is_told_with_the_figure() { expect_the_memory_limit_to_be_told; }

test_what_no_node_can_take_waits_with_the_figures_of_the_scheduler() {
    in_namespace large
    job pytorch 'sleep 300'
    sed 's/memory: {limits: 128}/cpu: {requests: 500}/' job.yml >large.yml
    submit large.yml --timeout 10 --grace 1
    expect_status 125
    expect_err 'no node can take the pod: .*Insufficient cpu'
    expect_nothing_left
}

test_an_image_that_is_not_there_is_named() {
    in_namespace image
    job pytorch 'true'
    submit job.yml --image myelin.test/nowhere:1
    expect_status 125
    expect_err 'could not be started: the image myelin.test/nowhere:1 cannot be pulled'
    expect_nothing_left
}

test_a_command_that_is_not_in_the_image_is_told() {
    in_namespace command
    job pytorch 'no-such-program --now'
    submit job.yml --grace 1
    [ "$status" -eq 127 ] || [ "$status" -eq 125 ] || fail "exit status $status"
    expect_err 'no-such-program'
    expect_nothing_left
}

test_a_pod_that_somebody_deletes_fails_the_run() { expect_a_deleted_pod_to_fail_the_run; }

test_a_job_that_somebody_deletes_fails_the_run() {
    in_namespace job
    start_long
    kubectl delete pytorchjobs --all --wait=false >/dev/null
    attached
    expect_status 125
    expect_err 'was lost: somebody deleted the PyTorchJob'
    expect_nothing_left
}

test_stopping_a_run_deletes_its_job() { expect_a_stop_to_leave_nothing; }

# -- who watches it

test_a_supervisor_that_is_killed_is_followed_by_another() { expect_a_killed_supervisor_to_be_followed; }

test_a_run_that_nobody_watches_goes_on_and_is_taken_over() { expect_an_unwatched_run_to_be_taken_over; }

test_an_api_server_that_is_killed_and_comes_back_changes_nothing() {
    in_namespace outage
    start_long
    cluster halt apiserver KILL
    sleep 3
    cluster resume apiserver
    attached
    expect_status 0
    expect_every_line_once
    wait_for 60 "the API server" kubectl get --raw /readyz
    expect_nothing_left
}

# -- what it may do

test_the_rights_that_are_documented_are_enough() {
    in_namespace rights
    expect_the_documented_rights_to_do
}
