# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# A cluster of two nodes, which subjects that follow each other share, and what such laws are written with: a law that breaks some of it mends that, or its
# subject has a cluster of its own by an empty `shared`. See tests/cluster/README.md. A law that creates something does so in a namespace of its own, by `in_namespace`.
# Most of what a cluster does is waiting: there are two of them, each a lane, and a subject that names none before it reads this file is of the first.
lane=${lane:-cluster}
shared=cluster
packages="containerd runc containernetworking-plugins busybox-static iptables conntrack openssl iproute2 procps
    python3-pip python3-torch python3-numpy python3-typing-extensions python3-yaml python3-six python3-psutil
    python3-cloudpickle python3-cffi python3-packaging openssh-client openmpi-bin libwrap0"

export MYELIN_CLUSTER=$STAGE/$lane MYELIN_CACHE=$CACHE

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

# The loss fell; three epochs do not make a good model.
expect_learned_in_part() {
    local first last
    first=$(sed -n 's/.*epoch  0  loss \([0-9.]*\) .*/\1/p' out)
    last=$(sed -n 's/.*result: loss \([0-9.]*\),.*/\1/p' out)
    awk -v first="$first" -v last="$last" 'BEGIN { exit !(last > 0 && last < first) }' || fail "the loss did not fall: from '$first' to '$last'"
}
