# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# What happens inside the cluster's machine: a process tree with PID, mount and network namespaces of its own,
# which `cluster` makes, and which takes everything with it when its first process ends. Node 1 is the
# machine itself, with the control plane beside its kubelet; node 2 has its own network and mounts.
#
#   10.244.N.0/24   the pods of node N, on the bridge `pods`, whose address 10.244.N.1 is the node's
#   10.96.0.0/16    services
#   10.250.2.0/30   between the nodes; there is no way out
#
# Every part is one file, $state/parts/NAME, that starts it; beside it are its process id and its log.
# Sourced by `cluster`.

pki=$state/pki
api=https://10.244.1.1:6443
node_pid() { cat "$state/node$1.pid"; }
on_node() { # node command...
    local node=$1
    shift
    if [ "$node" = 1 ]; then "$@"; else nsenter --target "$(node_pid "$node")" --net --mount -- "$@"; fi
}
kubectl_here() { "$cache/bin/kubectl" --kubeconfig "$pki/admin.kubeconfig" "$@"; }

# -- parts

# part NAME NODE COMMAND...: describes a part, and starts it.
part() {
    local name=$1 node=$2
    shift 2
    {
        printf '#!/bin/sh\nexec '
        [ "$node" = 1 ] || printf 'nsenter --target %s --net --mount -- ' "$(node_pid "$node")"
        printf '%q ' "$@"
        printf '\n'
    } >"$state/parts/$name"
    chmod 755 "$state/parts/$name"
    start_part "$name"
}

# What is locked for its start is not so for as long as it runs.
start_part() { # name
    [ -x "$state/parts/$1" ] || die "no part '$1'; there are: $(list_parts)"
    ! part_lives "$1" || return 0
    setsid "$state/parts/$1" >>"$state/log/$1" 2>&1 </dev/null 9>&- &
    echo $! >"$state/parts/$1.pid"
}

