# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Bad days of runs on a real cluster, and running again after them.
lane=cluster2
. "$TESTS/conformance/cluster_runs.sh"
backend=native

# -- attempts

# record_objects: writes each change of pods and of what owns them, each with the moment that the cluster itself gives it.
record_objects() {
    local kind
    for kind in pods configmaps pytorchjobs; do
        cluster kubectl --namespace "$namespace" get "$kind" -l app.kubernetes.io/managed-by=myelin --watch --output-watch-events \
            -o 'jsonpath={.type} {.object.kind} {.object.metadata.labels.myelin/attempt} {.object.metadata.resourceVersion} {.object.metadata.name}{"\n"}' \
            >"changes.$kind" 2>/dev/null &
        recorders+=($!)
    done
    trap 'kill "${recorders[@]}"; cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
}

expect_attempts_apart() { # attempts
    sleep 1 # until the last changes are written
    cat changes.* >changes
    python3 - "$1" <<'EOF' || { sort -n -k4 changes; fail "attempts are not one after the other"; }
import re, sys
made, gone = {}, {}
for line in open("changes"):
    change, kind, attempt, moment, name = line.split()
    # What else the owner has goes with it, and holds nothing.
    is_owner = re.fullmatch(f"myelin-[0-9a-f]+-{attempt}", name)
    if kind != "Pod" and not is_owner:
        continue
    if change in ("ADDED", "DELETED"):
        (made if change == "ADDED" else gone).setdefault(int(attempt), []).append(int(moment))
assert sorted(made) == list(range(int(sys.argv[1]))), f"other attempts: {made}"
for attempt in made:
    # Three pods and their owner.
    assert len(made[attempt]) == len(gone[attempt]) == 4, f"other objects in {attempt}: {made}, {gone}"
    assert attempt == 0 or max(gone[attempt - 1]) < min(made[attempt]), f"{attempt} overlaps: {made}, {gone}"
EOF
}

# A task that does not end when it is told to is what an impatient restart would run into.
expect_attempts_one_after_the_other() { # seconds that the master stays for the others to find it
    in_namespace attempts
    recorders=()
    record_objects
    job pytorch 'trap "" TERM; echo attempt $MYELIN_ATTEMPT; sleep 2; case $MYELIN_ATTEMPT.$RANK in 2.0) sleep '"$1"'; exit 0;; 2.*) exit 0;; *.1) exit 4;; esac; sleep 300'
    sed -i 's/^environment:/&\n  max_restarts: 2/' job.yml
    submit job.yml --grace 3 --backoff 1
    expect_status 0
    expect_out 'attempt 2'
    expect_err 'attempt 0 failed: worker\.0 exited with code 4.*; attempt 1 \(restart 1 of 2\) starts in 1s'
    expect_err 'attempt 1 failed: worker\.0 exited with code 4.*; attempt 2 \(restart 2 of 2\) starts in 2s'
    expect_nothing_left
    expect_attempts_apart 3
    on_cluster status 1 --json
    python3 -c 'import json
attempts = json.load(open("out"))["attempts"]
assert [attempt["status"] for attempt in attempts] == ["failed", "failed", "succeeded"], attempts' 2>err || fail "another history"
}

test_an_attempt_of_native_pods_begins_when_nothing_of_the_last_is_left() { expect_attempts_one_after_the_other 0; }

test_an_attempt_of_a_kubeflow_job_begins_when_nothing_of_the_last_is_left() {
    backend=kubeflow
    expect_attempts_one_after_the_other 20
}

# -- runs made from others

# claim NAME: a claim on a folder that both nodes see.
claim() {
    mkdir -p "$MYELIN_CLUSTER/volumes/$namespace"
    chmod 777 "$MYELIN_CLUSTER/volumes/$namespace"
    cat >claim.yml <<EOF
apiVersion: v1
kind: PersistentVolume
metadata: {name: $namespace}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {namespace: $namespace, name: $1}
  hostPath: {path: $MYELIN_CLUSTER/volumes/$namespace}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1, namespace: $namespace}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: $namespace
  resources: {requests: {storage: 1Gi}}
EOF
    kubectl create -f claim.yml >/dev/null || fail "no claim"
    trap 'cluster kubectl delete namespace "$namespace" --wait=false >/dev/null; cluster kubectl delete pv "$namespace" --wait=false >/dev/null' EXIT
}

