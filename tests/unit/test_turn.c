/* SPDX-License-Identifier: Apache-2.0 */
/* The turn of a gang of two pods, on a cluster that a peer plays: API server and scheduler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "backend/kubernetes/gang.h"
#include "spec/settings.h"
#include "tfjob.h"

#define CORE         "/api/v1/namespaces/n/"
#define LEASES_PATH  "/apis/coordination.k8s.io/v1/namespaces/n/leases"
#define MAPS_POST    "POST " CORE "configmaps"
#define SERVICE_POST "POST " CORE "services"
#define PODS_POST    "POST " CORE "pods"
#define MAPS         "GET " CORE "configmaps?"
#define LEASES       "GET " LEASES_PATH "?"
#define LEASE_GET    "GET " LEASES_PATH "/myelin-gang"
#define LEASE_POST   "POST " LEASES_PATH
#define LEASE_PUT    "PUT " LEASES_PATH "/myelin-gang"
#define PODS_PATCH   "PATCH " CORE "pods/"
#define PODS_DELETE  "DELETE " CORE "pods/"
#define MAPS_DELETE  "DELETE " CORE "configmaps/" NAME

#define OWN(name, uid, version) "{" META(name, uid, version, "\"" UUID "\"") "}"
#define GATE                    "\"schedulingGates\":[{\"name\":\"myelin/gang\"}],"
#define NATIVE(role, uid, version, extra, status)                                                  \
    "{" META(NAME "-" role "-0", uid, version,                                                     \
             "\"" UUID "\",\"myelin/role\":\"" role                                                \
             "\",\"myelin/index\":\"0\"") ",\"spec\":"                                             \
                                          "{" extra "\"containers\":[{\"name\":\"task\","          \
                                          "\"image\":\"train:1\"}]},\"status\":{" status "}}"
#define UNSCHEDULABLE                                                                              \
    "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","       \
    "\"reason\":\"Unschedulable\",\"message\":\"0/2 nodes are available: 2 Insufficient cpu.\"}]"
#define TASK_STATE(phase, state)                                                                   \
    "\"phase\":\"" phase "\",\"containerStatuses\":[{\"name\":\"task\",\"state\":{" state "}}]"
#define TASK_RUNS TASK_STATE("Running", "\"running\":{\"startedAt\":\"2026-03-01T12:00:00Z\"}")
#define TASK_FAILS                                                                                 \
    TASK_STATE("Failed", "\"terminated\":{\"exitCode\":3,\"startedAt\":\"2026-03-01T12:00:00Z\","  \
                         "\"finishedAt\":\"2026-03-01T12:00:01Z\"}")
#define GATED(role, uid, version)  NATIVE(role, uid, version, GATE, "\"phase\":\"Pending\"")
#define PLACED(role, uid, version) NATIVE(role, uid, version, ON_NODE, "\"phase\":\"Pending\"")

#define LEASE(version, spec) "{" META("myelin-gang", "l", version, "\"\"") ",\"spec\":{" spec "}}"
#define OTHERS(version)      LEASE(version, "\"holderIdentity\":\"other-0\",\"leaseDurationSeconds\":15")
#define OURS(version)                                                                              \
    LEASE(version, "\"holderIdentity\":\"" UUID "-0\",\"leaseDurationSeconds\":15")
#define FREE(version) LEASE(version, "\"leaseTransitions\":1")

static void launch_native(struct fixture *f) {
    f->settings->kubernetes.has_shim = false; /* the turn is the same with and without */
    f->options.form = &pods_native;
    launch(f);
}

/* As of an outage of minutes, told in milliseconds. */
static void hasten(struct fixture *f) {
    struct api_options *options =
        (struct api_options *)(uintptr_t)api_options(((struct pod_gang *)f->backend)->api);

    options->tries = 2;
    options->first_wait_ms = options->longest_wait_ms = 2;
}

static void makes_owner(struct fixture *f) {
    say(f, MAPS_POST, 201, OWN(NAME, "j", "2"));
    say(f, SERVICE_POST, 201, OWN(NAME, "s", "2"));
}

/* Both pods are made, at the gate. */
static void makes_pods(struct fixture *f) {
    makes_owner(f);
    say(f, PODS_POST, 201, GATED("master", "p0", "3"));
    say(f, PODS_POST, 201, GATED("worker", "p1", "4"));
}

