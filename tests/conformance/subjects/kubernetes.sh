# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# A cluster of two nodes, started for the laws and stopped after them: see tests/cluster/README.md. A law
# that creates something does so in a namespace of its own, by `in_namespace`.
. "$TESTS/conformance/cluster.sh"
alone=yes
limit=300

# What the operator put into the environment of each pod, which prints it: all but what every pod has.
environments() {
    local pod
    for pod in $(kubectl get pods -o name | sort); do
        kubectl logs "$pod" 2>/dev/null | grep -E '^[A-Z][A-Za-z0-9_]*=' |
            grep -vE '^(KUBERNETES_.*|HOSTNAME|HOME|PATH|PWD|SHLVL|_|PROGRAM|.*_(SERVICE|PORT)_.*)=' | LC_ALL=C sort |
            sed "s,^,${pod#pod/} ,; s,-launcher-[a-z0-9]* ,-launcher ,; s,\.$namespace\.,.NAMESPACE.,g"
    done
}

# expect_environments FILE: they are as recorded in tests/cluster/jobs.
expect_environments() {
    environments >seen
    diff -u "$TESTS/cluster/jobs/$1" seen || fail "the operator gives pods another environment than $1 says"
}

# -- laws

test_every_part_runs_and_both_nodes_are_ready() {
    cluster status >out 2>err || fail "no status"
    ! grep 'does not run' out || fail "a part does not run"
    expect_out '^etcd runs$'
    expect_out '^kubelet2 runs$'
    kubectl wait --for=condition=Ready --timeout=10s node/node1 node/node2 >/dev/null || fail "a node is not ready"
}

test_another_user_reaches_the_api_server() {
    # The cache is closed to others.
    cp "$CACHE/cluster/bin/kubernetes" kubectl
    in_cluster --user nobody sh -c 'id -un; exec ./kubectl auth whoami' >out 2>err || fail "nobody does not reach it"
    expect_out '^nobody$'
    expect_out '^Username +admin$'
}

test_pods_of_both_nodes_find_each_other_by_name() {
    in_namespace names
    cat >pods.yaml <<'EOF'
apiVersion: v1
kind: Service
metadata: {name: gang}
spec: {clusterIP: None, selector: {gang: "yes"}, publishNotReadyAddresses: true}
---
apiVersion: v1
kind: Pod
metadata: {name: server, labels: {gang: "yes"}}
spec:
  hostname: server
  subdomain: gang
  nodeName: node1
  restartPolicy: Never
  containers: [{name: main, image: "myelin.test/small:1", command: [nc, -l, -p, "7000", -e, echo, welcome]}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  nodeName: node2
  restartPolicy: Never
  containers:
    - name: main
      image: myelin.test/small:2
      command: [sh, -c, 'until nc server.gang 7000 </dev/null 2>/dev/null | grep welcome; do sleep 0.5; done']
EOF
    apply pods.yaml
    wait_for 60 "the client" kubectl wait --for=jsonpath='{.status.phase}'=Succeeded --timeout=1s pod/client
    [ "$(kubectl logs client)" = welcome ] || fail "the client heard: $(kubectl logs client)"
}

test_a_tfjob_succeeds_with_the_environment_on_record() {
    in_namespace tensorflow
    apply "$TESTS/cluster/jobs/tensorflow.yaml"
    expect_succeeded tfjob tensorflow
    expect_environments tensorflow.environment
}

test_a_pytorchjob_succeeds_with_the_environment_on_record() {
    in_namespace pytorch
    apply "$TESTS/cluster/jobs/pytorch.yaml"
    expect_succeeded pytorchjob pytorch
    expect_environments pytorch.environment
}

test_an_mxjob_succeeds_with_the_environment_on_record() {
    in_namespace mxnet
    apply "$TESTS/cluster/jobs/mxnet.yaml"
    expect_succeeded mxjob mxnet
    expect_environments mxnet.environment
}

test_pods_outlive_the_api_server() {
    in_namespace outage
    kubectl run sleeper --image=myelin.test/small:1 --restart=Never --command -- sleep 600 >/dev/null || fail "no pod"
    wait_for 60 "the pod" kubectl wait --for=condition=Ready --timeout=1s pod/sleeper
    cluster halt apiserver KILL
    ! kubectl --request-timeout=2s get pods >out 2>err || fail "the API server answers though it was killed"
    cluster resume apiserver
    wait_for 60 "the API server" kubectl get --raw /readyz
    wait_for 60 "the pod's shell" kubectl exec sleeper -- true
    [ "$(kubectl get pod sleeper -o 'jsonpath={.status.containerStatuses[0].restartCount}')" = 0 ] || fail "the pod was restarted"
}

test_the_cluster_has_the_other_mpijob_when_asked() {
    cluster operator mpi v1 || fail "no MPIJob v1"
    in_namespace mpi-v1
    apply "$TESTS/cluster/jobs/mpi-v1.yaml"
    expect_succeeded mpijob mpi-v1
    kubectl logs mpi-v1-launcher >out
    expect_out '^mpi-v1-worker-1$'
    kubectl delete mpijob mpi-v1 >/dev/null
    cluster operator mpi v2beta1 || fail "no way back to MPIJob v2beta1"
    [ "$(kubectl get crd mpijobs.kubeflow.org -o 'jsonpath={.spec.versions[*].name}')" = v2beta1 ] || fail "it is not back"
}

test_a_cluster_that_crashed_is_started_again() {
    cluster kubectl get nodes -o 'jsonpath={.items[*].metadata.creationTimestamp}' >before || fail "no nodes"
    kill -KILL "$(cat "$MYELIN_CLUSTER/machine.pid")"
    ! cluster kubectl get nodes >out 2>err || fail "it lives though its first process was killed"
    expect_err 'no cluster runs'
    cluster start >out 2>err || fail "it does not start again"
    cluster kubectl get nodes -o 'jsonpath={.items[*].metadata.creationTimestamp}' >after || fail "no nodes"
    ! cmp -s before after || fail "it is the old cluster"
}