test_a_run_is_resumed_with_its_outputs_on_the_claim() {
    in_namespace resume
    claim runs
    settings "outputs: {claim: runs, sub_path: of/ada}"
    job pytorch 'if [ "$RANK" = 0 ]; then echo $MYELIN_RUN_ID >>"$MYELIN_OUTPUTS_PATH/runs"; echo runs $(cat "$MYELIN_OUTPUTS_PATH/runs"); fi; sleep 1'
    submit job.yml
    expect_status 0
    expect_out 'runs 1$'
    on_cluster resume 1 --plain
    expect_status 0
    expect_out 'runs 1 2$'
    on_cluster resume 2 --plain
    expect_status 0
    expect_out 'runs 1 2 3$'
    on_cluster restart 3 --plain
    expect_status 0
    expect_out 'runs 4$'
    on_cluster rm 1
    [ "$status" -ne 0 ] || fail "a run whose outputs others go on with was removed"
    on_cluster copy 1
    expect_status 125
    expect_err "outputs on a cluster are not copied: .*'myelin resume 1' goes on"
    on_cluster rerun 1
    expect_status 125
    expect_err "the code is what the image holds.*'myelin restart 1'"
    on_cluster resume 1 --on this-machine
    expect_status 125
    expect_err 'tasks of this machine do not see them'
    on_cluster resume 1 --namespace default
    expect_status 125
    expect_err "the outputs of run 1 are on .*, namespace $namespace, and nowhere else"
    settings "outputs: {claim: other}"
    on_cluster resume 1
    expect_status 125
    expect_err 'are on the claim `runs/of/ada`, and `outputs` in config.yml names `other` now'
    expect_nothing_left
}

test_a_run_that_goes_on_unwatched_is_not_resumed() {
    in_namespace unwatched
    claim runs
    settings "outputs: {claim: runs}"
    start_long
    leave_alone
    on_cluster resume 1
    expect_status 125
    expect_err "run 1 goes on on its cluster, and nobody watches it \('myelin attach 1'"
    on_cluster stop 1
    expect_status 0
    expect_nothing_left
}

# Who takes over a run that was resumed makes its next attempt with the same outputs.
test_a_run_that_was_resumed_keeps_its_outputs_when_it_is_taken_over() {
    in_namespace keeps
    claim runs
    settings "outputs: {claim: runs}"
    job pytorch 'if [ "$RANK" = 0 ]; then echo $MYELIN_RUN_ID.$MYELIN_ATTEMPT >>"$MYELIN_OUTPUTS_PATH/runs"; echo runs $(cat "$MYELIN_OUTPUTS_PATH/runs"); fi; sleep 15; case $MYELIN_RUN_ID.$MYELIN_ATTEMPT in 2.0) exit 3;; esac'
    sed -i 's/^environment:/&\n  max_restarts: 1/' job.yml
    submit job.yml --grace 1
    expect_status 0
    on_cluster resume 1 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 3
    keeper=$(cat "$SCRATCH/home/.myelin/runs/2/lock")
    kill -STOP "$keeper"
    # shellcheck disable=SC2046
    kill -KILL $(grep -lsE "^PPid:[[:space:]]+$keeper\$" /proc/[0-9]*/status | sed -E 's,/proc/([0-9]+)/.*,\1,') "$keeper"
    on_cluster attach --from-start --plain 2
    expect_status 0
    on_cluster logs 2
    expect_out 'runs 1.0 2.0 2.1$'
    expect_nothing_left
}

test_a_run_is_restarted_where_it_was_whatever_the_settings_say_now() {
    in_namespace place
    settings "namespace: $namespace, image: myelin.test/small:2"
    job pytorch 'cat /etc/image 2>/dev/null; sleep 1'
    sed -i '/^build:/d' job.yml
    on_cluster run --plain --on kubernetes job.yml
    expect_status 0
    settings "namespace: elsewhere, image: myelin.test/nowhere:1"
    on_cluster restart 1 --plain
    expect_status 0
    on_cluster status 2 --json
    python3 -c 'import json, sys
run = json.load(open("out"))
assert (run["namespace"], run["image"], run["volume"]) == (sys.argv[1], "myelin.test/small:2", None), run' "$namespace" 2>err || fail "another place"
    on_cluster resume 1
    expect_status 125
    expect_err "the outputs of run 1 were its pods' own, and went with them: name a claim"
    expect_nothing_left
}

