# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What conformance laws are written with. A law is a function test_<law> in subjects/<name>.sh. It runs
# by itself, in an empty scratch directory that holds a copy of examples/, and passes when it
# returns 0. A subject may set:
#   packages   the Debian packages it needs
#   prepare    a function that makes what else it needs; see prepare.sh
#   finish     a function that ends what prepare has started; it is called whatever becomes of the laws
#   shared     what prepare starts, by a name: a subject that follows it with the same goes on with it, and it does not end before
#   venv       the Python environment that its laws run in, of those that prepare has made
#   environments  further ones, which its laws find by `environment NAME`
#   once       the laws that are slow and the same for every user: tested as one user only
#   alone      `yes`: its laws bring the users they need, and are tested once, as who started them
#   lane       with which other subjects it takes turns (machine); those of two lanes run at the same time
#   limit      the seconds that one law may take (120)

# Runs myelin; leaves its output in the files out and err, and its exit status in $status. The
# mark in the environment goes to every process of the run, so that leftovers can be found.
myelin() {
    MYELIN_HOME="$SCRATCH/home/.myelin" MYELIN_CONFORMANCE_MARK="$MARK" "$MYELIN" "$@" >out 2>err
    status=$?
}

fail() {
    printf '%s\n' "$*"
    [ ! -s out ] || { echo "-- standard output, the last lines:"; tail -n 25 out; }
    [ ! -s err ] || { echo "-- standard error, the last lines:"; tail -n 25 err; }
    exit 1
}
SKIPPED=77
skip() { printf '%s\n' "$*"; exit "$SKIPPED"; }

# environment NAME: where one of the subject's further environments is; fails where it was not made.
environment() {
    local entry
    for entry in $ENVIRONMENTS; do
        [ "${entry%%=*}" != "$1" ] || { printf '%s' "${entry#*=}"; return 0; }
    done
    return 1
}

# expect_status STATUS...: the last command ended with one of them.
expect_status() {
    local expected=$*
    [[ " $expected " == *" $status "* ]] || fail "exit status $status; ${expected// / or } was expected"
}
expect_out() { grep -qE -- "$1" out || fail "nothing in standard output matches: $1"; }
expect_err() { grep -qE -- "$1" err || fail "nothing in standard error matches: $1"; }

# expect_blamed TASK: the report names this task as the one that failed.
expect_blamed() { expect_err "^run [0-9]+ failed after [^:]*: ${1/./\\.} "; }

# The loss and accuracy that an example printed: it learned when the first fell by half and the
# second came to nine of ten.
expect_learned() {
    local first last accuracy
    first=$(sed -n 's/.*epoch  0  loss \([0-9.]*\) .*/\1/p' out)
    last=$(sed -n 's/.*result: loss \([0-9.]*\),.*/\1/p' out)
    accuracy=$(sed -n 's/.*result: .*accuracy \([0-9.]*\).*/\1/p' out)
    awk -v first="$first" -v last="$last" -v accuracy="$accuracy" \
        'BEGIN { exit !(last > 0 && last < first / 2 && accuracy >= 0.9 && accuracy <= 1) }' ||
        fail "it did not learn: loss from '$first' to '$last', accuracy '$accuracy'"
}

# The Python package can be imported by the tasks of the next run, beside what their environment has.
can_track() {
    local folder
    folder=$(environment sdk-3.11) || fail "the Python package was not built"
    mkdir -p package && ln -sfn "$folder"/lib/python3.11/site-packages/myelin package/myelin
    export PYTHONPATH="$PWD/package"
}

# expect_tracked TASK...: just these tasks logged their loss, each to the last epoch, and it fell.
expect_tracked() {
    mv out out.run
    myelin metrics @ loss --json
    expect_status 0
    python3 -c 'import json, sys
series = {entry["task"]: entry for entry in json.load(open("out"))}
assert sorted(series) == sorted(sys.argv[1:]), sorted(series)
for entry in series.values():
    steps = [point["step"] for point in entry["points"]]
    assert steps == list(range(len(steps))) and len(steps) > 2, steps
    assert entry["last"] < entry["points"][0]["value"] / 2, entry
' "$@" 2>tracked || fail "the loss was not tracked: $(tail -n 1 tracked)"
    mv out.run out
}

# expect_found_again EXAMPLE LOADER: two trainings of the example, one of them with too small a learning rate; the better
# one is found by a query, compared with the other and fetched as a model. LOADER is Python that, beside the
# example's train.py, prints the loss and accuracy of the file ./best/<file> as the example does.
expect_found_again() {
    local example=$1 loader=$2 printed again best
    myelin run "examples/$example/polyaxonfile.yml" -P lr=0.0001 -P epochs=2
    expect_status 0
    myelin run "examples/$example/polyaxonfile.yml" -P epochs=3
    expect_status 0
    printed=$(sed -n 's/.*result: \(loss [0-9.]*, accuracy [0-9.]*\).*/\1/p' out)
    [ -n "$printed" ] || fail "no result was printed"

    myelin runs --query 'status:succeeded, metrics.loss:<100, params.epochs:2|3' --sort metrics.loss --columns id,params.lr,min.loss --json
    expect_status 0
    best=$(python3 -c 'import json; runs = json.load(open("out"))["runs"]; assert len(runs) == 2, runs; print(runs[0]["id"])' 2>err) ||
        fail "the query did not find both runs"
    [ "$best" = 2 ] || fail "run $best was found to be the better one"
    myelin compare 1 2
    expect_status 0
    expect_out 'lr.*0\.0001.*0\.02'
    myelin outputs 2 --diff 1
    expect_status 0
    expect_out 'checkpoints/epoch-3'

    myelin model alias spirals:2 best
    expect_status 0
    myelin model show spirals:best --json
    expect_status 0
    python3 -c 'import json; model = json.load(open("out"))
assert (model["run"], model["version"], model["step"], model["aliases"]) == (2, 2, 3, ["best"]), model' 2>err || fail "another model"
    myelin model get spirals:best best
    expect_status 0
    again=$(PYTHONPATH="$PWD/examples/$example" python3 -c "$loader" 2>err) || fail "the model cannot be loaded"
    python3 -c 'import re, sys
pairs = zip(*(map(float, re.findall(r"[0-9]+\.[0-9]+", text)) for text in sys.argv[1:]))
assert all(abs(a - b) <= 0.00015 for a, b in pairs), sys.argv' "$printed" "$again" 2>err ||
        fail "the run printed '$printed'; the model that was fetched gives '$again'"
    myelin rm 2
    [ "$status" -ne 0 ] || fail "a run whose model has an alias was removed"
}

# The run was over soon after a task failed, which wrote the time of that to the file `failed_at`:
# the others were not left to find out by themselves, which takes some of them minutes.
expect_over_soon() {
    local took
    [ -s failed_at ] || fail "no task came to the point where it was to fail"
    took=$(($(date +%s) - $(cut -d. -f1 failed_at)))
    [ "$took" -le 15 ] || fail "the run was over $took s after the failure"
}

# The ids of the processes that carry a mark in their environment; by one process for all of them, since every law asks.
marked_processes() {
    grep -lsxzF "MYELIN_CONFORMANCE_MARK=$1" /proc/[0-9]*/environ | sed 's,^/proc/\([0-9]*\)/.*,\1,' | tr '\n' ' '
}
expect_nobody_left() {
    local left
    left=$(marked_processes "$MARK")
    [ -z "$left" ] || fail "processes were left: $left"
}
