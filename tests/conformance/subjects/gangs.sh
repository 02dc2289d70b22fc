# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Gangs of pods on a real cluster that has too little room for all of them: each gets all of its room or none.
. "$TESTS/conformance/cluster_runs.sh"
backend=native
limit=600

# The nodes have two cores each, and next to nothing of them is requested by anybody else: what pods request is what limits
# them, not what they use.

# gang NAME CPU N: so many tasks of so many cores, of which none ends before each has met all others.
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
    if [ "\$RANK" = 0 ]; then i=1; while [ \$i -lt \$WORLD_SIZE ]; do nc -l -p \$MASTER_PORT </dev/null >/dev/null && i=\$((i + 1)); done; else until nc \$MASTER_ADDR \$MASTER_PORT </dev/null 2>/dev/null; do sleep 0.5; done; fi; echo met
YAML
}

# settings TEXT: of `kubernetes` in config.yml.
settings() { mkdir -p "$SCRATCH/home/.myelin" && echo "kubernetes: {$1}" >"$SCRATCH/home/.myelin/config.yml"; }

# In the background, each with a number of its own: `submit_many N FILE`.
submit_many() {
    local i
    for ((i = 0; i < $1; i++)); do
        submit "$2" --grace 1 -d
        expect_status 0
    done
}
state_of() { on_cluster status --json "$1" && python3 -c 'import json; d = json.load(open("out")); print((d[0] if isinstance(d, list) else d)["status"])'; }
is_in_state() { [ "$(state_of "$1")" = "$2" ]; }
journal_has() { grep -qE -- "$2" "$SCRATCH/home/.myelin/runs/$1/events.jsonl"; }
holder() { kubectl get lease myelin-gang -o 'jsonpath={.spec.holderIdentity}'; }
has_no_holder() { [ -z "$(holder)" ]; }