/* What the watches begin with: the owner, both pods, and what there is of the Lease. */
static void shows_gated(struct fixture *f, const char *lease) {
    say(f, MAPS, 200, LIST(OWN(NAME, "j", "2")));
    hang(f, MAPS, "");
    say(f, PODS, 200, LIST(GATED("master", "p0", "3") "," GATED("worker", "p1", "4")));
    hang(f, PODS, "");
    say(f, LEASES, 200, lease);
    hang(f, LEASES, "");
}

static void opens_gates(struct fixture *f) {
    say(f, PODS_PATCH, 200, OWN("x", "p0", "5"));
    say(f, PODS_PATCH, 200, OWN("x", "p1", "6"));
}

static void wait_until_asked(struct fixture *f, const char *what, size_t n) {
    for (int i = 0; i < 200 && count_asked(f, what) < n; i++)
        breathe(f);
    assert_int_equal(count_asked(f, what), n);
}

static const char *nth(const struct fixture *f, const char *what, size_t n) {
    for (size_t i = 0; i < peer_count(f->peer); i++)
        if (strncmp(peer_request(f->peer, i), what, strlen(what)) == 0 && n-- == 0)
            return peer_request(f->peer, i);
    fail_msg("nobody asked so often for %s", what);
    return "";
}

/* The gang has the Lease, and its gates are open. */
static void begin_placing(struct fixture *f) {
    makes_pods(f);
    shows_gated(f, LIST(""));
    say(f, LEASE_POST, 201, OURS("7"));
    opens_gates(f);
    launch_native(f);
    wait_until_asked(f, PODS_PATCH, 2);
}

/* ---- laws ---- */

static void pods_wait_at_a_gate_that_is_opened_under_the_lease(void **state) {
    struct fixture *f = *state;

    begin_placing(f);
    contains(asked(f, PODS_POST), "\"schedulingGates\": [{\"name\": \"myelin/gang\"}]");
    contains(asked(f, LEASE_POST), "\"holderIdentity\": \"" UUID "-0\"");
    contains(asked(f, LEASE_POST), "\"myelin/run-id\": \"7\"");
    contains(asked(f, PODS_PATCH), "application/strategic-merge-patch+json");
    contains(asked(f, PODS_PATCH), "{\"name\": \"myelin/gang\", \"$patch\": \"delete\"}");
    assert_string_equal(f->told, "");
    say(f, LEASE_PUT, 200, FREE("9"));
    peer_more(f->peer, PODS, EVENT("MODIFIED", PLACED("master", "p0", "10")));
    breathe(f);
    assert_int_equal(count_asked(f, LEASE_PUT), 0);
    peer_more(f->peer, PODS, EVENT("MODIFIED", PLACED("worker", "p1", "11")));
    wait_for(f, "submitted; ");
    wait_until_asked(f, LEASE_PUT, 1);
    assert_null(strstr(asked(f, LEASE_PUT), "holderIdentity"));
    contains(asked(f, LEASE_PUT), "\"resourceVersion\": \"7\"");
}

static void nothing_is_told_of_a_task_before_all_have_a_place(void **state) {
    struct fixture *f = *state;

    begin_placing(f);
    peer_more(f->peer, PODS, EVENT("MODIFIED", NATIVE("master", "p0", "10", ON_NODE, TASK_RUNS)));
    breathe(f);
    breathe(f);
    assert_string_equal(f->told, "");
    say(f, LEASE_PUT, 200, FREE("9"));
    logs(f, LOG0, "");
    peer_more(f->peer, PODS, EVENT("MODIFIED", PLACED("worker", "p1", "11")));
    wait_for(f, "submitted; +0 ");
}

static void a_lease_of_somebody_else_is_waited_for(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(OTHERS("6")));
    launch_native(f);
    wait_for(f, "waits: it waits for its turn: run other-0 of somebody is being given its place");
    assert_int_equal(count_asked(f, PODS_PATCH), 0);
    say(f, LEASE_PUT, 200, OURS("9"));
    opens_gates(f);
    peer_more(f->peer, LEASES, EVENT("MODIFIED", FREE("8")));
    wait_until_asked(f, PODS_PATCH, 2);
    contains(asked(f, LEASE_PUT), "\"resourceVersion\": \"8\"");
}

