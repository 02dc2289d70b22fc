# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# A cluster of two nodes, started for the laws and stopped after them: see tests/cluster/README.md. A law
# that creates something does so in a namespace of its own, by `in_namespace`.
packages="containerd runc containernetworking-plugins busybox-static iptables conntrack openssl iproute2
    python3-pip python3-torch python3-numpy python3-typing-extensions python3-yaml python3-six python3-psutil
    python3-cloudpickle python3-cffi python3-packaging openssh-client openmpi-bin libwrap0"
alone=yes
limit=300

export MYELIN_CLUSTER=$STAGE/cluster MYELIN_CACHE=$CACHE

cluster() { "$TESTS/cluster/cluster" "$@"; }

prepare() { cluster start --while $$; }

# Nothing is left of it: no process, no control group, no mount, no file but its logs. What waits for our end to stop it
# sees within a second that it need not.
finish() {
    local left i
    cluster stop || return 1
    for ((i = 0; i < 50; i++)); do
        left=$(leftovers)
        [ -n "$left" ] || return 0
        sleep 0.2
    done
    printf '    left behind: %s\n' "$left"
    return 1
}

leftovers() {
    grep -F "$MYELIN_CLUSTER/" /proc/mounts
    find "$MYELIN_CLUSTER" -mindepth 1 -maxdepth 1 ! -name log 2>/dev/null
    find /sys/fs/cgroup -maxdepth 2 -name "$(cluster group)"
    # The pattern is in no command line, lest it be found there.
    grep -slF -f <(echo "$MYELIN_CLUSTER/") /proc/[0-9]*/cmdline
}

# -- what laws are written with

# in_cluster [--user USER] COMMAND...: where the API server is reached, with KUBECONFIG set.
in_cluster() { cluster enter "$@"; }
kubectl() { cluster kubectl ${namespace:+--namespace "$namespace"} "$@"; }

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >wait.out 2>&1; do
        [ $SECONDS -lt $until ] || { cat wait.out; describe; fail "not in time: $what"; }
        sleep 0.3
    done
}

# For a law that fails: what is there, and what happened.
describe() {
    kubectl get pods -o wide
    kubectl get events --sort-by=.lastTimestamp | tail -n 20
}

# The image with Python and PyTorch: for the laws that need it, since it is large.
load_training() { cluster load training || fail "the image with PyTorch cannot be loaded"; }

# in_namespace NAME: what the law creates is in a namespace that is removed at its end.
in_namespace() {
    namespace=$1-$$
    cluster kubectl create namespace "$namespace" >/dev/null || fail "cannot make the namespace $namespace"
    trap 'cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
    wait_for 30 "the account of pods" kubectl get serviceaccount default
}

apply() { kubectl apply -f "$1" >out 2>err || fail "the cluster does not take $1"; }

# expect_succeeded KIND NAME [SECONDS]: the job gets there, and not to its failure.
expect_succeeded() {
    wait_for "${3:-120}" "the end of $1 $2" has_ended "$1" "$2"
    conditions "$1" "$2" | grep -qx Succeeded=True || { describe; fail "$1 $2: $(conditions "$1" "$2" | tr '\n' ' ')"; }
}
has_ended() { conditions "$1" "$2" | grep -qxE '(Succeeded|Failed)=True'; }
conditions() { kubectl get "$1" "$2" -o 'jsonpath={range .status.conditions[*]}{.type}={.status}{"\n"}{end}'; }

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

test_an_mpijob_runs_horovod_on_its_workers() {
    load_training
    in_namespace mpi
    apply "$TESTS/cluster/jobs/mpi.yaml"
    expect_succeeded mpijob mpi 200
    kubectl logs -l training.kubeflow.org/job-role=launcher --tail=-1 >out
    expect_out 'rank 0 of 2 total 3.0'
    expect_out 'rank 1 of 2 total 3.0'
    expect_environments mpi.environment
}

test_pytorch_trains_in_pods() {
    load_training
    in_namespace training
    kubectl create configmap program --from-file=examples/pytorch/train.py >/dev/null || fail "no config map"
    sed 's/replicas: 2/replicas: 1/; s,small:1,pytorch:1,
        s,command: .*,command: [python3\, /program/train.py\, --epochs=3\, --lr=0.02]\n              volumeMounts: [{name: program\, mountPath: /program}],
        s,^\( *\)containers:,\1volumes: [{name: program\, configMap: {name: program}}]\n&,' "$TESTS/cluster/jobs/pytorch.yaml" >job.yaml
    apply job.yaml
    expect_succeeded pytorchjob pytorch 240
    kubectl logs pytorch-master-0 >out
    expect_out 'rank 0 of 2: weights equal$'
    expect_learned_in_part
}

# The loss fell; three epochs do not make a good model.
expect_learned_in_part() {
    local first last
    first=$(sed -n 's/.*epoch  0  loss \([0-9.]*\) .*/\1/p' out)
    last=$(sed -n 's/.*result: loss \([0-9.]*\),.*/\1/p' out)
    awk -v first="$first" -v last="$last" 'BEGIN { exit !(last > 0 && last < first) }' || fail "the loss did not fall: from '$first' to '$last'"
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
