/* SPDX-License-Identifier: Apache-2.0 */
/* What a gang of pods makes of nodes that are lost, of its own sleep, and of a cluster that does
 * not answer. Time passes by moving back the moments that the gang has noted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "backend/kubernetes/gang.h"
#include "tfjob.h"

#define MINUTE_US (60 * 1000000ll)

#define CONDITIONS(ready, containers)                                                              \
    ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready                                     \
    "\"},{\"type\":\"ContainersReady\",\"status\":\"" containers "\"}"
#define ANSWERS RUNS CONDITIONS("True", "True") "]"
#define SILENT  RUNS CONDITIONS("False", "True") "]"
#define GIVEN_UP                                                                                   \
    RUNS CONDITIONS("False", "True") ",{\"type\":\"DisruptionTarget\",\"status\":\"True\","        \
                                     "\"reason\":\"DeletionByTaintManager\"}]"
/* A worker that is to go, and was given three seconds. */
#define GOING(version, status)                                                                     \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" NAME "-worker-0\",\"uid\":\"p1\","            \
    "\"resourceVersion\":\"" version "\",\"deletionTimestamp\":\"2026-03-01T12:00:00Z\","          \
    "\"deletionGracePeriodSeconds\":3,\"labels\":{\"myelin/run\":" LABELS(                         \
        "worker") "}},"                                                                            \
                  "\"spec\":{" ON_NODE CONTAINERS "},\"status\":{" status "}}"
#define DELETE_POD "DELETE /api/v1/namespaces/n/pods/" NAME "-worker-0"

static struct pod_gang *gang_of(struct fixture *f) {
    return (struct pod_gang *)f->backend;
}

/* A gang whose two tasks run. */
static void runs(struct fixture *f) {
    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", ANSWERS) "," WORKER("4", ANSWERS)));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    wait_for(f, "+1");
}

static void never_told(const struct fixture *f, const char *part) {
    if (strstr(f->told, part))
        fail_msg("\"%s\" is in: %s", part, f->told);
}

/* Turns the loop for longer than the time between two looks. */
static void look(struct fixture *f) {
    for (int i = 0; i < 20; i++)
        breathe(f);
}

/* ---- nodes ---- */

static void a_node_that_does_not_answer_is_told_at_once_and_when_it_is_back(void **state) {
    struct fixture *f = *state;

    runs(f);
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("10", SILENT)));
    wait_for(f, "notice: the node node1 of worker.0 does not answer; ");
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("11", ANSWERS)));
    wait_for(f, "notice: the node node1 of worker.0 answers again; ");
    never_told(f, "ended");
}

static void a_task_is_lost_when_its_pod_stays_beyond_its_time(void **state) {
    struct fixture *f = *state;

    runs(f);
    peer_more(f->peer, PODS, EVENT("MODIFIED", GOING("10", GIVEN_UP)));
    wait_for(f, "does not answer; ");
    look(f);
    never_told(f, "ended");
    gang_of(f)->tasks[1].deletion_seen_us -= MINUTE_US;
    look(f);
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 1 lost: the node of the pod is lost; ");
}

static void a_pod_whose_node_is_lost_is_removed_without_it_and_what_may_be_left_is_told(
    void **state) {
    struct fixture *f = *state;

    runs(f);
    peer_more(f->peer, PODS, EVENT("MODIFIED", GOING("10", GIVEN_UP)));
    wait_for(f, "does not answer; ");
    say(f, DELETE, 200, JOB("30", ""));
    stop(f, STOP_GRACEFULLY);
    peer_more(f->peer, PODS, MASTER_GOES);
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("31", "")));
    look(f);
    assert_int_equal(count_asked(f, DELETE_POD), 0);
    say(f, DELETE_POD, 200, GOING("32", GIVEN_UP));
    gang_of(f)->tasks[1].deletion_seen_us -= MINUTE_US;
    wait_for(f, "left lost: worker.0 may still run on node1, which does not answer: ");
    look(f);
    assert_int_equal(count_asked(f, DELETE_POD), 1);
    contains(asked(f, DELETE_POD), "\"gracePeriodSeconds\": 0");
    never_told(f, "gone;");
    peer_more(f->peer, PODS, EVENT("DELETED", GOING("33", GIVEN_UP)));
    peer_end(f->peer, LOG0, PEER_KEEP);
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "gone;");
}

