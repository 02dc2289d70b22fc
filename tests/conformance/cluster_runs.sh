# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What laws on runs of a real cluster are written with, whichever backend makes the pods: it is named by `backend`.
. "$TESTS/conformance/cluster.sh"
alone=yes
limit=300

# on_cluster ARGUMENT...: myelin where the API server is reached, by the kubeconfig alone.
on_cluster() {
    MYELIN_HOME="$SCRATCH/home/.myelin" MYELIN_CONFORMANCE_MARK="$MARK" cluster enter "$MYELIN" "$@" >out 2>err
    status=$?
}
# submit FILE [OPTION...]: runs it in the namespace of the law, with the rights that are documented and no others.
submit() {
    as_runner
    on_cluster run --plain --on kubernetes --namespace "$namespace" --kubeconfig "$SCRATCH/runner" "$@"
}

# settings TEXT: of `kubernetes` in config.yml.
settings() { mkdir -p "$SCRATCH/home/.myelin" && echo "kubernetes: {$1}" >"$SCRATCH/home/.myelin/config.yml"; }

# job FRAMEWORK COMMAND: a master, two workers, and a parameter server where there are any.
job() {
    local servers=
    case $1 in tensorflow | mxnet) servers="n_ps: 1" ;; esac
    cat >job.yml <<EOF
version: 1
kind: experiment
backend: $backend
framework: $1
build: {image: "${image:-myelin.test/small:1}"}
environment:
  replicas:
    n_workers: 2
    $servers
    default_worker:
      resources: {memory: {limits: 128}}
run:
  cmd: |
    $2
EOF
}

expect_nothing_left() {
    wait_for 60 "no pod left" no_pods
    wait_for 60 "no object left" no_objects
}
no_pods() { [ -z "$(kubectl get pods -o name)" ]; }
n_pods() { [ "$(kubectl get pods -o name | wc -l)" = "$1" ]; }
no_objects() { [ -z "$(kubectl get tfjobs,pytorchjobs,mxjobs,mpijobs,services,configmaps -l app.kubernetes.io/managed-by=myelin -o name)" ]; }

# The environment of each task, beside what the same file gives processes of this machine.
expect_environments() { # framework task...
    local framework=$1 task
    shift
    sed 's/^backend: .*/backend: native/' job.yml >here.yml
    myelin run --plain here.yml
    expect_status 0
    for task; do
        myelin plan here.yml --task "$task" --json
        cp out plan.json
        "$TESTS/conformance/environments.py" "$backend" "$framework" plan.json "$SCRATCH/home/.myelin/runs/2/logs/$task.log" \
            "$SCRATCH/home/.myelin/runs/1/logs/$task.log" "$TESTS/../docs/kubernetes.md" >differences ||
            { cat differences; fail "$task does not see in its pod what it sees here"; }
    done
}

# start_long: the job runs in the background, and all its tasks are up.
start_long() {
    job pytorch 'i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i + 1)); sleep 1; done'
    submit job.yml --grace 1 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 3
}
all_up() { [ "$(kubectl get pods --no-headers 2>/dev/null | grep -c ' Running ')" = "$1" ]; }
attached() { on_cluster attach --from-start --plain 1; }

# -- who watches it

lines_of() { wc -l <"$SCRATCH/home/.myelin/runs/1/logs/$1.log"; }
supervisor() { # [run]: the child of the keeper
    grep -lsE "^PPid:[[:space:]]+$(cat "$SCRATCH/home/.myelin/runs/${1:-1}/lock")\$" /proc/[0-9]*/status | sed -E 's,/proc/([0-9]+)/.*,\1,'
}
expect_every_line_once() {
    local task
    for task in master.0 worker.0 worker.1; do
        [ "$(lines_of $task)" = 30 ] || fail "the log of $task has $(lines_of $task) lines, not 30"
        seq -f 'line %.0f' 0 29 | cmp -s - "$SCRATCH/home/.myelin/runs/1/logs/$task.log" || fail "the log of $task is not as it was written"
    done
}

# leave_alone: both who watch the run are killed.
leave_alone() {
    local keeper
    keeper=$(cat "$SCRATCH/home/.myelin/runs/1/lock")
    kill -STOP "$keeper"
    kill -KILL "$(supervisor)" "$keeper"
    sleep 2
}

# -- what it may do

# as_runner: makes the file `runner`, once, a kubeconfig of an account that has the rights of docs/kubernetes.md and no others.
as_runner() {
    [ ! -f "$SCRATCH/runner" ] || return 0
    "$TESTS/conformance/rights.py" "$backend" "$TESTS/../docs/kubernetes.md" >role.json || fail "no rights are documented"
    kubectl create serviceaccount runner >/dev/null && kubectl create -f role.json >/dev/null &&
        kubectl create rolebinding runner --role runner --serviceaccount "$namespace:runner" >/dev/null || fail "the account cannot be made"
    kubectl create token runner >token || fail "the account gets no token"
    kubectl config view --raw --flatten --minify -o json | python3 -c 'import json, sys
config = json.load(sys.stdin)
config["users"][0]["user"] = {"token": open("token").read().strip()}
json.dump(config, open(sys.argv[1], "w"))' "$SCRATCH/runner" || fail "the kubeconfig cannot be made"
}

expect_the_documented_rights_to_do() {
    job pytorch 'echo up; sleep 3; if [ "$RANK" = 1 ]; then exit 5; fi; sleep 300'
    submit job.yml --grace 1
    expect_status 5
    expect_blamed worker.0
    expect_out 'up$'
    expect_nothing_left
}

# -- laws that hold whichever backend makes the pods

expect_the_first_failure_to_be_named() {
    in_namespace failure
    job pytorch 'echo up; if [ "$RANK" = 2 ]; then sleep 1; echo broken; exit 3; fi; sleep 300'
    submit job.yml --grace 2
    expect_status 3
    expect_blamed worker.1
    expect_err 'exited with code 3'
    expect_err 'stopped because of it: master\.0, worker\.0'
    expect_nothing_left
}

expect_the_memory_limit_to_be_told() {
    in_namespace memory
    job pytorch 'if [ "$RANK" = 1 ]; then exec tail /dev/zero; fi; sleep 300'
    submit job.yml --grace 2
    expect_status 137
    expect_blamed worker.0
    expect_err 'memory limit of 128 MiB'
    expect_nothing_left
}

expect_a_deleted_pod_to_fail_the_run() {
    in_namespace pod
    start_long
    kubectl delete "$(kubectl get pods -o name | grep worker-1)" --wait=false >/dev/null
    attached
    expect_status 125
    expect_err 'worker\.1 was lost: somebody deleted the pod'
    expect_nothing_left
}

expect_a_stop_to_leave_nothing() {
    in_namespace stop
    start_long
    on_cluster stop 1
    expect_status 0
    expect_err 'run 1 was stopped'
    expect_nothing_left
}

expect_a_killed_supervisor_to_be_followed() {
    in_namespace killed
    start_long
    kill -KILL "$(supervisor)"
    attached
    expect_status 0
    expect_every_line_once
    expect_nothing_left
}

expect_an_unwatched_run_to_be_taken_over() {
    in_namespace alone
    start_long
    leave_alone
    on_cluster status 1
    expect_out "nobody watches it here; 'myelin attach 1' does so again"
    attached
    expect_status 0
    expect_every_line_once
    expect_nothing_left
}