static void who_loses_the_race_for_the_lease_opens_nothing(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(FREE("6")));
    say(f, LEASE_PUT, 409, STATUS(409, "Conflict", "the object has been modified"));
    say(f, LEASE_GET, 200, OTHERS("8"));
    launch_native(f);
    wait_until_asked(f, LEASE_GET, 1);
    breathe(f);
    assert_int_equal(count_asked(f, PODS_PATCH), 0);
    assert_int_equal(count_asked(f, LEASE_PUT), 1);
}

/* As when somebody took it over while the cluster could not be reached. */
static void a_gang_that_lost_its_lease_waits_with_what_it_has(void **state) {
    struct fixture *f = *state;

    f->settings->kubernetes.placement_patience_s = 1;
    begin_placing(f);
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", NATIVE("master", "p0", "10", "", "\"phase\":\"Pending\""))
                  EVENT("MODIFIED", NATIVE("worker", "p1", "11", "", "\"phase\":\"Pending\"")));
    say(f, LEASE_PUT, 409, STATUS(409, "Conflict", "the object has been modified"));
    say(f, LEASE_GET, 200, OTHERS("20"));
    wait_until_asked(f, LEASE_GET, 1);
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", PLACED("master", "p0", "21"))
                  EVENT("MODIFIED", NATIVE("worker", "p1", "22", "", UNSCHEDULABLE)));
    for (int i = 0; i < 40; i++)
        breathe(f);
    assert_int_equal(count_asked(f, PODS_DELETE), 0); /* that is for who has the turn */
    peer_more(f->peer, PODS, EVENT("MODIFIED", PLACED("worker", "p1", "23")));
    wait_for(f, "submitted; ");
    assert_int_equal(count_asked(f, LEASE_PUT), 1);
}

static void a_lease_that_somebody_made_meanwhile_is_theirs(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(""));
    say(f, LEASE_POST, 409, STATUS(409, "AlreadyExists", "it exists"));
    say(f, LEASE_GET, 200, OTHERS("8"));
    launch_native(f);
    wait_until_asked(f, LEASE_GET, 1);
    breathe(f);
    breathe(f);
    assert_int_equal(count_asked(f, PODS_PATCH), 0);
}

/* The worker finds no node, and the pods are deleted, to be made again. */
static void give_room_back(struct fixture *f, const char *seen) {
    f->settings->kubernetes.placement_patience_s = 1;
    begin_placing(f);
    say(f, PODS_DELETE, 200, OWN("x", "p1", "12"));
    say(f, PODS_DELETE, 200, OWN("x", "p0", "13"));
    say(f, LEASE_PUT, 200, FREE("20"));
    say(f, PODS_POST, 201, GATED("master", "q0", "21"));
    say(f, PODS_POST, 201, GATED("worker", "q1", "22"));
    peer_more(f->peer, PODS, seen);
    wait_until_asked(f, PODS_DELETE, 2);
}
#define NO_ROOM_BUT_FOR(master)                                                                    \
    EVENT("MODIFIED", master)                                                                      \
    EVENT("MODIFIED", NATIVE("worker", "p1", "11", "", UNSCHEDULABLE))
#define WORKER_GONE EVENT("DELETED", NATIVE("worker", "p1", "15", "", UNSCHEDULABLE))

static void a_gang_without_room_is_taken_back_and_made_again(void **state) {
    struct fixture *f = *state;

    give_room_back(f, NO_ROOM_BUT_FOR(PLACED("master", "p0", "10")));
    contains(f->told, "waits: no room for 1 of 2 tasks after 1s");
    contains(f->told, "worker.0: no node can take the pod: 0/2 nodes are available: 2 Insufficient "
                      "cpu.; ");
    contains(nth(f, PODS_DELETE, 0), "\"uid\": \"p1\", \"resourceVersion\": \"11\"");
    contains(nth(f, PODS_DELETE, 1), "\"uid\": \"p0\"");
    breathe(f);
    assert_int_equal(count_asked(f, PODS_POST), 2); /* not before those names are free */
    assert_int_equal(count_asked(f, LEASE_PUT), 0); /* nor is their room */
    peer_more(f->peer, PODS, EVENT("DELETED", PLACED("master", "p0", "14")) WORKER_GONE);
    wait_until_asked(f, PODS_POST, 4);
    wait_until_asked(f, LEASE_PUT, 1);
    contains(nth(f, PODS_POST, 2), NAME "-master-0");
    assert_null(strstr(f->told, "ended"));
    assert_null(strstr(f->told, "submitted"));
}

