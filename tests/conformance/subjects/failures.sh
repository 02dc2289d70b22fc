# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# The five failing trainings of docs/failures.md: what that page says of myelin is what it says.
packages=python3-torch
once="a_rank_that_raises_an_exception_is_told_as_documented a_rank_that_is_killed_is_told_as_documented"
once+=" a_rank_that_lacks_a_module_is_told_as_documented a_rank_that_exits_in_silence_is_told_as_documented"
limit=240

# expect_as_documented HEADING STATUS: the verdict is the first line that the page quotes of myelin below that heading.
expect_as_documented() {
    local quoted
    quoted=$(awk -v heading="### $1" '
        /^##/ { is_here = ($0 == heading) }
        is_here && /^myelin, exit status/ { is_ours = 1; print }
        is_here && is_ours && /^```$/ { getline; print; exit }' "$TESTS/../docs/failures.md")
    [ "$(head -n 1 <<<"$quoted")" = "myelin, exit status $2:" ] || fail "the page does not give $2 as the status of '$1'"
    expect_status "$2"
    quoted=$(tail -n 1 <<<"$quoted")
    grep -qF -- ": $quoted" err || fail "the page says: $quoted"
    expect_nobody_left
}

# PyTorch aborts now and then while Python takes it down: then what was to be shown is not what happened.
has_been_aborted() { [ "$status" -eq 134 ] && grep -q 'terminate called without an active exception' out; }

# One that fails by itself is named in each of three gangs, and not one of those that lose it.
expect_failure() { # how heading status
    local told=0 gangs=0
    while [ "$told" -lt 3 ]; do
        myelin run examples/failures/polyaxonfile.yml -P "how=$1"
        gangs=$((gangs + 1))
        [ "$gangs" -lt 6 ] && has_been_aborted && continue
        expect_as_documented "$2" "$3"
        told=$((told + 1))
    done
}

test_a_rank_that_raises_an_exception_is_told_as_documented() { expect_failure exception 'A rank raises an exception' 1; }
test_a_rank_that_is_killed_is_told_as_documented() { expect_failure killed 'A rank is killed (SIGKILL)' 137; }
test_a_rank_that_lacks_a_module_is_told_as_documented() { expect_failure module 'A rank lacks a module' 1; }
test_a_rank_that_exits_in_silence_is_told_as_documented() {
    expect_failure silent 'A rank exits with 3 and says nothing, while the others wait for it' 3
}
test_a_command_that_does_not_exist_is_told_as_documented() {
    myelin run examples/failures/missing.yml
    expect_as_documented 'The command does not exist' 127
}
