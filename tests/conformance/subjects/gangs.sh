# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Gangs of pods on a real cluster that has too little room for all of them: each gets all of its room or none.
lane=cluster2
. "$TESTS/conformance/gang_runs.sh"
limit=600

holder() { kubectl get lease myelin-gang -o 'jsonpath={.spec.holderIdentity}'; }
has_no_holder() { [ -z "$(holder)" ]; }

# -- all or none

# pair NAME CPU MASTER WORKER: two tasks, each for one node; WORKER may name a label besides.
pair() {
    gang "$1" "$2" 2
    sed -i "s/^environment:/&\n  node_selector: {kubernetes.io\/hostname: $3}/; s/^    default_worker:/&\n      node_selector: {kubernetes.io\/hostname: $4}/" "$1.yml"
}
# The first has the left node and waits for the right one, which is not ready for it; the second has the right one and waits
# for the left: without turns none of them ever goes on.
test_two_gangs_that_would_hold_half_of_their_room_each_both_finish() {
    local left right
    in_namespace halves
    settings 'placement_patience: 5'
    read -r left right < <(kubectl get nodes -o 'jsonpath={.items[*].metadata.name}')
    pair first 1.5 "$left" "$right, ready-for-$namespace: \"yes\""
    pair second 1.5 "$right" "$left"
    submit first.yml --grace 1 -d
    expect_status 0
    wait_for 60 "half of the first" is_taken "$left"
    submit second.yml --grace 1 -d
    expect_status 0
    wait_for 60 "half of the second, or all of it" is_taken_or_over "$right" 2
    kubectl label node "$right" "ready-for-$namespace=yes" >/dev/null || fail "the node gets no label"
    wait_for 150 "the end of both" are_over 2
    expect_all_to_have_succeeded 2
    wait_for 30 "the turn to be free" has_no_holder
    expect_nothing_left
}
is_taken() { kubectl get pods -o 'jsonpath={.items[*].spec.nodeName}' | grep -qw "$1"; }
is_taken_or_over() { is_taken "$1" || journal_has "$2" '"event": "status", "status": "succeeded"'; }

test_fifty_gangs_at_once_on_too_few_resources_all_finish() {
    in_namespace fifty
    settings 'placement_patience: 5'
    gang some 0.4 3
    submit_at_once 50 some.yml
    wait_for 540 "the end of all" are_over 50
    expect_all_to_have_succeeded 50
    expect_nothing_left
}

# The room that there is at first goes away while others take their turns: room is given back, more than once.
test_a_gang_that_gave_its_room_back_gets_it_when_there_is_room() {
    in_namespace back
    settings 'placement_patience: 1'
    gang holder 1.2 2
    sed -i 's/echo met$/echo met; sleep 15/' holder.yml
    submit holder.yml --grace 1 -d
    expect_status 0
    wait_for 60 "the first gang" all_up 2
    gang large 0.9 4
    submit large.yml --grace 1 -d
    wait_for 60 "the second to give its room back" journal_has 2 'no room for [1-4] of 4 tasks after 1s: .*Insufficient cpu'
    wait_for 180 "the end of both" are_over 2
    expect_all_to_have_succeeded 2
    [ "$(grep -c '"event": "attempt"' "$SCRATCH/home/.myelin/runs/2/events.jsonl")" = 1 ] ||
        fail "that it gave its room back counted as an attempt"
    expect_nothing_left
}

# -- who waits

test_a_gang_that_can_never_fit_is_passed_by_others_and_why_tells() {
    in_namespace never
    settings 'placement_patience: 2'
    gang huge 3 2
    submit huge.yml --grace 1 -d
    expect_status 0
    wait_for 60 "it to give its room back" journal_has 1 'no room for 2 of 2 tasks after 2s: .*0/2 nodes are available: 2 Insufficient cpu'
    gang small 0.1 3
    submit small.yml --grace 1
    expect_status 0
    on_cluster why 1
    expect_out "^run 1 waits since .* on cluster .*, namespace $namespace: no room for 2 of 2 tasks"
    expect_out '^  it has 2 pods: 2 (held back until their turn|without a node)|the cluster has no pod of it'
    expect_out 'has the turn to be placed'
    on_cluster ps
    expect_out 'no room for 2 of 2 tasks'
    on_cluster stop 1
    expect_status 0
    wait_for 30 "the turn to be free" has_no_holder
    expect_nothing_left
}

test_a_gang_that_waits_for_its_turn_says_whose_it_is_and_can_be_stopped() {
    local uuid
    in_namespace turns
    settings 'placement_patience: 300'
    gang huge 3 2
    submit huge.yml --grace 1 -d
    wait_for 60 "the scheduler's word" journal_has 1 'tasks wait for room; .*0/2 nodes are available'
    uuid=$(kubectl get pods -o 'jsonpath={.items[0].metadata.labels.myelin/run}')
    [ "$(holder)" = "$uuid-0" ] || fail "the Lease is not the first gang's: $(holder)"
    gang small 0.1 2
    submit small.yml --grace 1 -d
    wait_for 30 "the second to wait" journal_has 2 'it waits for its turn: run 1 of '
    on_cluster why 2
    expect_out '^  it has 2 pods: 2 held back until their turn'
    expect_out "^  run 1 of .* has the turn to be placed, since .*myelin/run=$uuid"
    on_cluster stop 2
    expect_status 0
    [ "$(holder)" = "$uuid-0" ] || fail "who waited took the Lease along"
    on_cluster stop 1
    expect_status 0
    wait_for 30 "the turn to be free" has_no_holder
    expect_nothing_left
}

# -- who dies

test_after_a_holder_is_killed_others_go_on_and_it_goes_on_when_it_is_attached() {
    in_namespace killed
    settings 'placement_patience: 300'
    gang huge 3 2
    submit huge.yml --grace 1 -d
    wait_for 60 "the first to have its turn" journal_has 1 'tasks wait for room'
    leave_alone
    [ -n "$(holder)" ] || fail "nobody has the turn"
    gang small 0.1 2
    submit small.yml --grace 1
    expect_status 0
    on_cluster stop 1
    expect_status 0
    expect_nothing_left
}

test_a_supervisor_that_is_killed_has_its_turn_taken_on_by_the_next() {
    in_namespace next
    settings 'placement_patience: 300'
    gang blocker 1.9 2
    sed -i 's/echo met$/echo met; sleep 12/' blocker.yml
    submit blocker.yml --grace 1 -d
    wait_for 60 "the first gang" all_up 2
    gang second 1.5 2
    submit second.yml --grace 1 -d
    wait_for 60 "the second to have its turn" journal_has 2 'tasks wait for room'
    kill -KILL "$(supervisor 2)"
    wait_for 180 "the end of both" are_over 2
    expect_all_to_have_succeeded 2
    expect_nothing_left
}
