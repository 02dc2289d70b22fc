# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Runs on a real cluster, as pods of our own: they look like runs of this machine, and each index has its own.
. "$TESTS/conformance/cluster_runs.sh"
backend=native

# -- each framework

test_tensorflow_runs_in_pods_and_sees_what_it_sees_here() {
    in_namespace tensorflow
    job tensorflow 'env; sleep 1; if [ "$MYELIN_ROLE" = ps ]; then exec sleep 300; fi'
    submit job.yml
    expect_status 0
    expect_err '^run 1 succeeded'
    on_cluster status 1
    expect_out "native, .*namespace $namespace"
    expect_nothing_left
    expect_environments tensorflow master.0 worker.0 worker.1
}

test_pytorch_runs_in_pods_and_sees_what_it_sees_here() {
    in_namespace pytorch
    job pytorch 'env; sleep 1'
    submit job.yml
    expect_status 0
    expect_nothing_left
    expect_environments pytorch master.0 worker.0 worker.1
}

test_mxnet_runs_in_pods_and_sees_what_it_sees_here() {
    in_namespace mxnet
    job mxnet 'env; sleep 1'
    submit job.yml
    expect_status 0
    expect_nothing_left
    expect_environments mxnet master.0 worker.0 worker.1 ps.0
}

test_a_single_task_without_a_framework_runs_in_a_pod() {
    in_namespace single
    cat >job.yml <<EOF
version: 1
kind: experiment
build: {image: "myelin.test/small:1"}
run: {cmd: "echo alone; env"}
EOF
    submit job.yml
    expect_status 0
    expect_out 'alone'
    expect_out 'MYELIN_WORLD_SIZE=1'
    expect_nothing_left
}

test_horovod_runs_in_pods_and_sees_what_it_sees_here() {
    in_namespace horovod-env
    job horovod 'env; sleep 1'
    submit job.yml
    expect_status 0
    expect_nothing_left
    expect_environments horovod master.0 worker.0 worker.1
}

# They meet at the shim of the master.
test_horovod_trains_in_pods() {
    load_training
    in_namespace horovod
    sed 's/^framework: horovod/&\nbackend: native/; s/n_workers: 3/n_workers: 1/' examples/horovod/polyaxonfile.yml >job.yml
    submit job.yml --image myelin.test/mpi:1 -P epochs=3
    expect_status 0
    expect_out '^master\.0 .*rank 0 of 2: weights equal$'
    expect_out '^worker\.0 .*rank 1 of 2: weights equal$'
    expect_nothing_left
}

# Tasks find each other by the names that they are given.
test_the_names_of_tasks_are_those_of_their_pods() {
    in_namespace names
    job pytorch 'case $RANK in 0) nc -l -p "$MASTER_PORT" -e echo welcome;; 1) until nc "$MASTER_ADDR" "$MASTER_PORT" </dev/null | grep welcome; do sleep 1; done;; esac'
    submit job.yml
    expect_status 0
    expect_out '^worker\.0 .*welcome'
    expect_nothing_left
}

test_pytorch_trains_in_pods() {
    load_training
    in_namespace training
    sed 's/^framework: pytorch/&\nbackend: native/; s/n_workers: 3/n_workers: 1/' examples/pytorch/polyaxonfile.yml >job.yml
    submit job.yml --image myelin.test/pytorch:1 -P epochs=3
    expect_status 0
    expect_out '^master\.0 .*rank 0 of 2: weights equal$'
    expect_out '^worker\.0 .*rank 1 of 2: weights equal$'
    expect_learned_in_part
    expect_nothing_left
}

# -- what each index is given

expect_of_pod() { # task path value
    local found
    found=$(kubectl get pods -l "myelin/role=${1%.*},myelin/index=${1#*.}" -o "jsonpath={.items[0]$2}")
    [ "$found" = "$3" ] || fail "$1 has '$found' at $2, not '$3'"
}

test_each_index_has_the_resources_and_the_place_that_the_file_gives_it() {
    local memory='.spec.containers[0].resources.limits.memory' node
    in_namespace index
    node=$(kubectl get nodes -o 'jsonpath={.items[1].metadata.name}')
    cat >job.yml <<EOF
version: 1
kind: experiment
backend: native
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  resources: {memory: {limits: 96}}
  replicas:
    n_workers: 3
    default_worker:
      resources: {memory: {limits: 64}}
    worker:
      - index: 1
        resources: {memory: {limits: 128}, cpu: {requests: 0.1, limits: 0.5}}
      - index: 2
        node_selector: {kubernetes.io/hostname: $node}
        labels: {kind-of: special}
run: {cmd: sleep 300}
EOF
    submit job.yml --grace 1 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 4
    expect_of_pod master.0 "$memory" 96Mi
    expect_of_pod worker.0 "$memory" 64Mi
    expect_of_pod worker.1 "$memory" 128Mi
    expect_of_pod worker.1 '.spec.containers[0].resources.limits.cpu' 500m
    expect_of_pod worker.1 '.spec.containers[0].resources.requests.cpu' 100m
    expect_of_pod worker.0 '.spec.containers[0].resources.limits.cpu' ''
    expect_of_pod worker.2 '.spec.nodeName' "$node"
    expect_of_pod worker.2 '.metadata.labels.kind-of' special
    expect_of_pod worker.1 '.metadata.labels.kind-of' ''
    expect_of_pod worker.1 '.metadata.ownerReferences[0].kind' ConfigMap
    on_cluster stop 1
    expect_status 0
    expect_nothing_left
}

