# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Limits on a machine with systemd and cgroup v2: a Debian guest, booted by user-mode-linux, in which the
# scenarios of limits run as root, as a user in a session of login, and in a scope that is delegated to
# one. The guest's disk is never written to: each law has a layer of its own over it.
packages="user-mode-linux debootstrap e2fsprogs"
alone=yes
limit=400

GUEST_RELEASE=bookworm
GUEST_PACKAGES=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,python3-pytest,procps
GUEST_LIBRARIES="libevent-core-2.1-7 libevent-extra-2.1-7 libfyaml0"
GUEST_MIRROR=http://deb.debian.org/debian

# What the guest does once it is up: it takes the host's folder that the kernel's command line names, runs
# `start` there, and switches itself off.
guest_service() {
    cat <<'EOF'
[Unit]
Description=what the host asks for
After=dbus.service systemd-logind.service systemd-user-sessions.service

[Service]
Type=oneshot
OOMPolicy=continue
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
ExecStart=/bin/sh -c 'mount -t hostfs none /mnt -o $$(sed -n "s/.*guest=\\([^ ]*\\).*/\\1/p" /proc/cmdline) && exec sh /mnt/start'
ExecStopPost=/bin/systemctl --no-block poweroff --force

[Install]
WantedBy=multi-user.target
EOF
}

fill_tree() { # directory
    local units="$1/etc/systemd/system"
    again 900 debootstrap --variant=minbase --include="$GUEST_PACKAGES" "$GUEST_RELEASE" "$1" "$GUEST_MIRROR" || return 1
    # shellcheck disable=SC2086
    again 600 chroot "$1" apt-get install -y -qq --no-install-recommends $GUEST_LIBRARIES || return 1
    chroot "$1" useradd --create-home --uid 1000 someone || return 1
    guest_service >"$units/guest.service"
    mkdir -p "$units/multi-user.target.wants"
    ln -sf ../guest.service "$units/multi-user.target.wants/guest.service"
    ln -sf /dev/null "$units/getty.target"
    ln -sf /dev/null "$units/systemd-timesyncd.service"
}

prepare() {
    local folder="$CACHE/guest" stamp tree
    stamp=$(sed '/^# -- laws/,$d' "${BASH_SOURCE[0]}" | cksum)
    [ "$(cat "$folder/stamp" 2>/dev/null)" = "$stamp" ] && return 0
    [ "$(id -u)" -eq 0 ] || { echo "the guest's disk is made by root"; return 1; }
    echo "  making the guest's disk"
    rm -rf "$folder"
    mkdir -p "$folder"
    tree="$folder/tree"
    fill_tree "$tree" && rm -rf "$tree/var/cache/apt" "$tree/var/lib/apt/lists" && truncate -s 800M "$folder/disk" &&
        mkfs.ext4 -q -F -d "$tree" "$folder/disk" && rm -rf "$tree" && printf '%s\n' "$stamp" >"$folder/stamp"
}

# -- laws

# What laws leave out for a user: a group that is not ours to enter, and one that systemd removes with its
# scope, cannot be set up there; and limits do hold.
for_a_user='not stranger_in_a_group and not similar_name and not cannot_be_enforced'

# guest WHO [SCENARIOS]: boots, runs the scenarios of limits as WHO, and fails where one does, or where a group
# or a process is left after them. WHO is `root`; `session`: a user in a session scope, which belongs to root,
# as after a login by ssh; or `scope`: a user in a scope that is delegated.
guest() {
    mkdir -p share/tests
    cp "$MYELIN" share/myelin
    cp -r "$TESTS/scenario" share/tests/
    cat >share/work <<EOF
cd /run/stage
export MYELIN=/run/stage/myelin PYTHONDONTWRITEBYTECODE=1 TMPDIR=/tmp MYELIN_LIMITS_HOLD=yes MYELIN_SCENARIO_SECONDS=90
exec python3 -m pytest -p no:cacheprovider -q -rs --durations=3 -k '${2:-test}' tests/scenario/test_limits.py
EOF
    cat >share/start <<'EOF'
mkdir -p /run/stage && cp -r /mnt/myelin /mnt/tests /mnt/work /run/stage/ && chmod -R a+rX /run/stage
export HOME=/root
exec >/mnt/report 2>&1
loginctl enable-linger someone
for i in $(seq 100); do [ ! -S /run/user/1000/systemd/private ] || break; sleep 0.2; done
login='systemd-run --quiet --wait --pipe -p PAMName=login -p User=someone'
case $(cat /mnt/who) in
root) sh /run/stage/work ;;
session) $login sh /run/stage/work ;;
scope) $login systemd-run --user --scope --quiet -p Delegate=yes sh /run/stage/work ;;
esac
status=$?
sleep 1
left=$(find /sys/fs/cgroup -name '*myelin*'; pgrep -l myelin)
[ -z "$left" ] || { echo "left behind: $left"; status=1; }
echo $status >/mnt/status
EOF
    echo "$1" >share/who
    boot "as $1"
    grep -q ' passed' share/report || fail "nothing ran in the guest"
}

