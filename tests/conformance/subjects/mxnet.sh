# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# MXNet's distributed key-value store: a scheduler, two servers and three workers.
packages=python3-venv
venv=mxnet
environments=sdk-3.11
limit=180

prepare() { make_venv mxnet mxnet.txt && sdk_venv 3.11; }

# failing_job CODE: the example, in which one worker runs the Python lines of CODE in the second epoch.
failing_job() {
    cat >job.py <<EOF
import os, sys, time
sys.path.insert(0, "examples/mxnet")
import train

def evaluate(*arguments, evaluate=train.evaluate, calls=[]):
    calls.append(1)
    if os.environ["DMLC_WORKER_ID"] == "1" and len(calls) == 3:
        open("failed_at", "w").write(str(time.time()))
        $1
    return evaluate(*arguments)

train.evaluate = evaluate
sys.exit(train.main())
EOF
    sed 's|python3 [^ ]*|python3 job.py|' examples/mxnet/polyaxonfile.yml >job.yml
}

test_three_workers_and_two_servers_train_one_model() {
    local index rank digests
    can_track
    myelin run examples/mxnet/polyaxonfile.yml
    expect_status 0
    expect_out '^master\.0 .*scheduler: serving$'
    expect_out '^ps\.0 .*server: serving$'
    expect_out '^ps\.1 .*server: serving$'
    for index in 0 1 2; do
        expect_out "^worker\.$index .*rank [0-2] of 3: weights [0-9a-f]{16}\$"
        expect_out "^worker\.[0-2] .*rank $index of 3: weights"
    done
    digests=$(sed -n 's/.*rank [0-2] of 3: weights //p' out | sort -u | wc -l)
    [ "$digests" -eq 1 ] || fail "the workers ended with $digests different models"
    expect_learned
    expect_tracked worker.0 worker.1 worker.2
    expect_nobody_left
}

test_a_worker_that_raises_is_the_one_named() {
    failing_job 'raise ValueError("the batch of worker 1 is rotten")'
    myelin run job.yml
    expect_status 1
    expect_blamed worker.1
    expect_err 'ValueError: the batch of worker 1 is rotten'
    expect_over_soon
    expect_nobody_left
}

test_a_worker_that_crashes_is_named_with_its_signal() {
    # The others wait for its gradients, and nothing tells them that it is gone.
    failing_job 'os.abort()'
    myelin run job.yml
    expect_status 134
    expect_blamed worker.1
    expect_err '(SIGABRT|signal 6|Aborted)'
    expect_over_soon
    expect_nobody_left
}
