# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Many runs at once on a cluster: their pods are on simulated nodes, which have no processes and no logs, so that a small machine
# holds a thousand of them.
lane=cluster2
. "$TESTS/conformance/cluster_runs.sh"
backend=native
limit=600
GANGS=50 TASKS=20

prepare() { cluster start --while $$ && cluster nodes 20; }

# simulated_job SECONDS: a gang for the simulated nodes, whose tasks succeed after that time.
simulated_job() {
    cat >job.yml <<EOF
version: 1
kind: experiment
backend: native
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  node_selector: &where {simulated: "yes"}
  tolerations: &may [{key: simulated, operator: Exists}]
  annotations: &long {myelin.test/runs-for: ${1}s}
  replicas:
    n_workers: $((TASKS - 1))
    default_worker: {node_selector: *where, tolerations: *may, annotations: *long}
run: {cmd: "true"}
EOF
}

# submit_all: as many runs as GANGS, each by a command of its own, all at once.
# shellcheck disable=SC2016
submit_all() {
    as_runner
    MYELIN_HOME="$SCRATCH/home/.myelin" MYELIN_CONFORMANCE_MARK="$MARK" cluster enter bash -c '
        for ((i = 0; i < $1; i++)); do "$2" run -d --on kubernetes --namespace "$3" --kubeconfig "$4" job.yml & done; wait' \
        bash "$GANGS" "$MYELIN" "$namespace" "$SCRATCH/runner" >out 2>err
    [ "$(sort -un out | wc -l)" = "$GANGS" ] || fail "not every command has started a run of its own"
}

all_are() { # status
    myelin runs --query "status:$1" --limit "$GANGS" --columns id --json
    [ "$(grep -c '"id"' out)" = "$GANGS" ]
}
all_are_over() { ! myelin ps --json || ! grep -q '"id"' out; }

# The requests of the runs of this law, of that verb and resource, that the API server noted with that answer.
requests() { # verb resource status
    grep -F "/namespaces/$namespace/" "$MYELIN_CLUSTER/log/audit" | grep -F '"userAgent":"myelin/' | grep -F "\"verb\":\"$1\"" |
        grep -F "\"resource\":\"$2\"" | grep -cF "\"code\":$3"
}

test_a_thousand_pods_of_fifty_gangs_are_made_once_each_and_leave_nothing() {
    in_namespace scale
    simulated_job 10
    submit_all
    wait_for 480 "the end of all runs" all_are_over
    all_are succeeded || { myelin runs --limit "$GANGS"; fail "not all $GANGS runs succeeded"; }
    [ "$(requests create pods 201)" = $((GANGS * TASKS)) ] || fail "$(requests create pods 201) pods were made, not $((GANGS * TASKS))"
    [ "$(requests create pods 409)" = 0 ] || fail "$(requests create pods 409) pods were asked for that were there"
    expect_nothing_left
}

# The nodes have no address that the API server could ask for a log.
test_logs_that_cannot_be_read_are_told_of_once_and_hold_nothing_up() {
    in_namespace logs
    simulated_job 1
    submit job.yml
    expect_status 0
    expect_err 'the end of the log of [a-z]+\.[0-9]+ may be missing: '
    [ "$(grep -c '^myelin: ' err)" -le 4 ] || fail "it is told again for each task"
    expect_nothing_left
}