static void a_pod_that_is_slow_to_go_on_a_node_that_answers_is_waited_for(void **state) {
    struct fixture *f = *state;

    runs(f);
    peer_more(f->peer, PODS, EVENT("MODIFIED", GOING("10", ANSWERS)));
    breathe(f);
    say(f, DELETE, 200, JOB("30", ""));
    stop(f, STOP_GRACEFULLY);
    peer_more(f->peer, PODS, MASTER_GOES);
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("31", "")));
    gang_of(f)->tasks[1].deletion_seen_us -= MINUTE_US;
    look(f);
    assert_int_equal(count_asked(f, DELETE_POD), 0);
    never_told(f, "gone;");
}

/* ---- sleep ---- */

#define NO_IMAGE                                                                                   \
    STATE("Pending", "\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no such\"}")

static void waits_for_an_image(struct fixture *f) {
    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS) "," WORKER("4", NO_IMAGE)));
    logs(f, LOG0, "");
    launch(f);
    wait_for(f, "waits: ");
    breathe(f);
    gang_of(f)->tasks[1].trouble_seen_us -= 2 * MINUTE_US;
}

static void patience_is_lost_by_who_is_awake(void **state) {
    struct fixture *f = *state;

    waits_for_an_image(f);
    wait_for(f, "ended 1 not started: the image train:1 cannot be pulled");
}

static void patience_begins_anew_after_a_sleep_and_the_watches_are_asked_anew(void **state) {
    struct fixture *f = *state;

    waits_for_an_image(f);
    assert_int_equal(count_asked(f, PODS), 2); /* the list, and the stream */
    hang(f, PODS, "");
    hang(f, JOBS, "");
    gang_of(f)->looked_us -= 2 * MINUTE_US;
    look(f);
    never_told(f, "ended");
    assert_int_equal(count_asked(f, PODS), 3);
    assert_int_equal(count_asked(f, JOBS), 3);
}

static void the_time_for_the_start_does_not_pass_in_a_sleep(void **state) {
    struct fixture *f = *state;

    f->options.timeout_ms = 60 * 1000;
    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    logs(f, LOG0, "");
    launch(f);
    wait_for(f, "+0");
    hang(f, PODS, "");
    hang(f, JOBS, "");
    gang_of(f)->launched_us -= 2 * MINUTE_US;
    gang_of(f)->looked_us -= 2 * MINUTE_US;
    look(f);
    never_told(f, "ended");
    gang_of(f)->launched_us -= 2 * MINUTE_US;
    wait_for(f, "ended 1 not started: not all tasks run after 60s (--timeout)");
}

/* ---- a cluster that does not answer ---- */

static void a_kill_that_is_not_heard_ends_and_says_what_is_left(void **state) {
    struct fixture *f = *state;

    runs(f);
    hang(f, DELETE, "");
    for (int i = 0; i < 2; i++)
        hang(f, "DELETE /api/v1/namespaces/n/pods/", "");
    stop(f, STOP_AT_ONCE);
    look(f);
    never_told(f, "gone;");
    gang_of(f)->killed_us -= MINUTE_US;
    wait_for(f, "gone;");
    contains(f->told, "left running: the cluster could not be reached: nobody knows what became of "
                      "it; 'kubectl --namespace n delete tfjobs.kubeflow.org " NAME "' removes");
    contains(f->told, "ended 0 lost: the cluster could not be reached");
}

static void a_kill_does_not_wait_for_an_answer_to_what_is_made(void **state) {
    struct fixture *f = *state;

    has_operator(f);
    hang(f, CREATE, "");
    launch(f);
    for (int i = 0; i < 500 && count_asked(f, CREATE) == 0; i++)
        breathe(f);
    stop(f, STOP_AT_ONCE);
    look(f);
    never_told(f, "gone;");
    gang_of(f)->killed_us -= MINUTE_US;
    wait_for(f, "gone;");
    contains(f->told, "left running: the cluster could not be reached");
}

static void a_stop_waits_for_the_cluster(void **state) {
    struct fixture *f = *state;

    runs(f);
    hang(f, DELETE, "");
    stop(f, STOP_GRACEFULLY);
    look(f);
    never_told(f, "gone;");
    never_told(f, "left");
}