part_lives() { # name
    local pid
    pid=$(cat "$state/parts/$1.pid" 2>/dev/null) && [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null &&
        ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null
}

# halt_part NAME [SIGNAL]: without a signal in good order, and in 10 seconds at most.
halt_part() {
    local pid i
    [ -x "$state/parts/$1" ] || die "no part '$1'; there are: $(list_parts)"
    part_lives "$1" || return 0
    pid=$(cat "$state/parts/$1.pid")
    kill -"${2:-TERM}" "$pid"
    for ((i = 0; i < 100; i++)); do
        part_lives "$1" || return 0
        sleep 0.1
    done
    kill -KILL "$pid"
}

list_parts() { local file; for file in "$state"/parts/*.pid; do basename "$file" .pid; done | tr '\n' ' '; }

part_states() {
    local name
    for name in $(list_parts); do
        if part_lives "$name"; then echo "$name runs"; else echo "$name does not run"; fi
    done
}

# wait_until SECONDS WHAT COMMAND...
wait_until() {
    local until=$((SECONDS + $1)) what=$2 said
    shift 2
    while ! said=$("$@" 2>&1); do
        [ $SECONDS -lt $until ] || die "$what: not in time ($said); see the logs in $state/log"
        sleep 0.1
    done
}

# -- certificates

authority() {
    mkdir -p "$pki"
    cd "$pki" || exit 2
    openssl ecparam -genkey -name prime256v1 -out ca.key
    openssl req -x509 -new -key ca.key -subj /CN=cluster -days 30 -out ca.crt
    openssl genrsa -out accounts.key 2048
    openssl rsa -in accounts.key -pubout -out accounts.pub
}

# certificate NAME SUBJECT [NAMES]: for servers and clients alike.
certificate() {
    printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n%s\n' \
        "${3:+subjectAltName=$3}" >"$1.ext"
    openssl ecparam -genkey -name prime256v1 -out "$1.key"
    openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt"
    cat >"$1.kubeconfig" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "$api", certificate-authority-data: $(base64 -w0 ca.crt)}}]
users: [{name: user, user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}}]
contexts: [{name: cluster, context: {cluster: cluster, user: user}}]
current-context: cluster
EOF
}

certificates() {
    local n
    authority
    certificate apiserver /CN=kube-apiserver \
        IP:127.0.0.1,IP:10.96.0.1,IP:10.244.1.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
    certificate admin /O=system:masters/CN=admin
    certificate kube-controller-manager /CN=system:kube-controller-manager
    certificate kube-scheduler /CN=system:kube-scheduler
    certificate kube-proxy /CN=system:kube-proxy
    certificate kubelet-client /O=system:masters/CN=apiserver-kubelet-client
    for n in 1 2; do certificate "node$n" "/O=system:nodes/CN=system:node:node$n" "DNS:node$n,IP:10.244.$n.1"; done
    # Whoever is let into the cluster's network may be its administrator: tests run as other users too.
    chmod 644 admin.kubeconfig
}

# -- what a node stands on

# The kubelet sets these for the whole machine, unless they are so already: it is shown files instead.
shown_settings="vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000"

# Paths that a kubelet has no option for are this node's own.
private_mounts() { # node
    local setting folder
    mkdir -p "$state/node$1/shown"
    for setting in $shown_settings; do
        folder=$state/node$1/shown/$(tr / . <<<"${setting%=*}")
        echo "${setting#*=}" >"$folder"
        mount --bind "$folder" "/proc/sys/${setting%=*}"
    done
    for folder in /var/lib/kubelet /var/log/containers /var/log/pods /run/netns; do
        # What is made to mount over is outside too, and goes when the cluster stops.
        [ -d "$folder" ] || { mkdir -p "$folder" && echo "$folder" >>"$state/made"; }
        mount -t tmpfs tmpfs "$folder"
    done
}

# shellcheck disable=SC2016
network() { # node
    on_node "$1" sh -eu -c '
        ip link set lo up
        # A bridge without an address of its own takes the lowest of its ports, and changes it as pods come and
        # go; pods would then speak to a gateway that is gone.
        ip link add pods address "02:00:0a:f4:0$1:01" type bridge
        ip addr add "10.244.$1.1/24" dev pods
        ip link set pods up
        # What kube-proxy redirects must have somewhere to go before it is redirected.
        ip route add 10.96.0.0/16 dev pods
        sysctl -qw net.ipv4.ip_forward=1
        sysctl -qw net.bridge.bridge-nf-call-iptables=1 || echo "no br_netfilter: services may not answer their own pods"
        ' sh "$1"
}

second_node() {
    unshare --net --mount --propagation private setsid "$cache/bin/pause" </dev/null >/dev/null 2>&1 &
    echo $! >"$state/node2.pid"
    wait_until 10 "the second node" has_own_network "$(node_pid 2)"
    on_node 2 "$here/cluster" inside private_mounts 2
    network 2
    ip link add node2 type veth peer name node1 netns "$(node_pid 2)"
    ip addr add 10.250.2.1/30 dev node2
    ip link set node2 up
    on_node 2 ip addr add 10.250.2.2/30 dev node1
    on_node 2 ip link set node1 up
    ip route add 10.244.2.0/24 via 10.250.2.2 src 10.244.1.1
    on_node 2 ip route add default via 10.250.2.1 src 10.244.2.1
}

has_own_network() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }

fill() { # template node
    sed "s#@STATE@#$state#g; s#@NODE@#$state/node$2#g; s#@N@#$2#g; s#@GROUP@#$group#g" "$here/config/$1.in"
}

runtime() { # node
    local folder="$state/node$1"
    mkdir -p "$folder"/{cni,kubelet,logs}
    fill containerd.toml "$1" >"$folder/containerd.toml"
    fill kubelet.yaml "$1" >"$folder/kubelet.yaml"
    fill kube-proxy.yaml "$1" >"$folder/kube-proxy.yaml"
    fill cni.conflist "$1" >"$folder/cni/pods.conflist"
    echo 'nameserver 10.244.1.1' >"$folder/resolv.conf"
    part "containerd$1" "$1" containerd --config "$folder/containerd.toml"
}

ctr_of() { # node argument...
    local node=$1
    shift
    ctr --address "$state/node$node/containerd.sock" --namespace k8s.io "$@"
}

# load_images FILE...: into both nodes, at the same time.
load_images() {
    local first
    load_into 1 "$@" &
    first=$!
    load_into 2 "$@" && wait "$first"
}

load_into() { # node file...
    local node=$1 file
    shift
    wait_until 60 "containerd of node $node" ctr_of "$node" version
    for file; do
        ctr_of "$node" images import "$file" >>"$state/log/images" 2>&1 || die "node $node does not take $file; see $state/log/images"
    done
}

kubelet() { # node
    local folder="$state/node$1"
    part "kubelet$1" "$1" "$cache/bin/kubelet" --config="$folder/kubelet.yaml" --kubeconfig="$pki/node$1.kubeconfig" \
        --root-dir="$folder/kubelet" --cert-dir="$folder/kubelet/pki" --hostname-override="node$1" --node-ip="10.244.$1.1"
    part "kube-proxy$1" "$1" "$cache/bin/kube-proxy" --config="$folder/kube-proxy.yaml"
}

# -- the control plane

store_and_api() {
    part etcd 1 "$cache/bin/etcd" --data-dir "$state/etcd" --unsafe-no-fsync --log-level=warn \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster default=http://127.0.0.1:2380
    part apiserver 1 "$cache/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
        --bind-address=0.0.0.0 --advertise-address=10.244.1.1 --secure-port=6443 \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
        --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
        --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16 \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
        --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
        --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
        --audit-policy-file="$here/config/audit.yaml" --audit-log-path="$state/log/audit"
}

controllers() {
    local name
    local -a access
    for name in kube-controller-manager kube-scheduler; do
        access=("--kubeconfig=$pki/$name.kubeconfig" "--authentication-kubeconfig=$pki/$name.kubeconfig"
            "--authorization-kubeconfig=$pki/$name.kubeconfig" --bind-address=127.0.0.1 --leader-elect=false)
        [ "$name" != kube-controller-manager ] ||
            access+=("--service-account-private-key-file=$pki/accounts.key" "--root-ca-file=$pki/ca.crt"
                --use-service-account-credentials=true --cluster-cidr=10.244.0.0/16 --allocate-node-cidrs=false
                "--client-ca-file=$pki/ca.crt")
        part "${name#kube-}" 1 "$cache/bin/$name" "${access[@]}"
    done
    fill Corefile 1 >"$state/Corefile"
    part coredns 1 "$cache/bin/coredns" -conf "$state/Corefile"
}

# -- operators

apply() { kubectl_here apply --server-side --force-conflicts -f "$1" >>"$state/log/operators" 2>&1 || die "cannot install $1; see $state/log/operators"; }

rolled_out() { # namespace deployment
    kubectl_here -n "$1" rollout status "deploy/$2" --timeout=120s >>"$state/log/operators" 2>&1 ||
        die "$2 does not get ready: $(kubectl_here -n "$1" get pods --no-headers 2>&1 | head -n 3)"
}

# A definition that is new has no conditions to wait for yet, which is an error to kubectl.
established() { wait_until 60 "the definition of $1" kubectl_here wait --for=condition=Established --timeout=1s "crd/$1"; }

# mpi_operator VERSION: which MPIJob the cluster has, v2beta1 of mpi-operator or v1 of training-operator.
mpi_operator() {
    local served
    case $1 in v1 | v2beta1) ;; *) die "no MPIJob '$1': there are v1 and v2beta1" ;; esac
    served=$(kubectl_here get crd mpijobs.kubeflow.org -o 'jsonpath={.spec.versions[*].name}' --ignore-not-found)
    [ "$served" != "$1" ] || return 0
    [ -z "$served" ] || kubectl_here delete crd mpijobs.kubeflow.org --timeout=60s >>"$state/log/operators" 2>&1 ||
        die "cannot remove the MPIJob $served"
    if [ "$1" = v1 ]; then
        kubectl_here -n mpi-operator scale deploy/mpi-operator --replicas=0 >>"$state/log/operators"
        apply "$cache/manifests/training-operator/upstream/base/crds/kubeflow.org_mpijobs.yaml"
        established mpijobs.kubeflow.org
        kubectl_here -n kubeflow patch deploy training-operator --type=json \
            -p '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--enable-scheme=mpijob"}]' >>"$state/log/operators"
    else
        apply "$cache/manifests/training-operator.yaml"
        apply "$cache/manifests/mpi-operator.yaml"
        established mpijobs.kubeflow.org
        rolled_out mpi-operator mpi-operator
    fi
    rolled_out kubeflow training-operator
}

# kueue: as a part beside the control plane, whose webhooks the API server reaches at once, and not as pods of its own.
kueue() {
    local file authority
    [ ! -x "$state/parts/kueue" ] || { start_part kueue; wait_until 60 "Kueue" kueue_is_ready; return; }
    mkdir -p "$state/kueue"
    (cd "$pki" && certificate kueue /O=system:masters/CN=kueue IP:10.244.1.1 && cp kueue.crt "$state/kueue/tls.crt" &&
        cp kueue.key "$state/kueue/tls.key") >>"$state/log/certificates" 2>&1 || die "no certificate for Kueue; see $state/log/certificates"
    authority=$(base64 -w0 "$pki/ca.crt")
    for file in kueue.yaml kueue-webhooks.yaml; do
        sed "s,@CERTIFICATE@,$state/kueue,; s,@AUTHORITY@,$authority," "$here/config/$file" >"$state/kueue/$file"
    done
    apply "$cache/manifests/kueue/upstream"
    established workloads.kueue.x-k8s.io
    kubectl_here create namespace kueue-system >>"$state/log/operators" 2>&1
    part kueue 1 "$cache/bin/kueue" --kubeconfig="$pki/kueue.kubeconfig" --config="$state/kueue/kueue.yaml"
    wait_until 60 "Kueue" kueue_is_ready
    apply "$state/kueue/kueue-webhooks.yaml"
}
kueue_is_ready() { part_lives kueue && exec 3<>/dev/tcp/10.244.1.1/9443; }

# gang_scheduler coscheduling|volcano: beside the cluster's own, for the pods that name it.
gang_scheduler() { # name
    local -a options
    [ ! -x "$state/parts/$1" ] || { start_part "$1"; return; }
    (cd "$pki" && certificate "$1" "/O=system:masters/CN=$1") >>"$state/log/certificates" 2>&1 || die "no certificate for $1"
    apply "$cache/manifests/$1/upstream"
    if [ "$1" = coscheduling ]; then
        established podgroups.scheduling.x-k8s.io
        sed "s,@KUBECONFIG@,$pki/$1.kubeconfig," "$here/config/coscheduling.yaml" >"$state/coscheduling.yaml"
        options=("--config=$state/coscheduling.yaml" --bind-address=127.0.0.1 --secure-port=10269)
    else
        established podgroups.scheduling.volcano.sh
        established queues.scheduling.volcano.sh
        options=("--kubeconfig=$pki/$1.kubeconfig" --cache-dumper=false)
    fi
    part "$1" 1 env "DEBUG_SOCKET_DIR=$state/sockets" "$cache/bin/$1" "${options[@]}"
}

# -- nodes that are not there

# A node of kwok: its label is what a pod selects it by, its taint keeps away all that do not.
simulated_node() { # number
    cat <<EOF
---
apiVersion: v1
kind: Node
metadata:
  name: simulated-$1
  labels: {simulated: "yes", kubernetes.io/os: linux, kubernetes.io/arch: amd64, kubernetes.io/hostname: simulated-$1}
spec:
  taints: [{key: simulated, value: "yes", effect: NoSchedule}]
status:
  capacity: &has {cpu: "64", memory: 256Gi, ephemeral-storage: 500Gi, pods: "110", nvidia.com/gpu: "8"}
  allocatable: *has
EOF
}

# The nodes have no address: what is asked of a pod there, as its log, is refused at once and not sent to a real node.
simulated_nodes() { # how many
    local n has
    has=$(kubectl_here get nodes -l simulated=yes -o name | wc -l)
    if [ -x "$state/parts/kwok" ]; then
        start_part kwok
    elif [ "$1" -gt 0 ]; then
        (cd "$pki" && certificate kwok /O=system:masters/CN=kwok) >>"$state/log/certificates" 2>&1
        part kwok 1 "$cache/bin/kwok" --kubeconfig="$pki/kwok.kubeconfig" --config="$here/config/stages.yaml" \
            --manage-all-nodes=false --manage-nodes-with-label-selector=simulated=yes --cidr=10.128.0.1/16
    fi
    for ((n = has; n < $1; n++)); do simulated_node "$n"; done | grep . >"$state/nodes.yaml" &&
        { kubectl_here create -f "$state/nodes.yaml" >>"$state/log/nodes" 2>&1 || die "the nodes cannot be made; see $state/log/nodes"; }
    for ((n = $1; n < has; n++)); do echo "node/simulated-$n"; done | xargs -r "$cache/bin/kubectl" --kubeconfig "$pki/admin.kubeconfig" delete \
        >>"$state/log/nodes" 2>&1 || die "the nodes cannot be removed; see $state/log/nodes"
    wait_until 60 "the simulated nodes" simulated_are_ready "$1"
}

# `kubectl wait` asks for one after the other, which takes longer the more there are.
simulated_are_ready() { # how many
    [ "$(kubectl_here get nodes -l simulated=yes --no-headers 2>/dev/null | grep -cw Ready)" -eq "$1" ]
}

# -- all of it

boot() {
    local images=() name n importing
    for name in pause small training-operator mpi-operator; do images+=("$cache/images/$name.tar"); done
    mkdir -p "$state"/{parts,log}
    private_mounts 1
    network 1
    second_node
    for n in 1 2; do runtime "$n"; done
    load_images "${images[@]}" &
    importing=$!
    certificates >"$state/log/certificates" 2>&1
    store_and_api
    wait_until 120 "the API server" kubectl_here get --raw /readyz
    controllers
    wait "$importing" || exit 1
    for n in 1 2; do kubelet "$n"; done
    wait_until 120 "the nodes" kubectl_here wait --for=condition=Ready --timeout=1s node/node1 node/node2
    wait_until 60 "the account of pods" kubectl_here -n default get serviceaccount default
    mpi_operator v2beta1
}