# -- pods that are taken away

pod_of() { kubectl get pods -l "myelin/role=${1%.*},myelin/index=${1#*.}" -o 'jsonpath={.items[0].metadata.name}'; }

# start_again: as start_long, and may be begun again once: the second time it ends soon.
start_again() {
    job pytorch 'echo up $MYELIN_ATTEMPT; if [ "$MYELIN_ATTEMPT" = 0 ]; then sleep 300; fi'
    sed -i 's/^environment:/&\n  max_restarts: 1/' job.yml
    submit job.yml --grace 1 --backoff 0 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 3
}

expect_begun_again() { # why
    attached
    expect_status 0
    expect_err "attempt 0 failed: $1.*; attempt 1 \(restart 1 of 1\) starts now"
    expect_out 'up 1'
    expect_nothing_left
}

test_a_pod_that_somebody_deletes_is_followed_by_another_attempt() {
    in_namespace deleted
    start_again
    kubectl delete pod "$(pod_of worker.1)" --wait=false >/dev/null
    expect_begun_again 'worker\.1 was lost: somebody deleted the pod before it was done'
}

# As `kubectl drain` does it.
test_a_pod_that_is_evicted_is_followed_by_another_attempt() {
    in_namespace evicted
    start_again
    echo "{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$(pod_of worker.0)\", \"namespace\": \"$namespace\"}}" >eviction.json
    cluster kubectl create --raw "/api/v1/namespaces/$namespace/pods/$(pod_of worker.0)/eviction" -f eviction.json >/dev/null || fail "no eviction"
    expect_begun_again 'worker\.0 was lost: the pod was evicted, as when a node is drained'
}

# A limit that the file does not have: the namespace gives it to every container.
test_a_pod_that_its_node_evicts_is_named_with_the_reason() {
    in_namespace pressure
    cat >limits.yml <<EOF
apiVersion: v1
kind: LimitRange
metadata: {name: little}
spec: {limits: [{type: Container, default: {ephemeral-storage: 4Mi}, defaultRequest: {ephemeral-storage: 1Mi}}]}
EOF
    kubectl create -f limits.yml >/dev/null || fail "no limits"
    job pytorch 'if [ "$RANK" = 1 ]; then dd if=/dev/zero of="$MYELIN_OUTPUTS_PATH/large" bs=1M count=16; fi; sleep 300'
    submit job.yml --grace 1
    expect_status 125
    expect_blamed worker.0
    expect_err 'the node evicted the pod: .*ephemeral'
    expect_nothing_left
}

# -- nodes

# start_on_second COMMAND [RESTARTS]: worker.1 is on the node that a label names, at first the second one.
start_on_second() {
    trap 'cluster resume kubelet2; cluster kubectl label nodes --all faults- >/dev/null; cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
    cluster kubectl label node node2 faults=here >/dev/null
    cat >job.yml <<EOF
version: 1
kind: experiment
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  max_restarts: ${2:-0}
  node_selector: {kubernetes.io/hostname: node1}
  replicas:
    n_workers: 2
    default_worker: {node_selector: {kubernetes.io/hostname: node1}}
    worker: [{index: 1, node_selector: {faults: here}${tolerations:+, $tolerations}}]
run: {cmd: '$1'}
EOF
    submit job.yml --grace 1 --backoff 0 -d
    expect_status 0
    wait_for 90 "the tasks" all_up 3
    cluster halt kubelet2 KILL
}
has_noticed() { grep -qE "$1" "$SCRATCH/home/.myelin/runs/1/events.jsonl"; }
is_over() { on_cluster status 1 --json; grep -qE '"status": "(failed|stopped|succeeded)"' out; }
in_attempt() { [ "$(kubectl get pods -l "myelin/attempt=$1" --no-headers 2>/dev/null | grep -c ' Running ')" = 3 ]; }
no_process() { ! pgrep -f "$1" >/dev/null; }

