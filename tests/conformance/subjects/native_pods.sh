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

# They meet at the shim of the master; those of all bring their metrics.
test_horovod_trains_in_pods() {
    load_training
    in_namespace horovod
    bring_sdk
    train_with_sdk horovod 3
    expect_status 0
    expect_out '^master\.0 .*rank 0 of 2: weights equal$'
    expect_out '^worker\.0 .*rank 1 of 2: weights equal$'
    expect_metrics_of_a_training master.0 worker.0
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

expect_of_pod() { # task path value [run]
    local found run
    run=${4:+,myelin/run=$(run_uuid "$4")}
    found=$(kubectl get pods -l "myelin/role=${1%.*},myelin/index=${1#*.}$run" -o "jsonpath={.items[0]$2}")
    [ "$found" = "$3" ] || fail "$1${4:+ of run $4} has '$found' at $2, not '$3'"
}
run_uuid() { myelin status "$1" --json && sed -n 's/^ *"uuid": "\(.*\)",$/\1/p' out; }

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

test_each_framework_gives_each_index_its_own_resources() {
    local memory='.spec.containers[0].resources.limits.memory' frameworks=(tensorflow pytorch mxnet horovod) run=0 framework servers
    in_namespace frameworks
    for framework in "${frameworks[@]}"; do
        servers=
        case $framework in tensorflow | mxnet) servers=$'\n    n_ps: 2\n    ps: [{index: 1, resources: {memory: {limits: 40}}}]' ;; esac
        cat >"$framework.yml" <<EOF
version: 1
kind: experiment
backend: native
framework: $framework
build: {image: "myelin.test/small:1"}
environment:
  resources: {memory: {limits: 48}}
  replicas:
    n_workers: 2
    worker: [{index: 0, resources: {memory: {limits: 32}}}, {index: 1, resources: {memory: {limits: 36}, cpu: {requests: 0.05}}}]$servers
run: {cmd: sleep 300}
EOF
        submit "$framework.yml" --grace 1 -d
        expect_status 0
    done
    wait_for 120 "the tasks of all" all_up 16
    for framework in "${frameworks[@]}"; do
        run=$((run + 1))
        expect_of_pod master.0 "$memory" 48Mi $run
        expect_of_pod worker.0 "$memory" 32Mi $run
        expect_of_pod worker.0 '.spec.containers[0].resources.requests.cpu' '' $run
        expect_of_pod worker.1 "$memory" 36Mi $run
        expect_of_pod worker.1 '.spec.containers[0].resources.requests.cpu' 50m $run
        case $framework in
        tensorflow | mxnet)
            expect_of_pod ps.0 "$memory" '' $run
            expect_of_pod ps.1 "$memory" 40Mi $run
            ;;
        esac
    done
    on_cluster stop 1 2 3 4
    expect_status 0
    expect_nothing_left
}

# A volume with one file, which every node sees.
claim() { # name
    mkdir -p "$SCRATCH/data/part" && echo of the data >"$SCRATCH/data/part/words"
    cat >claim.yml <<EOF
apiVersion: v1
kind: PersistentVolume
metadata: {name: "$namespace-$1"}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {namespace: "$namespace", name: $1}
  hostPath: {path: "$SCRATCH/data"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec: {accessModes: [ReadWriteMany], storageClassName: "", resources: {requests: {storage: 1Mi}}, volumeName: "$namespace-$1"}
EOF
    apply claim.yml
}
accelerators() { # add|remove node
    cluster kubectl patch node "$2" --subresource=status --type=json \
        -p "[{\"op\": \"$1\", \"path\": \"/status/capacity/example.org~1accelerator\", \"value\": \"2\"}]" >/dev/null
}

test_each_index_finds_what_else_the_file_gives_it() {
    local node said
    in_namespace everything
    node=$(kubectl get nodes -o 'jsonpath={.items[1].metadata.name}')
    accelerators add "$node" || fail "no accelerators"
    { kubectl create serviceaccount trainer && kubectl create secret generic token --from-literal=TOKEN=t0 &&
        kubectl create secret generic other --from-literal=OTHER=o1 && kubectl create configmap proxy --from-literal=PROXY=p2 &&
        kubectl create secret docker-registry registry --docker-username=u --docker-password=p; } >/dev/null || fail "not all is there"
    claim set
    settings 'shm: 48, gpu_resource: example.org/accelerator, data: {set: {claim: set, sub_path: part, read_only: true}}'
    cat >job.yml <<EOF
version: 1
kind: experiment
backend: native
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  service_account: trainer
  image_pull_secrets: [registry]
  secret_refs: [token]
  config_map_refs: [proxy]
  replicas:
    n_workers: 2
    worker:
      - index: 1
        resources: {gpu: {requests: 1, limits: 1}}
        data_refs: [set]
        secret_refs: [other]
        tolerations: [{key: special, operator: Exists}]
        affinity:
          nodeAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]}]
run:
  cmd: |
    echo "token=\$TOKEN other=\$OTHER proxy=\$PROXY shm=\$(df -k /dev/shm | awk 'NR == 2 { print \$2 }') data=\$(cat /data/set/words 2>&1)"; sleep 300
