# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What laws on gangs of native pods are written with, that compete for the room of a real cluster.
. "$TESTS/conformance/cluster_runs.sh"
backend=native

# The nodes have two cores each, and next to nothing of them is requested by anybody else: what pods request is what limits
# them, not what they use.

# gang NAME CPU N: so many tasks of so many cores. The master welcomes each of the others, one at a time, and none ends before that.
gang() {
    cat >"$1.yml" <<YAML
version: 1
kind: experiment
backend: native
framework: pytorch
build: {image: "myelin.test/small:1"}
environment:
  resources: {cpu: {requests: $2}}
  replicas:
    n_workers: $(($3 - 1))
    default_worker:
      resources: {cpu: {requests: $2}}
run:
  cmd: |
    if [ "\$RANK" = 0 ]; then i=1; while [ \$i -lt \$WORLD_SIZE ]; do nc -l -p \$MASTER_PORT -e echo welcome && i=\$((i + 1)); done; else until nc \$MASTER_ADDR \$MASTER_PORT </dev/null 2>/dev/null | grep -q welcome; do sleep 0.5; done; fi; echo met
YAML
}

# submit_at_once N FILE: in the background, each with a number of its own, and all of them in the same moment.
submit_at_once() {
    as_runner
    local i
    for ((i = 1; i <= $1; i++)); do
        (mkdir "at_once.$i" && cd "at_once.$i" && submit "../$2" --grace 1 -d && [ "$status" = 0 ] || { cat err; echo "not submitted"; }) &
    done
    wait
}
journal_has() { grep -qE -- "$2" "$SCRATCH/home/.myelin/runs/$1/events.jsonl"; }
are_over() { # number
    local i
    for ((i = 1; i <= $1; i++)); do
        journal_has "$i" '"event": "status", "status": "(succeeded|failed|stopped)"' || return 1
    done
}
expect_all_to_have_succeeded() { # number [the first of them]
    local i
    for ((i = ${2:-1}; i <= $1; i++)); do
        journal_has "$i" '"event": "status", "status": "succeeded"' ||
            { tail -n 3 "$SCRATCH/home/.myelin/runs/$i/events.jsonl"; fail "run $i did not succeed"; }
    done
}