static void after_its_back_off_a_gang_says_whose_turn_it_waits_for(void **state) {
    struct fixture *f = *state;

    give_room_back(f, NO_ROOM_BUT_FOR(PLACED("master", "p0", "10")));
    peer_more(f->peer, PODS, EVENT("DELETED", PLACED("master", "p0", "14")) WORKER_GONE);
    wait_until_asked(f, PODS_POST, 4);
    wait_until_asked(f, LEASE_PUT, 1);
    peer_more(f->peer, PODS,
              EVENT("ADDED", GATED("master", "q0", "21"))
                  EVENT("ADDED", GATED("worker", "q1", "22")));
    peer_more(f->peer, LEASES, EVENT("MODIFIED", OTHERS("23")));
    for (int i = 0; i < 20; i++)
        breathe(f);
    assert_null(strstr(f->told, "it waits for its turn")); /* but for its time */
    wait_for(f, "waits: it waits for its turn: run other-0 of somebody is being given its place in "
                "namespace n; when it had it last, there was no room for 1 of 2 tasks; ");
}

/* A master that is to go, with what its node says of it. */
#define GOING(status)                                                                              \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" NAME "-master-0\",\"uid\":\"p0\","            \
    "\"resourceVersion\":\"13\",\"deletionTimestamp\":\"2026-03-01T12:00:00Z\","                   \
    "\"deletionGracePeriodSeconds\":1,\"labels\":{\"myelin/run\":\"" UUID                          \
    "\",\"myelin/role\":\"master\",\"myelin/index\":\"0\"}},\"spec\":{" ON_NODE                    \
    "\"containers\":[{\"name\":\"task\"}]},\"status\":{" status "}}"
#define GOING_WITH_ITS_NODE                                                                        \
    GOING(TASK_RUNS ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},"                  \
                    "{\"type\":\"ContainersReady\",\"status\":\"True\"}]")
#define GOING_UNBEGUN GOING("\"phase\":\"Pending\"")

static int64_t deletion_seen(const struct fixture *f) {
    return ((const struct pod_gang *)f->backend)->tasks[0].deletion_seen_us;
}

static void wait_longer(struct fixture *f, int seconds) {
    ((struct pod_gang *)f->backend)->tasks[0].deletion_seen_us -= seconds * 1000000ll;
}

static void a_gang_without_room_does_not_wait_for_a_node_that_is_lost(void **state) {
    struct fixture *f = *state;

    give_room_back(f, NO_ROOM_BUT_FOR(NATIVE("master", "p0", "10", ON_NODE, TASK_RUNS)));
    peer_more(f->peer, PODS, EVENT("MODIFIED", GOING_WITH_ITS_NODE) WORKER_GONE);
    wait_for(f, "does not answer; ");
    assert_int_equal(count_asked(f, PODS_DELETE), 2);
    say(f, PODS_DELETE, 200, OWN("x", "p0", "16"));
    wait_longer(f, 60);
    wait_until_asked(f, PODS_DELETE, 3);
    contains(nth(f, PODS_DELETE, 2), "\"gracePeriodSeconds\": 0");
    contains(f->told, "left lost: master.0 may still run on node1, which does not answer");
    peer_more(f->peer, PODS, EVENT("DELETED", GOING_WITH_ITS_NODE));
    wait_until_asked(f, PODS_POST, 4);
    assert_null(strstr(f->told, "ended"));
}

/* Nobody says that its node is lost: its image may be on its way. */
static void a_pod_that_never_ran_and_does_not_go_is_waited_for_some_minutes(void **state) {
    struct fixture *f = *state;

    give_room_back(f, NO_ROOM_BUT_FOR(PLACED("master", "p0", "10")));
    peer_more(f->peer, PODS, EVENT("MODIFIED", GOING_UNBEGUN) WORKER_GONE);
    for (int i = 0; i < 200 && deletion_seen(f) == 0; i++)
        breathe(f);
    assert_int_not_equal(deletion_seen(f), 0);
    wait_longer(f, 60);
    for (int i = 0; i < 30; i++)
        breathe(f); /* past the next look */
    assert_int_equal(count_asked(f, PODS_DELETE), 2);
    say(f, PODS_DELETE, 200, OWN("x", "p0", "16"));
    say(f, LEASE_PUT, 200, OURS("30")); /* its back-off is over by then */
    wait_longer(f, 300);
    wait_until_asked(f, PODS_DELETE, 3);
    contains(nth(f, PODS_DELETE, 2), "\"gracePeriodSeconds\": 0");
    peer_more(f->peer, PODS, EVENT("DELETED", GOING_UNBEGUN));
    wait_until_asked(f, PODS_POST, 4);
    assert_null(strstr(f->told, "left lost"));
}