# -- what goes wrong

test_the_task_that_failed_first_is_named_with_its_code() { expect_the_first_failure_to_be_named; }

test_a_task_over_its_memory_limit_is_told_with_the_figure() { expect_the_memory_limit_to_be_told; }

test_a_pod_that_the_quota_refuses_fails_the_run_with_the_sentence_of_the_cluster() {
    in_namespace quota
    kubectl create quota few --hard=pods=2 >/dev/null || fail "no quota"
    wait_for 30 "the quota" quota_counts
    job pytorch 'sleep 300'
    submit job.yml --grace 1
    expect_status 125
    expect_err 'could not be started: .*exceeded quota: few'
    expect_nothing_left
}
quota_counts() { [ -n "$(kubectl get quota few -o 'jsonpath={.status.used.pods}')" ]; }

test_a_failed_attempt_is_followed_by_other_pods() {
    in_namespace again
    job pytorch 'echo attempt $MYELIN_ATTEMPT; if [ "$MYELIN_ATTEMPT" = 0 ]; then exit 4; fi'
    sed -i "s/^environment:/&\n  max_restarts: 1/" job.yml
    submit job.yml --grace 1
    expect_status 0
    expect_out 'attempt 1'
    expect_nothing_left
}

test_a_pod_that_somebody_deletes_fails_the_run() { expect_a_deleted_pod_to_fail_the_run; }

test_an_owner_that_somebody_deletes_fails_the_run() {
    in_namespace owner
    start_long
    kubectl delete configmaps -l app.kubernetes.io/managed-by=myelin --wait=false >/dev/null
    attached
    expect_status 125
    expect_err 'was lost: somebody deleted the ConfigMap'
    expect_nothing_left
}

test_stopping_a_run_leaves_nothing() { expect_a_stop_to_leave_nothing; }

# -- who watches it

test_a_supervisor_that_is_killed_is_followed_by_another() { expect_a_killed_supervisor_to_be_followed; }

# No node takes them, so that many cost little.
test_a_supervisor_that_is_killed_while_it_makes_pods_is_followed_by_one_that_makes_the_rest() {
    in_namespace making
    job pytorch 'true'
    sed -i 's/n_workers: 2/n_workers: 79/; s/^environment:/&\n  node_selector: {no-such-label: here}/' job.yml
    sed -i 's/resources: .*/node_selector: {no-such-label: here}/' job.yml
    submit job.yml --grace 1 -d
    wait_for 60 "the first pod" some_pods
    kill -KILL "$(supervisor)"
    echo "$(kubectl get pods -o name | wc -l) pods were there"
    wait_for 90 "all pods" n_pods 80
    on_cluster stop 1
    expect_status 0
    expect_nothing_left
}
some_pods() { [ -n "$(kubectl get pods -o name)" ]; }
n_pods() { [ "$(kubectl get pods -o name | wc -l)" = "$1" ]; }

test_a_run_that_nobody_watches_goes_on_and_is_taken_over() { expect_an_unwatched_run_to_be_taken_over; }

test_a_pod_that_is_deleted_while_nobody_watches_is_missed() {
    in_namespace missed
    start_long
    leave_alone
    kubectl delete "$(kubectl get pods -o name | grep worker-0)" >/dev/null
    attached
    expect_status 125
    expect_err 'worker\.0 was lost: somebody deleted the pod'
    expect_nothing_left
}

# -- what it leaves

home_run() { echo "$SCRATCH/home/.myelin/runs/1"; }
settings() { mkdir -p "$SCRATCH/home/.myelin" && printf 'kubernetes: {%s}\n' "$1" >"$SCRATCH/home/.myelin/config.yml"; }

# The package for Python, as a variable of the pods: images of users have it installed.
bring_sdk() {
    kubectl create configmap sdk --from-literal="SDK=$(tar cz --exclude=_native.c -C "$TESTS/../sdk/python" myelin | base64 -w0)" >/dev/null || fail "no package"
}
train_with_sdk() { # epochs
    sed "s/^framework: pytorch/&\nbackend: native/; s/n_workers: 3/n_workers: 1\n    default_worker: {config_map_refs: [sdk]}/" examples/pytorch/polyaxonfile.yml |
        sed "s/^environment:/&\n  config_map_refs: [sdk]/; s#cmd: #&echo \$SDK | base64 -d | tar xz -C /tmp; PYTHONPATH=/tmp #" >job.yml
    submit job.yml --image myelin.test/pytorch:1 -P epochs="$1"
}

