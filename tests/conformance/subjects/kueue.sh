# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Gangs of native pods that a real Kueue admits: it holds them back as a whole, and lets go of them however they end.
. "$TESTS/conformance/cluster_runs.sh"
backend=native

prepare() { cluster start --while $$ && cluster operator kueue; }

# queue CPUS: a queue of the law's namespace, with room for so many.
queue() {
    in_namespace queue
    cluster kubectl label namespace "$namespace" kueue=yes >/dev/null || fail "no label"
    cat >queue.yml <<END
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: $namespace}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $namespace}}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: $1}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: research, namespace: $namespace}
spec: {clusterQueue: $namespace}
END
    apply queue.yml
    settings 'queue: research'
}

# gang FILE COMMAND: two tasks of a tenth of a CPU.
gang() {
    cat >"$1" <<END
version: 1
kind: experiment
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  resources: {cpu: {requests: 0.1}}
  replicas: {n_workers: 1, default_worker: {resources: {cpu: {requests: 0.1}}}}
run: {cmd: "$2"}
END
}

expect_kueue_to_have_nothing_left() {
    expect_nothing_left
    wait_for 60 "no workload left" no_workloads
    kubectl delete localqueues,clusterqueues --all --wait=false >/dev/null
}
no_workloads() { [ -z "$(kubectl get workloads.kueue.x-k8s.io -o name)" ]; }
is_held_by_kueue() { on_cluster why "$1" && grep 'it has 2 pods: 2 held back by Kueue until it admits them' out; }
has_ended_well() { on_cluster status "$1" --json && grep -E '"status": "succeeded"' out; }

test_a_gang_waits_until_the_queue_has_room_for_all_of_it_and_then_runs() {
    queue 300m
    gang first.yml 'sleep 300'
    gang second.yml 'echo ran'
    submit first.yml --grace 1 -d
    expect_status 0
    wait_for 60 "the first" all_up 2
    submit second.yml --grace 1 -d
    expect_status 0
    wait_for 60 "the second at Kueue's gate" is_held_by_kueue 2
    ! grep -q turn out || fail "why tells of turns that there are not"
    on_cluster stop 1
    expect_status 0
    wait_for 60 "the end of the second" has_ended_well 2
    expect_kueue_to_have_nothing_left
}

test_a_gang_that_fails_ends_and_leaves_nothing() {
    queue 1
    gang job.yml 'if [ \"$RANK\" = 1 ]; then exit 3; fi; sleep 300'
    submit job.yml --grace 1
    expect_status 3
    expect_blamed worker.0
    expect_kueue_to_have_nothing_left
}

test_a_gang_that_is_stopped_before_it_is_admitted_leaves_nothing() {
    queue 100m
    gang job.yml 'sleep 300'
    submit job.yml --grace 1 -d
    expect_status 0
    wait_for 60 "the gang at Kueue's gate" is_held_by_kueue 1
    on_cluster stop 1
    expect_status 0
    expect_kueue_to_have_nothing_left
}

test_a_single_task_is_a_pod_of_its_own() {
    queue 1
    gang job.yml 'echo ran'
    sed -i 's/n_workers: 1/n_workers: 0/' job.yml
    submit job.yml --grace 1
    expect_status 0
    expect_out 'ran$'
    expect_kueue_to_have_nothing_left
}