EOF
    submit job.yml --grace 1 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 3
    expect_of_pod master.0 '.spec.serviceAccountName' trainer
    expect_of_pod master.0 '.spec.imagePullSecrets[*].name' registry
    expect_of_pod worker.0 '.spec.serviceAccountName' trainer
    expect_of_pod worker.0 '.spec.imagePullSecrets[*].name' registry
    expect_of_pod worker.0 '.spec.containers[0].resources.limits' ''
    expect_of_pod worker.1 '.spec.containers[0].resources.limits.example\.org/accelerator' 1
    expect_of_pod worker.1 '.spec.tolerations[?(@.key=="special")].operator' Exists
    expect_of_pod worker.0 '.spec.tolerations[?(@.key=="special")].operator' ''
    expect_of_pod worker.1 '.spec.nodeName' "$node"
    wait_for 30 "the words of all" all_have_spoken
    said=$(home_run)/logs
    grep -qx 'token=t0 other= proxy=p2 shm=49152 data=.*No such file.*' "$said/master.0.log" || fail "master.0 said $(cat "$said/master.0.log")"
    grep -qx 'token=t0 other= proxy=p2 shm=49152 data=.*No such file.*' "$said/worker.0.log" || fail "worker.0 said $(cat "$said/worker.0.log")"
    grep -qx 'token= other=o1 proxy=p2 shm=49152 data=of the data' "$said/worker.1.log" || fail "worker.1 said $(cat "$said/worker.1.log")"
    on_cluster stop 1
    expect_status 0
    expect_nothing_left
    accelerators remove "$node"
    kubectl delete pvc set --wait=false >/dev/null && cluster kubectl delete pv "$namespace-set" --wait=false >/dev/null
}
all_have_spoken() { [ "$(grep -ls token= "$(home_run)"/logs/*.log | wc -l)" = 3 ]; }

# -- what goes wrong

# Its node is late, here for want of a Secret: by then the leading task, whose name it waits for, has ended.
test_a_task_that_comes_up_late_finds_its_leader_though_that_has_ended() {
    in_namespace late
    job pytorch 'echo up'
    sed -i 's/^    default_worker:/    worker: [{index: 1, secret_refs: [late]}]\n&/' job.yml
    submit job.yml -d
    expect_status 0
    wait_for 60 "the end of the leading task" leader_has_ended
    sleep 3
    kubectl create secret generic late --from-literal=LATE=yes >/dev/null || fail "no secret"
    attached
    expect_status 0
    grep -qx up "$(home_run)/logs/worker.1.log" || fail "the late one has not spoken"
    expect_nothing_left
}
leader_has_ended() { on_cluster status 1 --json && grep -A4 '"name": "master.0"' out | grep -q '"status": "succeeded"'; }

test_a_run_beyond_its_deadline_is_ended_by_the_cluster() {
    in_namespace deadline
    settings 'deadline: 20' # from the start of the pod, before its container is made
    job pytorch 'echo up; sleep 300'
    submit job.yml --grace 1
    expect_status 125
    expect_out 'up$'
    expect_err 'was lost: the pod ran longer than the cluster lets it'
    expect_nothing_left
}

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

# The package for Python, as a variable of the pods: images of users have it installed.
bring_sdk() {
    kubectl create configmap sdk --from-literal="SDK=$(tar cz --exclude=_native.c -C "$TESTS/../sdk/python" myelin | base64 -w0)" >/dev/null || fail "no package"
}
train_with_sdk() { # framework epochs
    sed "s/^framework: .*/&\nbackend: native/; s/n_workers: 3/n_workers: 1\n    default_worker: {config_map_refs: [sdk]}/" "examples/$1/polyaxonfile.yml" |
        sed "s/^environment:/&\n  config_map_refs: [sdk]/; s#cmd: #&echo \$SDK | base64 -d | tar xz -C /tmp; PYTHONPATH=/tmp #" >job.yml
    submit job.yml --image myelin.test/training:1 -P epochs="$2"
}

# expect_metrics_of_a_training TASK...: each logged its start and three epochs, and learned.
expect_metrics_of_a_training() {
    myelin metrics 1 --json
    cp out metrics.json
    python3 - "$@" <<'EOF' || fail "the metrics are not those that were logged"
import json, sys
series = {(entry["name"], entry["task"]): entry for entry in json.load(open("metrics.json"))}
for task in sys.argv[1:]:
    loss = series["loss", task]
    assert loss["count"] == 4 and loss["last"] < loss["max"], loss
    assert series["accuracy", task]["count"] == 4
EOF
}

test_metrics_of_a_training_in_pods_are_those_of_the_run() {
    load_training
    in_namespace metrics
    bring_sdk
    train_with_sdk pytorch 3
    expect_status 0
    expect_learned_in_part
    expect_metrics_of_a_training master.0
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
    submit job.yml
    expect_status 0
    expect_out '^worker\.1 .*line of 2$'
    expect_err 'cannot be asked for what their tasks leave'
    expect_nothing_left
}


test_the_rights_that_are_documented_are_enough() {
    in_namespace rights
    expect_the_documented_rights_to_do
}