/* As of an outage of minutes, told in milliseconds. */
static void hasten(struct fixture *f) {
    struct api_options *options = (struct api_options *)(uintptr_t)api_options(gang_of(f)->api);

    options->tries = 2;
    options->first_wait_ms = options->longest_wait_ms = 2;
}

static void a_stop_outlasts_an_outage_and_leaves_nothing(void **state) {
    struct fixture *f = *state;

    runs(f);
    hasten(f);
    for (int i = 0; i < 6; i++)
        say(f, DELETE, 503, STATUS(503, "ServiceUnavailable", "not now"));
    say(f, DELETE, 200, JOB("30", ""));
    stop(f, STOP_GRACEFULLY);
    wait_for(f, "notice: the cluster cannot be asked (");
    contains(f->told, "it is asked again until it answers; ");
    look(f);
    assert_int_equal(count_asked(f, DELETE), 7);
    peer_more(f->peer, PODS, MASTER_GOES WORKER_GOES);
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("31", "")));
    peer_end(f->peer, LOG0, PEER_KEEP);
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "gone;");
    never_told(f, "left");
}

static void a_kill_does_not_wait_for_the_end_of_an_outage(void **state) {
    struct fixture *f = *state;

    runs(f);
    hasten(f);
    peer_shut(f->peer); /* connections that are open stay so, and nobody answers there */
    for (int i = 0; i < 3; i++)
        hang(f, "DELETE ", "");
    stop(f, STOP_AT_ONCE);
    look(f);
    gang_of(f)->killed_us -= MINUTE_US;
    wait_for(f, "gone;");
    contains(f->told, "left running: the cluster could not be reached");
}

static void a_deletion_that_is_refused_is_told_with_what_is_left(void **state) {
    struct fixture *f = *state;

    runs(f);
    say(f, DELETE, 403, STATUS(403, "Forbidden", "not you"));
    stop(f, STOP_GRACEFULLY);
    wait_for(f, "left running: the TFJob " NAME " could not be deleted: ");
    wait_for(f, "gone;");
}

static void who_takes_over_with_credentials_that_have_expired_waits_for_others(void **state) {
    struct fixture *f = *state;

    f->facts.was_submitted = true;
    say(f, JOBS, 401, STATUS(401, "Unauthorized", "who are you"));
    say(f, PODS, 401, STATUS(401, "Unauthorized", "who are you"));
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", ANSWERS) "," WORKER("4", ANSWERS)));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    wait_for(f, "notice: the cluster cannot be asked (");
    wait_for(f, "+1");
    never_told(f, "ended");
    never_told(f, "left");
}

static void credentials_that_expire_later_end_nothing(void **state) {
    struct fixture *f = *state;

    runs(f);
    /* The credential is renewed once a call, where it can be; here it cannot. */
    say(f, PODS, 401, STATUS(401, "Unauthorized", "who are you"));
    peer_end(f->peer, PODS, PEER_CLOSE);
    wait_for(f, "notice: the cluster cannot be asked (");
    contains(f->told, "the tasks go on");
    never_told(f, "ended");
}

#define CASE(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_node_that_does_not_answer_is_told_at_once_and_when_it_is_back),
        CASE(a_task_is_lost_when_its_pod_stays_beyond_its_time),
        CASE(a_pod_whose_node_is_lost_is_removed_without_it_and_what_may_be_left_is_told),
        CASE(a_pod_that_is_slow_to_go_on_a_node_that_answers_is_waited_for),
        CASE(patience_is_lost_by_who_is_awake),
        CASE(patience_begins_anew_after_a_sleep_and_the_watches_are_asked_anew),
        CASE(the_time_for_the_start_does_not_pass_in_a_sleep),
        CASE(a_kill_that_is_not_heard_ends_and_says_what_is_left),
        CASE(a_kill_does_not_wait_for_an_answer_to_what_is_made),
        CASE(a_stop_waits_for_the_cluster),
        CASE(a_stop_outlasts_an_outage_and_leaves_nothing),
        CASE(a_kill_does_not_wait_for_the_end_of_an_outage),
        CASE(a_deletion_that_is_refused_is_told_with_what_is_left),
        CASE(credentials_that_expire_later_end_nothing),
        CASE(who_takes_over_with_credentials_that_have_expired_waits_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