/* As who was asleep while the scheduler found a node: what was seen last is old. */
static void a_gang_that_has_found_room_unseen_is_not_taken_back(void **state) {
    struct fixture *f = *state;

    f->settings->kubernetes.placement_patience_s = 1;
    begin_placing(f);
    say(f, PODS_DELETE, 409, STATUS(409, "Conflict", "the ResourceVersion does not match"));
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", PLACED("master", "p0", "10"))
                  EVENT("MODIFIED", NATIVE("worker", "p1", "11", "", UNSCHEDULABLE)));
    wait_until_asked(f, PODS_DELETE, 1);
    say(f, LEASE_PUT, 200, FREE("20"));
    peer_more(f->peer, PODS, EVENT("MODIFIED", PLACED("worker", "p1", "12")));
    wait_for(f, "submitted; ");
    assert_int_equal(count_asked(f, PODS_DELETE), 1);
    assert_null(strstr(f->told, "no room"));
    assert_null(strstr(f->told, "ended"));
}

static void a_task_that_fails_before_all_have_a_place_fails_the_gang(void **state) {
    struct fixture *f = *state;

    begin_placing(f);
    say(f, LEASE_PUT, 200, FREE("9"));
    logs(f, LOG0, "");
    peer_more(f->peer, PODS, EVENT("MODIFIED", NATIVE("master", "p0", "10", ON_NODE, TASK_FAILS)));
    peer_end(f->peer, LOG0, PEER_KEEP);
    wait_for(f, "submitted; +0 ended 0 exit 3;");
    wait_until_asked(f, LEASE_PUT, 1);
}

static void a_gang_that_is_stopped_gives_its_turn_back(void **state) {
    struct fixture *f = *state;

    begin_placing(f);
    say(f, LEASE_PUT, 200, FREE("9"));
    say(f, MAPS_DELETE, 200, OWN(NAME, "j", "30"));
    stop(f, STOP_GRACEFULLY);
    wait_until_asked(f, MAPS_DELETE, 1);
    wait_until_asked(f, LEASE_PUT, 1);
    assert_null(strstr(asked(f, LEASE_PUT), "holderIdentity"));
    peer_more(f->peer, PODS,
              EVENT("DELETED", PLACED("master", "p0", "14"))
                  EVENT("DELETED", PLACED("worker", "p1", "15")));
    peer_more(f->peer, MAPS, EVENT("DELETED", OWN(NAME, "j", "31")));
    wait_for(f, "gone;");
    assert_null(strstr(f->told, "+0"));
}

static void a_gang_that_is_stopped_while_it_waits_leaves_the_lease_alone(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(OTHERS("6")));
    say(f, MAPS_DELETE, 200, OWN(NAME, "j", "30"));
    launch_native(f);
    wait_until_asked(f, LEASES, 2);
    stop(f, STOP_GRACEFULLY);
    wait_until_asked(f, MAPS_DELETE, 1);
    peer_more(f->peer, PODS,
              EVENT("DELETED", GATED("master", "p0", "14"))
                  EVENT("DELETED", GATED("worker", "p1", "15")));
    peer_more(f->peer, MAPS, EVENT("DELETED", OWN(NAME, "j", "31")));
    wait_for(f, "gone;");
    assert_int_equal(count_asked(f, LEASE_PUT), 0);
}

static void who_may_not_have_the_lease_is_told_the_right(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    say(f, MAPS, 200, LIST(OWN(NAME, "j", "2")));
    hang(f, MAPS, "");
    say(f, PODS, 200, LIST(GATED("master", "p0", "3") "," GATED("worker", "p1", "4")));
    hang(f, PODS, "");
    say(f, LEASES, 403, STATUS(403, "Forbidden", "leases is forbidden: User x cannot list"));
    say(f, MAPS_DELETE, 200, OWN(NAME, "j", "30"));
    launch_native(f);
    wait_for(f, "ended 0 not started: the gang cannot wait for its turn: ");
    contains(f->told, "leases is forbidden");
}