test_a_run_whose_node_is_lost_begins_again_and_the_node_may_come_back() {
    local mark=$((RANDOM + 40000))
    tolerations="tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}]"
    in_namespace node
    start_on_second "if [ \$MYELIN_ATTEMPT = 0 ]; then exec sleep $mark; fi; sleep 40" 1
    wait_for 90 "a word on the node" has_noticed 'the node node2 of worker.1 does not answer'
    cluster kubectl label node node2 faults- >/dev/null
    cluster kubectl label node node1 faults=here >/dev/null
    wait_for 120 "the next attempt" in_attempt 1
    pgrep -f "sleep $mark" >/dev/null || fail "the node was to keep what it runs"
    cluster resume kubelet2
    attached
    expect_status 0
    expect_err 'attempt 0 failed: worker\.1 was lost: the node of the pod is lost.*; attempt 1 \(restart 1 of 1\) starts now'
    expect_err 'worker\.1 may still run on node2, which does not answer: the node ends it when it is back'
    expect_nothing_left
    wait_for 60 "the end of what the node kept" no_process "sleep $mark"
}

test_a_run_whose_node_does_not_answer_is_stopped_all_the_same() {
    in_namespace silent
    start_on_second "exec sleep 300"
    wait_for 90 "a word on the node" has_noticed 'the node node2 of worker.1 does not answer'
    on_cluster stop 1
    expect_status 0
    expect_err 'worker\.1 may still run on node2'
    no_pods || fail "pods are left"
    on_cluster status 1
    expect_out 'left behind +worker\.1 may still run on node2'
    cluster resume kubelet2
    wait_for 90 "the node" cluster kubectl wait --for=condition=Ready --timeout=1s node/node2
}

# -- who watches it

# asleep SECONDS COMMAND...: both who watch the run stand still meanwhile, as on a laptop that is closed.
asleep() {
    local both seconds=$1
    both="$(supervisor) $(cat "$SCRATCH/home/.myelin/runs/1/lock")"
    shift
    # shellcheck disable=SC2086
    kill -STOP $both
    "$@"
    sleep "$seconds"
    # shellcheck disable=SC2086
    kill -CONT $both
}
restart_api() {
    cluster halt apiserver KILL
    cluster resume apiserver
}

test_a_run_that_ends_while_its_supervisor_sleeps_is_told_as_it_was() {
    in_namespace asleep
    start_long
    asleep 45 restart_api
    attached
    expect_status 0
    expect_every_line_once
    expect_nothing_left
}

# What lies between forgets connections without a word: nothing that is sent on them arrives, and nobody refuses it.
forget_connections() {
    local port
    for port in $(in_cluster ss -Htnp state established dport = :6443 | grep "pid=$(supervisor)," | awk '{ print $3 }' | sed 's/.*://'); do
        in_cluster iptables -I INPUT -p tcp --sport "$port" --dport 6443 -j DROP
        in_cluster iptables -I INPUT -p tcp --sport 6443 --dport "$port" -j DROP
        ports+=("$port")
    done
}
remember_connections() {
    local port
    for port in "${ports[@]}"; do
        in_cluster iptables -D INPUT -p tcp --sport "$port" --dport 6443 -j DROP
        in_cluster iptables -D INPUT -p tcp --sport 6443 --dport "$port" -j DROP
    done
}

test_connections_that_died_in_the_sleep_are_made_anew() {
    in_namespace forgotten
    ports=()
    trap 'remember_connections; cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
    start_long
    asleep 20 forget_connections
    [ "${#ports[@]}" -gt 0 ] || fail "no connection was found"
    attached
    expect_status 0
    expect_every_line_once
    expect_nothing_left
}

test_a_kill_without_a_cluster_ends_and_says_what_it_leaves_behind() {
    local line
    in_namespace dead
    start_long
    cluster halt apiserver KILL
    trap 'cluster resume apiserver; wait_for 60 "the API server" kubectl get --raw /readyz; cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
    on_cluster kill 1
    expect_status 0
    expect_err "left behind: the cluster could not be reached: .*'kubectl --namespace $namespace delete configmaps [a-z0-9-]*' removes"
    on_cluster status 1
    expect_out 'left behind +the cluster could not be reached'
    line=$(sed -n "s/.*left behind.*'kubectl \(.*\)' removes.*/\1/p" out)
    cluster resume apiserver
    wait_for 60 "the API server" kubectl get --raw /readyz
    all_up 3 || fail "the tasks were to go on"
    # shellcheck disable=SC2086
    cluster kubectl $line >/dev/null || fail "the line that is told does not work: $line"
    expect_nothing_left
}

# -- from inside

