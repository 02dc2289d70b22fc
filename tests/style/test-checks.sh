#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Proves that the checks of the style suite can fail: each case writes a small tree, and says what
# the check has to say of it. Prints TAP. Usage: test-checks.sh SOURCE_ROOT
root=$1
checks=$root/tests/style
scratch=$(mktemp -d) || exit 2
trap 'rm -rf -- "$scratch"' EXIT
n=0

# tree: starts afresh with a copy of the table of layers and one good file.
tree() {
    rm -rf -- "${scratch:?}/t"
    mkdir -p "$scratch/t/tools" "$scratch/t/tests" "$scratch/t/sdk"
    cp -- "$root/tools/layers.txt" "$scratch/t/tools/"
    put src/base/good.c '#include "base/good.h"'
}
put() {
    mkdir -p "$scratch/t/${1%/*}"
    printf '%s\n' "$2" >"$scratch/t/$1"
}
# expect pass|fail NAME CHECK [TEXT]: TEXT has to be part of what a failing check says.
expect() {
    n=$((n + 1))
    if said=$("$3" "$scratch/t" 2>&1); then outcome=pass; else outcome=fail; fi
    case $outcome:$said in
    "$1":*"${4:-}"*) echo "ok $n - $2" ;;
    *) printf '%s\n' "$said" | sed 's/^/# /'; echo "not ok $n - $2" ;;
    esac
}
lines() { awk -v n="$1" 'BEGIN { for (i = 1; i <= n; i++) print "    step();" }'; }

layers=$root/tools/check-layers.sh
tree; put src/plan/a.c '#include "base/buf.h"'
expect pass "an include that points down passes" "$layers"
tree; put src/base/a.c '#include "plan/plan.h"'
expect fail "an include that points up fails" "$layers" "src/base/a.c:1: base may not include plan"
tree; put src/backend/local/a.c '#include "backend/backend.h"'
expect pass "a nested folder may include its own layer" "$layers"
tree; put src/backend/local/a.c '#include "supervise/run.h"'
expect fail "a nested folder belongs to its layer" "$layers" "backend may not include supervise"
tree; put src/cli/a.c '#include "backend/local/local.h"'
expect pass "a nested folder of a lower layer may be included" "$layers"
tree; put src/base/a.c '#  include   <plan/plan.h>'
expect fail "angle brackets do not hide an upward include" "$layers" "base may not include plan"
tree; put src/base/a.c '#include "../plan/plan.h"'
expect fail "a relative path does not hide an upward include" "$layers" "by its path from src/"
tree; put src/novel/a.c '#include "base/buf.h"'
expect fail "a folder that is no layer fails" "$layers" "novel is not in"
tree; put src/main.c '#include "cli/command.h"'
expect pass "a file in src itself stands above all layers" "$layers"
tree; put src/spec/a.c '#include <libfyaml.h>'
expect fail "a library stays in its layer" "$layers" "spec may not include <libfyaml.h>"
tree; put src/codec/a.c '#include <libfyaml.h>'
expect pass "a library may be used in its layer" "$layers"
tree; echo 'base: cli' >"$scratch/t/tools/layers.txt"
expect fail "a table that points up fails" "$layers" "cli is not above this row"
tree; rm "$scratch/t/tools/layers.txt"
expect fail "a missing table fails" "$layers"
tree; rm -r "$scratch/t/src/base"
expect fail "a tree without sources fails" "$layers"

sizes=$checks/check-sizes.sh
tree; put src/base/a.c "static int f(void) {
$(lines 98)
}"
expect pass "a function of 100 lines passes" "$sizes"
tree; put src/base/a.c "static int f(int a,
             int b) {
$(lines 98)
}"
expect fail "a function of 101 lines fails" "$sizes" "src/base/a.c:1: the function has 101 lines"
tree; put src/base/a.c "static const struct row rows[] = {
$(lines 300)
};"
expect pass "a long table passes" "$sizes"
tree; put src/base/a.h "$(lines 251)"
expect fail "a header of 251 lines fails" "$sizes" "more than 250"
tree; put src/base/a.c "$(lines 1001)"
expect fail "a file of 1001 lines fails" "$sizes" "more than 1000"

# The words are put together here, since the check reads this file too.
words=$checks/check-words.sh
tree
expect pass "plain words pass" "$words"
tree; put src/base/a.c "/* TO""DO: later */"
expect fail "a mark of unfinished work fails" "$words" "src/base/a.c:1"
tree; put docs/a.md "see /wo""rk/main"
expect fail "a path of one machine fails" "$words" "docs/a.md:1"

scripts=$checks/check-scripts.sh
tree; put bin/run '#!/bin/sh
if true; then echo; fi'
expect pass "a script that can be read passes" "$scripts"
tree; put bin/run '#!/bin/sh
if true; then'
expect fail "a script with a syntax error fails" "$scripts" "run"

echo "1..$n"
