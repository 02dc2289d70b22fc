#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares what myelin makes of the examples in seeds/ with what is committed beside them, in TAP:
#   NAME.txt   what `myelin plan` prints, its diagnostics and its exit status
#   NAME.json  what `myelin plan --json` prints
#   NAME.env   the environment of every task, for the small topologies
# and of those in render/, with the settings of render/home:
#   NAME.native.yaml, NAME.kubeflow.yaml   what `myelin render` prints for the backend
#   NAME.diff                              what `myelin render --diff` prints
#   NAME.GANG.yaml                         what native pods are with the gang scheduler of gang/GANG
# Usage: check.sh MYELIN [--update]
set -u
myelin=$(realpath "$1")
update=${2:-}
cd "$(dirname "$0")/seeds" || exit 2
actual=$(mktemp -d) || exit 2
trap 'rm -rf "$actual"' EXIT
export MYELIN_HOME="$actual/none" # where no settings are

plan_text() {
    "$myelin" plan --color never "$1" 2>&1
    echo "exit status $?"
}
plan_env() {
    tasks=$("$myelin" plan --json "$1" 2>/dev/null | sed -n 's/^      "name": "\(.*\)",$/\1/p')
    for task in $tasks; do
        echo "== $task"
        "$myelin" plan --task "$task" "$1" 2>/dev/null
    done
}

n=0 failed=0
compare() { # FILE
    n=$((n + 1))
    [ "$update" = --update ] && cp "$actual/$1" "$1"
    if diff -u "$1" "$actual/$1" >"$actual/diff" 2>&1; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1 (if the change is meant: tests/golden/check.sh MYELIN --update)"
        sed 's/^/# /' "$actual/diff" | head -n 60
        failed=1
    fi
}

for file in *.yml; do
    name=${file%.yml}
    plan_text "$file" >"$actual/$name.txt"
    compare "$name.txt"
    "$myelin" plan --json "$file" >"$actual/$name.json" 2>/dev/null || continue
    compare "$name.json"
    case $name in
    *-resources* | *-master) ;;
    *) plan_env "$file" >"$actual/$name.env" && compare "$name.env" ;;
    esac
done

# The bytes of the shim are those of the compiler that built it.
render() { # FILE ARGUMENT...
    MYELIN_HOME=${home:-home} "$myelin" render --color never "$@" >"$actual/rendered" 2>&1
    status=$?
    sed 's/^\(  shim-[a-z0-9]*\): "[A-Za-z0-9+/=]*"$/\1: (bytes)/' "$actual/rendered"
    [ $status = 0 ] || echo "exit status $status"
}
cd ../render || exit 2
for file in *.yml; do
    name=${file%.yml}
    for backend in native kubeflow; do
        render "$file" --backend $backend >"$actual/$name.$backend.yaml"
        compare "$name.$backend.yaml"
    done
    render "$file" --diff >"$actual/$name.diff"
    compare "$name.diff"
done
for gang in gang/*; do
    name=pytorch.${gang#gang/}.yaml
    home=$gang render pytorch.yml --backend native >"$actual/$name"
    compare "$name"
done
echo "1..$n"
exit $failed