static void who_may_read_the_lease_and_not_write_it_is_told_the_right(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(FREE("6")));
    say(f, LEASE_PUT, 403, STATUS(403, "Forbidden", "leases is forbidden: User x cannot update"));
    say(f, MAPS_DELETE, 200, OWN(NAME, "j", "30"));
    launch_native(f);
    wait_for(f, "ended 0 not started: the gang cannot take its turn: ");
    contains(f->told, "leases is forbidden");
}

/* As of a token that expires in the hours that a gang waits. */
static void who_has_to_log_in_again_keeps_the_gang_that_waits(void **state) {
    struct fixture *f = *state;

    makes_pods(f);
    shows_gated(f, LIST(FREE("6")));
    say(f, LEASE_PUT, 401, STATUS(401, "Unauthorized", "who are you"));
    say(f, LEASE_PUT, 401, STATUS(401, "Unauthorized", "who are you"));
    say(f, LEASE_PUT, 200, OURS("7"));
    opens_gates(f);
    launch_native(f);
    wait_for(f, "notice: the cluster cannot be asked (");
    wait_until_asked(f, PODS_PATCH, 2);
    assert_int_equal(count_asked(f, LEASE_PUT), 3);
    assert_null(strstr(f->told, "ended"));
    assert_null(strstr(strstr(f->told, "notice") + 1, "notice"));
}

static void a_lease_that_was_ours_and_cannot_be_renewed_ends_nothing(void **state) {
    struct fixture *f = *state;

    begin_placing(f);
    say(f, LEASE_PUT, 403, STATUS(403, "Forbidden", "leases is forbidden"));
    say(f, LEASE_PUT, 200, OURS("8"));
    wait_until_asked(f, LEASE_PUT, 2);
    breathe(f);
    assert_null(strstr(f->told, "ended"));
    contains(f->told, "notice: the cluster cannot be asked (");
}

static void pods_that_a_cluster_cannot_take_at_present_are_asked_for_until_it_can(void **state) {
    struct fixture *f = *state;

    say(f, MAPS_POST, 201, OWN(NAME, "j", "2"));
    for (int i = 0; i < 4; i++)
        say(f, SERVICE_POST, 503, STATUS(503, "ServiceUnavailable", "not now"));
    say(f, SERVICE_POST, 201, OWN(NAME, "s", "2"));
    for (int i = 0; i < 8; i++)
        say(f, PODS_POST, 503, STATUS(503, "ServiceUnavailable", "not now"));
    say(f, PODS_POST, 201, GATED("master", "p0", "3"));
    say(f, PODS_POST, 201, GATED("worker", "p1", "4"));
    shows_gated(f, LIST(OTHERS("6")));
    launch_native(f);
    hasten(f);
    wait_until_asked(f, LEASES, 2);
    assert_int_equal(count_asked(f, PODS_POST), 10);
    contains(f->told, "notice: the cluster cannot be asked (");
    contains(f->told, "not now (503)); it is asked again until it answers; ");
    assert_null(strstr(f->told, "ended"));
}

static void a_gang_that_never_reached_its_cluster_is_not_started(void **state) {
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++)
        say(f, MAPS_POST, 503, STATUS(503, "ServiceUnavailable", "not now"));
    launch_native(f);
    hasten(f);
    wait_for(f, "ended 0 not started: the cluster does not take the ConfigMap: ");
    wait_for(f, "gone;");
    assert_null(strstr(f->told, "left"));
}

/* The answer to the first try is lost, and the second one is refused for now. */
static void what_may_have_been_made_by_a_cluster_that_fell_silent_is_told_with_what_removes_it(
    void **state) {
    struct fixture *f = *state;

    peer_for(f->peer, MAPS_POST);
    peer_raw(f->peer, "", PEER_CLOSE);
    say(f, MAPS_POST, 503, STATUS(503, "ServiceUnavailable", "not now"));
    launch_native(f);
    hasten(f);
    wait_for(f,
             "left running: nobody knows whether the cluster has made the ConfigMap " NAME
             "; 'kubectl --namespace n delete configmaps " NAME "' removes what is left of it; ");
    wait_for(f, "ended 0 not started: the cluster does not take the ConfigMap: ");
    wait_for(f, "gone;");
}

