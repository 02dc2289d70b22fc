# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Bad days of runs on a real cluster, and running again after them.
. "$TESTS/conformance/cluster_runs.sh"
backend=native

# settings LINE...: config.yml, its lines those of `kubernetes`.
settings() {
    mkdir -p "$SCRATCH/home/.myelin"
    { echo "kubernetes:"; printf '  %s\n' "$@"; } >"$SCRATCH/home/.myelin/config.yml"
}

# -- attempts

# record_objects: writes each change of pods and of what owns them, each with the moment that the cluster itself gives it.
record_objects() {
    local kind
    for kind in pods configmaps pytorchjobs; do
        cluster kubectl --namespace "$namespace" get "$kind" -l app.kubernetes.io/managed-by=myelin --watch --output-watch-events \
            -o 'jsonpath={.type} {.object.kind} {.object.metadata.labels.myelin/attempt} {.object.metadata.resourceVersion}{"\n"}' \
            >"changes.$kind" 2>/dev/null &
        recorders+=($!)
    done
    trap 'kill "${recorders[@]}"; cluster kubectl delete namespace "$namespace" --wait=false >/dev/null' EXIT
}

expect_attempts_apart() { # attempts
    sleep 1 # until the last changes are written
    cat changes.* >changes
    python3 - "$1" <<'EOF' || { sort -n -k4 changes; fail "two attempts overlap"; }
import sys
made, gone = {}, {}
for line in open("changes"):
    change, kind, attempt, moment = line.split()
    if change == "ADDED":
        made.setdefault(int(attempt), []).append(int(moment))
    elif change == "DELETED":
        gone.setdefault(int(attempt), []).append(int(moment))
assert sorted(made) == list(range(int(sys.argv[1]))), made
for attempt in made:
    assert len(made[attempt]) == len(gone[attempt]) == 4, (attempt, made, gone)  # three pods and their owner
    assert attempt == 0 or max(gone[attempt - 1]) < min(made[attempt]), (attempt, made, gone)
EOF
}

# A task that does not end when it is told to is what an impatient restart would run into.
expect_attempts_one_after_the_other() {
    in_namespace attempts
    recorders=()
    record_objects
    job pytorch 'trap "" TERM; echo attempt $MYELIN_ATTEMPT; sleep 2; case $MYELIN_ATTEMPT.$RANK in 2.*) exit 0;; *.1) exit 4;; esac; sleep 300'
    sed -i 's/^environment:/&\n  max_restarts: 2/' job.yml
    submit job.yml --grace 3 --backoff 1
    expect_status 0
    expect_out 'attempt 2'
    expect_err 'attempt 0 failed: worker\.0 exited with code 4.*; attempt 1 \(restart 1 of 2\) starts in 1s'
    expect_err 'attempt 1 failed: worker\.0 exited with code 4.*; attempt 2 \(restart 2 of 2\) starts in 2s'
    expect_nothing_left
    expect_attempts_apart 3
    on_cluster status 1 --json
    python3 -c 'import json
attempts = json.load(open("out"))["attempts"]
assert [attempt["status"] for attempt in attempts] == ["failed", "failed", "succeeded"], attempts' 2>err || fail "another history"
}

test_an_attempt_of_native_pods_begins_when_nothing_of_the_last_is_left() { expect_attempts_one_after_the_other; }

test_an_attempt_of_a_kubeflow_job_begins_when_nothing_of_the_last_is_left() {
    backend=kubeflow
    expect_attempts_one_after_the_other
}
