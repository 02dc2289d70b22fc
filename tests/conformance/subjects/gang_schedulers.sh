# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Gangs of native pods that the real schedulers for gangs place by their PodGroups: coscheduling of scheduler-plugins, and Volcano.
. "$TESTS/conformance/gang_runs.sh"

prepare() { cluster start --while $$ && cluster operator coscheduling && cluster operator volcano; }

# by SCHEDULER: places the gangs of the law, in a namespace of its own.
by() {
    in_namespace "$1"
    settings "gang: $1, scheduler: $1"
}
expect_placed_by() { # scheduler
    local names
    names=$(kubectl get pods -o 'jsonpath={.items[*].spec.schedulerName}')
    [ "$names" = "$1 $1" ] || fail "the pods are placed by: $names"
}
expect_no_group_left() { # resource
    expect_nothing_left
    wait_for 60 "no PodGroup left" no_groups "$1"
}
no_groups() { [ -z "$(kubectl get "$1" -o name)" ]; }
waits_for_room() { # run words
    on_cluster why "$1" && grep '^  it has 2 pods: 2 without a node' out && grep -E "^  (master|worker)\.[01]: no node can take the pod: .*$2" out
}

# Of three gangs only one has room at a time: the others wait as a whole, say why, and run when the first is gone.
expect_gangs_to_be_placed_whole() { # scheduler resource words
    by "$1"
    gang some 1.5 2
    sed 's/; echo met$/&; sleep 300/' some.yml >long.yml
    submit long.yml --grace 1 -d
    expect_status 0
    wait_for 90 "the first" all_up 2
    expect_placed_by "$1"
    submit some.yml --grace 1 -d
    expect_status 0
    submit some.yml --grace 1 -d
    expect_status 0
    wait_for 60 "why the second waits" waits_for_room 2 "$3"
    ! grep -q turn out || fail "why tells of turns that there are not"
    on_cluster stop 1
    expect_status 0
    wait_for 180 "the end of all" are_over 3
    expect_all_to_have_succeeded 3 2
    expect_no_group_left "$2"
}

# A gang that fails is followed by another of its own, and one that is too large ends when it is told to.
expect_gangs_to_end() { # scheduler resource
    by "$1"
    gang some 0.1 2
    sed 's/; echo met$/&; exit 3/; s/^environment:/&\n  max_restarts: 1/' some.yml >failing.yml
    submit failing.yml --grace 1
    expect_status 3
    expect_err '^run 1 failed after 2 attempts '
    gang huge 1000 2
    submit huge.yml --grace 1 -d
    expect_status 0
    wait_for 60 "its pods" n_pods 2
    on_cluster stop 2
    expect_status 0
    expect_no_group_left "$2"
}

test_coscheduling_places_gangs_whole() {
    expect_gangs_to_be_placed_whole coscheduling podgroups.scheduling.x-k8s.io 'Insufficient cpu'
}
test_gangs_of_coscheduling_end_and_leave_nothing() { expect_gangs_to_end coscheduling podgroups.scheduling.x-k8s.io; }
test_volcano_places_gangs_whole() {
    expect_gangs_to_be_placed_whole volcano podgroups.scheduling.volcano.sh 'pod group is not ready'
}
test_gangs_of_volcano_end_and_leave_nothing() { expect_gangs_to_end volcano podgroups.scheduling.volcano.sh; }