/* Whose time for the start is over does not wait on, and is deleted when that can be done. */
static void the_time_for_the_start_passes_in_an_outage(void **state) {
    struct fixture *f = *state;

    f->options.timeout_ms = 1000;
    say(f, MAPS_POST, 201, OWN(NAME, "j", "2"));
    for (int i = 0; i < 3; i++)
        say(f, SERVICE_POST, 503, STATUS(503, "ServiceUnavailable", "not now"));
    hang(f, SERVICE_POST, "");
    launch_native(f);
    hasten(f);
    wait_for(f, "ended 0 not started: not all tasks run after 1s (--timeout)");
    assert_null(strstr(f->told, "gone;"));
}

static void an_old_cluster_that_drops_the_gate_is_told_of(void **state) {
    struct fixture *f = *state;

    makes_owner(f);
    say(f, PODS_POST, 201, OWN("x", "p0", "3"));
    say(f, PODS_POST, 201, OWN("x", "p1", "4"));
    launch_native(f);
    wait_for(f, "notice: this cluster has no scheduling gates (Kubernetes before 1.27)");
    wait_for(f, "submitted; ");
    assert_int_equal(count_asked(f, LEASES), 0);
}

/* As whoever takes over from one that died while it gave the room back. */
static void a_pod_of_before_that_is_still_going_is_waited_for(void **state) {
    static const char going[] =
        "{\"metadata\":{\"name\":\"x\",\"uid\":\"p0\",\"deletionTimestamp\":"
        "\"2026-03-01T12:00:00Z\",\"labels\":{\"myelin/run\":\"" UUID "\"}}}";
    struct fixture *f = *state;

    makes_owner(f);
    say(f, PODS_POST, 409, STATUS(409, "AlreadyExists", "it exists"));
    say(f, "GET " CORE "pods/", 200, going);
    say(f, PODS_POST, 201, GATED("worker", "p1", "4"));
    say(f, PODS_POST, 201, GATED("master", "p0", "3"));
    shows_gated(f, LIST(OTHERS("6")));
    launch_native(f);
    wait_until_asked(f, PODS_POST, 3);
    /* Both were asked for at once: whichever was first is the one that is going. */
    contains(nth(f, PODS_POST, 2), strstr(asked(f, "GET " CORE "pods/"), "pods/" NAME "-master-0")
                                       ? "\"" NAME "-master-0\""
                                       : "\"" NAME "-worker-0\"");
    wait_until_asked(f, LEASES, 2);
    assert_string_equal(f->told, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(pods_wait_at_a_gate_that_is_opened_under_the_lease),
        CASE(nothing_is_told_of_a_task_before_all_have_a_place),
        CASE(a_lease_of_somebody_else_is_waited_for),
        CASE(who_loses_the_race_for_the_lease_opens_nothing),
        CASE(a_gang_that_lost_its_lease_waits_with_what_it_has),
        CASE(a_lease_that_somebody_made_meanwhile_is_theirs),
        CASE(a_gang_without_room_is_taken_back_and_made_again),
        CASE(after_its_back_off_a_gang_says_whose_turn_it_waits_for),
        CASE(a_gang_without_room_does_not_wait_for_a_node_that_is_lost),
        CASE(a_pod_that_never_ran_and_does_not_go_is_waited_for_some_minutes),
        CASE(a_gang_that_has_found_room_unseen_is_not_taken_back),
        CASE(a_task_that_fails_before_all_have_a_place_fails_the_gang),
        CASE(a_gang_that_is_stopped_gives_its_turn_back),
        CASE(a_gang_that_is_stopped_while_it_waits_leaves_the_lease_alone),
        CASE(who_may_not_have_the_lease_is_told_the_right),
        CASE(who_may_read_the_lease_and_not_write_it_is_told_the_right),
        CASE(who_has_to_log_in_again_keeps_the_gang_that_waits),
        CASE(a_lease_that_was_ours_and_cannot_be_renewed_ends_nothing),
        CASE(pods_that_a_cluster_cannot_take_at_present_are_asked_for_until_it_can),
        CASE(a_gang_that_never_reached_its_cluster_is_not_started),
        CASE(what_may_have_been_made_by_a_cluster_that_fell_silent_is_told_with_what_removes_it),
        CASE(the_time_for_the_start_passes_in_an_outage),
        CASE(an_old_cluster_that_drops_the_gate_is_told_of),
        CASE(a_pod_of_before_that_is_still_going_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