test_metrics_of_a_training_in_pods_are_those_of_the_run() {
    load_training
    in_namespace metrics
    bring_sdk
    train_with_sdk 3
    expect_status 0
    expect_learned_in_part
    myelin metrics 1 --json
    cp out metrics.json
    python3 - <<'EOF' || fail "the metrics are not those that were logged"
import json
series = {(entry["name"], entry["task"]): entry for entry in json.load(open("metrics.json"))}
loss = series["loss", "master.0"]
assert loss["count"] == 4 and loss["last"] < loss["max"], loss
assert series["accuracy", "master.0"]["count"] == 4
EOF
    ls "$(home_run)/outputs" | grep -q . || fail "no outputs came"
    expect_nothing_left
}

test_outputs_come_from_every_pod_and_the_lowest_rank_wins() {
    in_namespace outputs
    job pytorch 'echo $MYELIN_TASK >$MYELIN_OUTPUTS_PATH/same; mkdir $MYELIN_OUTPUTS_PATH/d; echo $MYELIN_TASK >$MYELIN_OUTPUTS_PATH/d/$MYELIN_TASK'
    submit job.yml
    expect_status 0
    [ "$(cat "$(home_run)/outputs/same")" = master.0 ] || fail "the file of $(cat "$(home_run)/outputs/same") was kept"
    for task in master.0 worker.0 worker.1; do
        [ "$(cat "$(home_run)/outputs/d/$task")" = $task ] || fail "the file of $task did not come"
    done
    expect_err '2 files of higher ranks were left out'
    expect_nothing_left
}

# The node keeps 10 MiB of it, and throws the rest away.
test_a_log_that_the_node_rotates_away_arrives_whole() {
    local long='BEGIN { for (i = 0; i < 200000; i++) printf "%06d of the lines of a log that is longer than what a node keeps of it\n", i }'
    in_namespace rotated
    job pytorch "if [ \"\$RANK\" = 0 ]; then awk '$long'; fi"
    submit job.yml
    expect_status 0
    awk "$long" | cmp - "$(home_run)/logs/master.0.log" || fail "the log is not what was written"
    expect_nothing_left
}

test_a_killed_supervisor_doubles_no_line_and_no_point() {
    load_training
    in_namespace doubled
    bring_sdk
    image=myelin.test/pytorch:1
    job pytorch 'echo $SDK | base64 -d | tar xz -C /tmp; PYTHONPATH=/tmp python3 -c "import myelin, time; r = myelin.init(); [(r.log(loss=i, step=i), print(\"line\", i, flush=True), time.sleep(0.02)) for i in range(1000)]"'
    sed -i "s/^environment:/&\n  config_map_refs: [sdk]/; s/resources: .*/config_map_refs: [sdk]/" job.yml
    submit job.yml -d
    expect_status 0
    wait_for 90 "the first lines" some_lines
    kill -KILL "$(supervisor)"
    sleep 5
    kill -KILL "$(supervisor)"
    attached
    expect_status 0
    for task in master.0 worker.0 worker.1; do
        seq -f "line %.0f" 0 999 | cmp - "$(home_run)/logs/$task.log" || fail "the log of $task is not what was written"
    done
    myelin metrics 1 loss --json
    [ "$(grep -c '"count": 1000' out)" = 3 ] || fail "not every task has its 1000 points"
    expect_nothing_left
}
some_lines() { [ "$(wc -l 2>/dev/null <"$(home_run)/logs/master.0.log")" -gt 50 ]; }

# -- what it may do

test_a_restricted_namespace_takes_pods_without_root_on_a_root_that_nobody_writes() {
    in_namespace restricted
    cluster kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted >/dev/null || fail "no label"
    settings 'restricted: true, run_as_user: 1234, run_as_group: 1234, read_only_root: true'
    job pytorch 'id -u; touch /nobody 2>/dev/null && echo writes; echo x >/tmp/x && echo y >$MYELIN_OUTPUTS_PATH/y.$RANK'
    submit job.yml
    expect_status 0
    expect_out '^master\.0 .*1234$'
    ! grep -q writes out || fail "the root can be written"
    [ "$(cat "$(home_run)/outputs/y.2")" = y ] || fail "no outputs came"
    expect_nothing_left
}

test_without_the_right_to_ask_pods_the_logs_come_and_the_loss_is_told() {
    in_namespace unasked
    as_runner
    kubectl get role runner -o json | python3 -c 'import json, sys; role = json.load(sys.stdin); role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["pods/proxy"]]; print(json.dumps(role))' |
        kubectl apply -f - >/dev/null 2>&1 || fail "the right cannot be taken"
    job pytorch 'echo line of $RANK'
    submit job.yml --kubeconfig runner
    expect_status 0
    expect_out '^worker\.1 .*line of 2$'
    expect_err 'cannot be asked for what their tasks leave'
    expect_nothing_left
}


test_the_rights_that_are_documented_are_enough() {
    in_namespace rights
    expect_the_documented_rights_to_do
}