# boot WHAT: boots the guest, which runs share/start, and shows its report; fails where share/status is not 0.
boot() {
    local disk="$CACHE/guest/disk"
    mkdir -p umid
    TMPDIR=$PWD/umid timeout --kill-after=5 $((limit - 20)) linux.uml mem=1024M "ubd0=layer,$disk" root=/dev/ubda rw \
        con=null con0=fd:0,fd:1 "umid=guest.$$" "guest=$PWD/share" systemd.unified_cgroup_hierarchy=1 selinux=0 quiet \
        </dev/null >console 2>&1
    end_guest
    cat share/report
    [ "$(cat share/status 2>/dev/null)" = 0 ] || { tail -n 15 console; fail "the guest, $1: see above"; }
}

# Whatever became of the kernel, its processes end with the law.
end_guest() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        if tr '\0' '\n' 2>/dev/null <"$file" | grep -qxF "umid=guest.$$"; then
            kill -KILL "$(basename "$(dirname "$file")")" 2>/dev/null
        fi
    done 2>/dev/null
}

test_limits_hold_for_root() { guest root; }

test_limits_hold_in_a_session_of_a_user() { guest session "$for_a_user"; }

test_limits_hold_in_a_scope_that_is_delegated_to_a_user() { guest scope "$for_a_user"; }

# Loads modules of the guest's kernel from the host, which has them, after those that they depend on.
load_modules() {
    cat <<'EOF'
import ctypes, os, sys

FINIT_MODULE = 313  # on x86-64, which is what user-mode-linux runs on
base, libc, loaded = sys.argv[1], ctypes.CDLL(None, use_errno=True), set()
with open(f"{base}/modules.dep") as file:
    needed = {name: rest.split() for name, rest in (line.split(":") for line in file)}


def load(path):
    if path in loaded:
        return
    loaded.add(path)
    for other in needed[path]:
        load(other)
    with open(f"{base}/{path}", "rb") as module:
        if libc.syscall(FINIT_MODULE, module.fileno(), b"", 0) != 0:
            sys.exit(f"{path}: {os.strerror(ctypes.get_errno())}")


for wanted in sys.argv[2:]:
    load(next(path for path in needed if path.endswith(f"/{wanted}.ko")))
EOF
}

# A directory that the guest's kernel serves to itself. What would be asked of mountd is told beforehand: who
# comes from the loopback, what is served (9234: to any port, root as root, at once, by number), and its number.
serve_nfs() {
    cat <<'EOF'
set -e
mkdir -p /run/modules /run/served /run/nfs /var/lib/nfs/v4recovery
mount -t hostfs none /run/modules -o "/usr/lib/uml/modules/$(uname -r)"
python3 /mnt/load.py /run/modules nfsd nfsv4
mount -t nfsd none /proc/fs/nfsd
mount -t tmpfs none /run/served
echo 'nfsd 127.0.0.1 2147483647 local' >/proc/net/rpc/auth.unix.ip/channel
echo 'local /run/served 2147483647 9234 65534 65534 0' >/proc/net/rpc/nfsd.export/channel
printf '%s\n' 'local 1 \x00000000 2147483647 /run/served' >/proc/net/rpc/nfsd.fh/channel
echo '-3 +4' >/proc/fs/nfsd/versions
echo 'tcp 2049' >/proc/fs/nfsd/portlist
echo 2 >/proc/fs/nfsd/threads
echo Y >/proc/fs/nfsd/v4_end_grace
timeout 60 mount -i -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /run/nfs
EOF
}

test_a_home_on_nfs_is_refused_with_a_way_out() {
    mkdir -p share
    cp "$MYELIN" share/myelin
    load_modules >share/load.py
    serve_nfs >share/serve
    cat >share/job.yml <<'EOF'
version: 1
kind: experiment
environment:
  resources:
    cpu: {requests: 1}
run:
  cmd: echo it ran
EOF
    cat >share/start <<'EOF'
exec >/mnt/report 2>&1
export HOME=/root
sh /mnt/serve || exit 1
cp /mnt/myelin /run/myelin
MYELIN_HOME=/run/nfs timeout 60 /run/myelin run /mnt/job.yml
echo "refused: $?, left: $(find /run/served/runs -mindepth 1 -maxdepth 1 | wc -l)"
MYELIN_HOME=/run/disk timeout 60 /run/myelin run /mnt/job.yml
echo $? >/mnt/status
EOF
    boot "with a home on NFS"
    grep -q "'/run/nfs' is on NFS, .* set MYELIN_HOME to a directory on a disk of this machine" share/report || fail "not told"
    grep -qx "refused: 125, left: 0" share/report || fail "not refused, or a run is left"
    grep -q "it ran" share/report || fail "the way out leads nowhere"
}