# An image with the program and what it is linked to, and the library that it loads.
load_program() {
    local name
    mkdir -p root/usr/{bin,lib,lib64} root/tmp root/root
    for name in bin lib lib64; do ln -s "usr/$name" "root/$name"; done
    cp /bin/busybox root/usr/bin/busybox
    for name in sh cat sleep; do ln -s busybox "root/usr/bin/$name"; done
    cp "$MYELIN" root/usr/bin/myelin
    /usr/bin/python3 "$TESTS/cluster/image.py" program.tar --root root --package libcurl4 --name myelin.test/program:1 >image.log 2>&1 ||
        { cat image.log; fail "no image"; }
    cluster load "$PWD/program.tar" || fail "the image cannot be loaded"
}

# The account of the pod has the documented rights, and nothing else tells it of the cluster.
test_a_pod_runs_a_gang_of_its_own_cluster_with_its_account() {
    in_namespace inside
    load_program
    as_runner
    job pytorch 'echo rank $RANK; sleep 1'
    kubectl create configmap job --from-file=job.yml >/dev/null || fail "no file"
    cat >pod.yml <<EOF
apiVersion: v1
kind: Pod
metadata: {name: inside}
spec:
  serviceAccountName: runner
  restartPolicy: Never
  containers:
  - name: myelin
    image: myelin.test/program:1
    command: [myelin, run, --plain, --on, kubernetes, /job/job.yml]
    env: [{name: HOME, value: /root}]
    volumeMounts: [{name: job, mountPath: /job}]
  volumes: [{name: job, configMap: {name: job}}]
EOF
    kubectl create -f pod.yml >/dev/null || fail "no pod"
    wait_for 120 "the end of the pod" has_phase inside Succeeded Failed
    kubectl logs inside >out 2>err
    for rank in 0 1 2; do expect_out "rank $rank\$"; done
    expect_out '^run 1 succeeded'
    has_phase inside Succeeded || fail "the pod failed"
    kubectl delete pod inside --wait=false >/dev/null
    expect_nothing_left
}
has_phase() { # pod phase...
    local phase wanted
    phase=$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')
    shift
    for wanted; do [ "$phase" != "$wanted" ] || return 0; done
    return 1
}

# -- nobody comes back

# documented PATTERN: the line of a shell in docs/kubernetes.md that has it, with the uuid of run 1 in its place.
documented() {
    local uuid
    on_cluster status 1 --json
    uuid=$(python3 -c 'import json; print(json.load(open("out"))["uuid"])')
    sed -nE "/^kubectl .*$1/ { s/ +#.*//; s/UUID/$uuid/; s/^kubectl //p }" "$TESTS/../docs/kubernetes.md"
}
none_runs() { ! kubectl get pods -o 'jsonpath={.items[*].status.phase}' | grep -qE 'Running|Pending'; }

expect_abandoned_run_to_end_and_to_be_removed() {
    local line
    in_namespace abandoned
    settings "linger: 10" # else a pod of our own waits ten minutes for somebody who fetches what is left
    start_long
    leave_alone
    on_cluster rm 1
    expect_status 1
    expect_err 'run 1 goes on on its cluster: stop it first'
    wait_for 90 "the end of the tasks by themselves" none_runs
    line=$(documented 'get pods')
    # shellcheck disable=SC2086
    kubectl $line >found || fail "the documented line fails: kubectl $line"
    [ "$(kubectl get pods -o name | wc -l)" = "$(grep -c ^myelin- found)" ] || { cat found; fail "ended pods are not found: kubectl $line"; }
    line=$(documented delete)
    # shellcheck disable=SC2086
    kubectl $line >/dev/null || fail "the documented line fails: kubectl $line"
    expect_nothing_left
}

test_native_pods_that_nobody_watches_end_and_are_removed_by_the_documented_line() { expect_abandoned_run_to_end_and_to_be_removed; }

test_a_kubeflow_job_that_nobody_watches_ends_and_is_removed_by_the_documented_line() {
    backend=kubeflow
    expect_abandoned_run_to_end_and_to_be_removed
}

test_a_run_that_nobody_watches_is_ended_before_it_is_removed_by_force() {
    in_namespace force
    start_long
    leave_alone
    on_cluster rm --force 1
    expect_status 0
    expect_out 'removed run 1'
    no_pods || fail "pods are left"
    expect_nothing_left
}
