/* SPDX-License-Identifier: Apache-2.0 */
/* A gang as a job of an operator, whatever the cluster does to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tfjob.h"

static void a_gang_is_told_from_its_beginning_to_its_end(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(""));
    logs(f, LOG0, "2026-03-01T12:00:01.5Z hello\n");
    logs(f, LOG1, "");
    launch(f);
    peer_more(f->peer, PODS, EVENT("ADDED", MASTER("6", RUNS)));
    wait_for(f, "0:hello");
    peer_more(f->peer, PODS, EVENT("ADDED", WORKER("7", RUNS)));
    wait_for(f, "+1 ");
    peer_more(f->peer, LOG1, "2026-03-01T12:00:02Z world\n");
    peer_more(f->peer, PODS, EVENT("MODIFIED", MASTER("8", ENDED("Succeeded", "0"))));
    wait_for(f, "1:world");
    peer_more(f->peer, LOG0, "2026-03-01T12:00:03Z last\n");
    peer_end(f->peer, LOG0, PEER_KEEP);
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("9", ENDED("Succeeded", "0"))));
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 1");
    deletes(f, MASTER_GOES WORKER_GOES);
    breathe(f);
    assert_string_equal(f->told, "submitted; +0 0:hello| +1 1:world| 0:last| ended 0 exit 0; "
                                 "ended 1 exit 0; gone;");
    contains(asked(f, CREATE), "\"kind\": \"TFJob\"");
    contains(asked(f, CREATE), "\"myelin/run\": \"" UUID "\"");
    contains(asked(f, "/pods?"), "labelSelector=myelin%2Frun%3D" UUID "%2Cmyelin%2Fattempt%3D0");
    contains(asked(f, DELETE), "\"propagationPolicy\": \"Background\"");
}

static void a_job_is_created_once_although_the_answer_is_lost(void **state) {
    struct fixture *f = *state;

    has_operator(f);
    peer_for(f->peer, CREATE);
    peer_raw(f->peer, "HTTP/1.1 201 Cre", PEER_RESET);
    say(f, CREATE, 409, STATUS(409, "AlreadyExists", "exists"));
    say(f, LOOKUP, 200, JOB("2", ""));
    shows(f, LIST(JOB("2", "")), LIST(""));
    launch(f);
    wait_for(f, "submitted");
    peer_more(f->peer, PODS, "");
    assert_string_equal(f->told, "submitted; ");
    assert_int_equal(count_asked(f, CREATE), 2);
}

/* Nothing was made: nothing is looked for, and nothing is deleted. */
static void is_refused(struct fixture *f, const char *sentence) {
    char expected[2048];

    launch(f);
    wait_for(f, "gone;");
    breathe(f);
    snprintf(expected, sizeof expected, "ended 0 not started: %s; ended 1 not started: %s; gone;",
             sentence, sentence);
    assert_string_equal(f->told, expected);
    assert_int_equal(count_asked(f, "DELETE"), 0);
    assert_int_equal(count_asked(f, PODS), 0);
}

static void a_job_of_somebody_else_is_left_alone(void **state) {
    struct fixture *f = *state;

    has_operator(f);
    say(f, CREATE, 409, STATUS(409, "AlreadyExists", "exists"));
    say(f, LOOKUP, 200, FOREIGN_JOB);
    is_refused(f, "the cluster has a TFJob " NAME " of somebody else");
}

static void a_cluster_without_the_kind_is_told(void **state) {
    struct fixture *f = *state;

    has_kinds(f, "{\"resources\":[{\"name\":\"mpijobs\",\"kind\":\"MPIJob\"}]}");
    launch(f);
    wait_for(f, "gone;");
    contains(f->told, "ended 0 not started: ");
    contains(f->told, "ended 1 not started: ");
    contains(f->told, "TFJob");
    contains(f->told, "backend: native");
    assert_int_equal(count_asked(f, "POST"), 0);
}

static void a_cluster_without_the_group_is_told(void **state) {
    struct fixture *f = *state;

    say(f, GROUP, 404, "404 page not found\n");
    launch(f);
    wait_for(f, "gone;");
    contains(f->told, "ended 1 not started: ");
    contains(f->told, "TFJob");
    assert_int_equal(count_asked(f, "POST"), 0);
}

static void what_admission_refuses_is_told_in_its_words(void **state) {
    static const struct {
        int status;
        const char *body, *words;
    } rows[] = {
        { 422, STATUS(422, "Invalid", "spec.replicas: must be 1"), "spec.replicas: must be 1" },
        { 403, STATUS(403, "Forbidden", "exceeded quota: pods=3"), "exceeded quota: pods=3" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        has_operator(f);
        say(f, CREATE, rows[i].status, rows[i].body);
        launch(f);
        wait_for(f, "gone;");
        contains(f->told, "ended 0 not started: the cluster does not take the TFJob: ");
        contains(f->told, rows[i].words);
        contains(strstr(f->told, "ended 1 not started: "), rows[i].words);
        assert_int_equal(count_asked(f, "DELETE"), 0);
        leave(f);
        f->told[0] = '\0';
    }
}

static void a_failure_with_a_slow_log_is_told_before_those_who_vanish_after_it(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    logs(f, LOG0, "");
    logs(f, LOG1, "2026-03-01T12:00:01Z a\n");
    launch(f);
    wait_for(f, "1:a");
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("8", ENDED("Failed", "7"))));
    peer_more(f->peer, PODS, EVENT("DELETED", MASTER("9", RUNS)));
    peer_end(f->peer, LOG0, PEER_KEEP);
    breathe(f);
    assert_null(strstr(f->told, "ended"));
    peer_more(f->peer, LOG1, "2026-03-01T12:00:02Z why\n");
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 0");
    assert_string_equal(f->told, "submitted; +0 +1 1:a| 1:why| ended 1 exit 7; ended 0 lost: "
                                 "somebody deleted the pod before it was done; ");
    deletes(f, EVENT("DELETED", WORKER("12", ENDED("Failed", "7"))));
}

static void a_pod_that_is_replaced_ends_its_task_once(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    wait_for(f, "+1 ");
    peer_more(f->peer, LOG1, "");
    peer_more(f->peer, PODS,
              EVENT("DELETED", WORKER("8", RUNS))
                  EVENT("ADDED", POD("worker", "p9", "9", ON_NODE, RUNS)));
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 1");
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", POD("worker", "p9", "10", ON_NODE, ENDED("Succeeded", "0"))));
    peer_more(f->peer, PODS, EVENT("MODIFIED", MASTER("11", ENDED("Succeeded", "0"))));
    peer_end(f->peer, LOG0, PEER_KEEP);
    wait_for(f, "ended 0");
    deletes(f, MASTER_GOES);
    assert_string_equal(f->told, "submitted; +0 +1 ended 1 lost: somebody deleted the pod before "
                                 "it was done; ended 0 exit 0; gone;");
}

#define NO_ROOM(words)                                                                             \
    "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","       \
    "\"reason\":\"Unschedulable\",\"message\":\"" words "\"}]"

static void who_finds_no_node_waits_and_that_is_told_once(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")),
          LIST(POD("master", "p0", "3", "", NO_ROOM("0/2 nodes")) "," POD("worker", "p1", "4", "",
                                                                          NO_ROOM("0/2 nodes"))));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    wait_for(f, "waits: ");
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", POD("master", "p0", "6", "", NO_ROOM("0/2 nodes: other words"))));
    breathe(f);
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", MASTER("7", RUNS)) EVENT("MODIFIED", WORKER("8", RUNS)));
    wait_for(f, "waits: no more");
    assert_string_equal(f->told, "submitted; waits: master.0 and 1 more wait: no node can take the "
                                 "pod: 0/2 nodes; +0 +1 waits: no more; ");
}

static void why_one_found_no_room_is_told_rather_than_that_others_were_put_off(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")),
          LIST(POD("master", "p0", "3", "", NO_ROOM("1 optimistic rejection"))));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    wait_for(f, "waits: ");
    peer_more(f->peer, PODS,
              EVENT("ADDED", POD("worker", "p1", "6", "", NO_ROOM("0/2 nodes: 2 too small"))));
    wait_for(f, "too small");
    peer_more(f->peer, PODS,
              EVENT("MODIFIED", POD("worker", "p1", "7", "", NO_ROOM("1 optimistic rejection"))));
    breathe(f);
    assert_string_equal(f->told, "submitted; waits: master.0 waits: another pod of its gang found "
                                 "no room: 1 optimistic rejection; waits: worker.0 waits: no node "
                                 "can take the pod: 0/2 nodes: 2 too small; ");
}

static void an_image_that_cannot_be_ends_its_task_at_once(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    logs(f, LOG0, "");
    launch(f);
    wait_for(f, "+0 ");
    peer_more(f->peer, PODS,
              EVENT("ADDED", WORKER("6", STATE("Pending", "\"waiting\":{\"reason\":"
                                                          "\"InvalidImageName\",\"message\":"
                                                          "\"bad\"}"))));
    wait_for(f, "ended 1");
    contains(f->told, "submitted; +0 ended 1 not started: the image train:1 has a name that no "
                      "image can have: bad; ");
}

static void memory_that_was_too_little_is_told_with_its_limit(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    peer_more(f->peer, LOG1, "");
    peer_more(f->peer, PODS,
              EVENT("MODIFIED",
                    WORKER("8", ENDED_AT("Failed", "137", "OOMKilled", "2026-03-01T13:00:00Z"))));
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 1");
    contains(f->told, "ended 1 signal 9 of 67108864 bytes; ");
}

static void a_job_that_is_deleted_takes_its_pods_with_it(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    peer_more(f->peer, LOG0, "");
    peer_more(f->peer, LOG1, "");
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("6", "")));
    breathe(f);
    assert_string_equal(f->told, "submitted; +0 +1 ");
    say(f, DELETE, 404, STATUS(404, "NotFound", "no"));
    peer_more(f->peer, PODS, EVENT("DELETED", MASTER("7", RUNS)));
    peer_more(f->peer, PODS, EVENT("DELETED", WORKER("8", RUNS)));
    peer_end(f->peer, LOG0, PEER_KEEP);
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "gone;");
    assert_string_equal(f->told, "submitted; +0 +1 ended 0 lost: somebody deleted the TFJob " NAME
                                 "; ended 1 lost: somebody deleted the TFJob " NAME "; gone;");
}

static void a_log_that_is_cut_in_a_line_has_every_byte_once(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    peer_for(f->peer, LOG0);
    peer_stream(
        f->peer,
        "2026-03-01T12:00:01.1Z one\n2026-03-01T12:00:01.1Z two\n2026-03-01T12:00:01.2Z thr",
        PEER_RESET);
    hang(f, LOG0,
         "2026-03-01T12:00:01.1Z one\n2026-03-01T12:00:01.1Z two\n2026-03-01T12:00:01.2Z three\n"
         "2026-03-01T12:00:01.2Z four\n");
    launch(f);
    wait_for(f, "four|");
    assert_string_equal(f->told, "submitted; +0 0:one| 0:two| 0:three| 0:four| ");
}

static void logs_that_cannot_be_read_are_told_of_once_with_the_reason(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")),
          LIST(MASTER("3", ENDED("Succeeded", "0")) "," WORKER("4", ENDED("Succeeded", "0"))));
    say(f, LOG0, 404, STATUS(404, "NotFound", "the node has forgotten it"));
    say(f, LOG1, 404, STATUS(404, "NotFound", "the node has forgotten it"));
    launch(f);
    wait_for(f, "ended 1");
    contains(f->told, "the node has forgotten it (404); ");
    contains(f->told, "notice: the ends of the logs of 2 tasks may be missing; ");
    assert_null(strstr(strstr(f->told, "forgotten") + 1, "forgotten"));
}

static void a_log_is_not_read_again_when_the_pod_of_a_task_that_ended_changes(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    logs(f, LOG0, "");
    logs(f, LOG1, "");
    launch(f);
    peer_more(f->peer, LOG1, "");
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("8", ENDED("Succeeded", "0"))));
    breathe(f); /* a log that ends before its task is asked for again */
    peer_end(f->peer, LOG1, PEER_KEEP);
    wait_for(f, "ended 1");
    peer_more(f->peer, PODS, EVENT("MODIFIED", WORKER("9", ENDED("Succeeded", "0"))));
    breathe(f);
    breathe(f);
    assert_int_equal(count_asked(f, "GET /api/v1/namespaces/n/pods/" NAME "-worker-0/log?"), 1);
}

static void a_log_that_is_refused_while_the_task_runs_comes_later(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    say(f, LOG0, 500, STATUS(500, "InternalError", "the node does not answer"));
    hang(f, LOG0, "2026-03-01T12:00:01.5Z hello\n");
    launch(f);
    wait_for(f, "0:hello|");
    assert_string_equal(f->told, "submitted; +0 0:hello| ");
}

static void who_takes_over_never_creates_and_repeats_no_byte(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(BOTH_RUN));
    hang(f, LOG0,
         "2026-03-01T12:00:00.9Z old\n2026-03-01T12:00:01.1Z one\n2026-03-01T12:00:01.1Z two\n");
    hang(f, LOG1, "");
    launch(f);
    peer_more(f->peer, LOG1, "");
    wait_for(f, "0:two|");
    peer_more(f->peer, JOBS, "");
    peer_more(f->peer, PODS, "");
    leave(f);
    f->told[0] = '\0';
    f->facts.was_submitted = true;
    shows(f, LIST(JOB("2", "")),
          LIST(MASTER("8", ENDED_AT("Failed", "3", "", "2026-03-01T13:00:09Z")) "," WORKER(
              "9", ENDED_AT("Failed", "4", "", "2026-03-01T13:00:02Z"))));
    peer_for(f->peer, LOG0);
    peer_stream(
        f->peer,
        "2026-03-01T12:00:01.1Z one\n2026-03-01T12:00:01.1Z two\n2026-03-01T12:00:01.1Z 3\n",
        PEER_KEEP);
    peer_for(f->peer, LOG1);
    peer_stream(f->peer, "2026-03-01T12:00:05Z bye\n", PEER_KEEP);
    launch(f);
    wait_for(f, "ended 0");
    contains(f->told, "0:3| ");
    assert_null(strstr(f->told, "one"));
    assert_null(strstr(f->told, "two"));
    assert_null(strstr(f->told, "submitted"));
    contains(f->told, "ended 1 exit 4; ");
    assert_true(strstr(f->told, "ended 1 exit 4; ") < strstr(f->told, "ended 0 exit 3; "));
    assert_true(strstr(f->told, "1:bye|") < strstr(f->told, "ended 1"));
    /* Asked so, a node gives what it has of that second and after it. */
    contains(asked(f, "sinceTime="), "master-0/log?");
    contains(asked(f, "sinceTime="), "sinceTime=2026-03-01T12%3A00%3A01Z");
    deletes(f, MASTER_GOES WORKER_GOES);
    assert_int_equal(count_asked(f, "POST"), 1);
}

static void a_stop_before_the_job_is_made_deletes_what_is_made(void **state) {
    struct fixture *f = *state;

    has_operator(f);
    hang(f, CREATE, "");
    shows(f, LIST(JOB("2", "")), LIST(""));
    launch(f);
    peer_more(f->peer, CREATE, "");
    stop(f, STOP_GRACEFULLY);
    breathe(f);
    assert_string_equal(f->told, "");
    peer_more(f->peer, CREATE, JOB("2", ""));
    peer_end(f->peer, CREATE, PEER_KEEP);
    wait_for(f, "submitted");
    deletes(f, "");
    assert_string_equal(f->told, "submitted; ended 0 not started: its pod was never made; "
                                 "ended 1 not started: its pod was never made; gone;");
}

static void a_stop_before_anything_is_asked_makes_nothing(void **state) {
    struct fixture *f = *state;

    hang(f, GROUP, "");
    launch(f);
    peer_more(f->peer, GROUP, "");
    stop(f, STOP_GRACEFULLY);
    wait_for(f, "gone;");
    contains(f->told, "ended 0 not started: ");
    contains(f->told, "ended 1 not started: ");
    assert_int_equal(peer_count(f->peer), 1);
}

static void a_stop_gives_the_pods_their_time_and_a_kill_does_not(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    logs(f, LOG0, "");
    launch(f);
    peer_more(f->peer, LOG0, "");
    say(f, DELETE, 200, JOB("30", ""));
    stop(f, STOP_GRACEFULLY);
    stop(f, STOP_GRACEFULLY);
    breathe(f);
    assert_int_equal(count_asked(f, "DELETE /api/"), 0);
    say(f, "DELETE /api/v1/namespaces/n/pods/" NAME "-master-0", 200, MASTER("31", RUNS));
    stop(f, STOP_AT_ONCE);
    stop(f, STOP_AT_ONCE);
    breathe(f);
    assert_int_equal(count_asked(f, DELETE), 1);
    assert_int_equal(count_asked(f, "DELETE /api/"), 1);
    contains(asked(f, "DELETE /api/"), "\"gracePeriodSeconds\": 0");
    contains(asked(f, "DELETE /api/"), "\"uid\": \"p0\"");
    peer_more(f->peer, PODS, EVENT("DELETED", MASTER("32", ENDED("Failed", "137"))));
    peer_end(f->peer, LOG0, PEER_KEEP);
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("33", "")));
    wait_for(f, "gone;");
    contains(f->told, "ended 0 signal 9; ended 1 not started: its pod was never made; gone;");
}

static void pods_that_nobody_may_see_end_the_gang(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    say(f, JOBS, 200, LIST(JOB("2", "")));
    hang(f, JOBS, "");
    say(f, PODS, 403, STATUS(403, "Forbidden", "no pods for ada"));
    say(f, DELETE, 200, JOB("30", ""));
    launch(f);
    wait_for(f, "ended 1");
    peer_more(f->peer, JOBS, EVENT("DELETED", JOB("31", "")));
    wait_for(f, "gone;");
    contains(f->told, "ended 0 not started: the cluster does not show its pods: ");
    contains(f->told, "no pods for ada");
    assert_int_equal(count_asked(f, DELETE), 1);
}

static void a_job_that_may_not_be_deleted_is_told_and_left(void **state) {
    struct fixture *f = *state;

    takes_job(f);
    shows(f, LIST(JOB("2", "")), LIST(MASTER("3", RUNS)));
    logs(f, LOG0, "");
    say(f, DELETE, 403, STATUS(403, "Forbidden", "ada may not"));
    launch(f);
    peer_more(f->peer, LOG0, "");
    stop(f, STOP_GRACEFULLY);
    wait_for(f, "gone;");
    contains(f->told, "left running: the TFJob " NAME " could not be deleted: ");
    contains(f->told, "'kubectl --namespace n delete tfjobs.kubeflow.org " NAME "' removes what");
    contains(f->told, "ended 0 lost: the TFJob " NAME " could not be deleted: ");
    contains(f->told, "ada may not");
}

#define CASE(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_gang_is_told_from_its_beginning_to_its_end),
        CASE(a_job_is_created_once_although_the_answer_is_lost),
        CASE(a_job_of_somebody_else_is_left_alone),
        CASE(a_cluster_without_the_kind_is_told),
        CASE(a_cluster_without_the_group_is_told),
        CASE(what_admission_refuses_is_told_in_its_words),
        CASE(a_failure_with_a_slow_log_is_told_before_those_who_vanish_after_it),
        CASE(a_pod_that_is_replaced_ends_its_task_once),
        CASE(who_finds_no_node_waits_and_that_is_told_once),
        CASE(why_one_found_no_room_is_told_rather_than_that_others_were_put_off),
        CASE(an_image_that_cannot_be_ends_its_task_at_once),
        CASE(memory_that_was_too_little_is_told_with_its_limit),
        CASE(a_job_that_is_deleted_takes_its_pods_with_it),
        CASE(a_log_that_is_cut_in_a_line_has_every_byte_once),
        CASE(logs_that_cannot_be_read_are_told_of_once_with_the_reason),
        CASE(a_log_is_not_read_again_when_the_pod_of_a_task_that_ended_changes),
        CASE(a_log_that_is_refused_while_the_task_runs_comes_later),
        CASE(who_takes_over_never_creates_and_repeats_no_byte),
        CASE(a_stop_before_the_job_is_made_deletes_what_is_made),
        CASE(a_stop_before_anything_is_asked_makes_nothing),
        CASE(a_stop_gives_the_pods_their_time_and_a_kill_does_not),
        CASE(pods_that_nobody_may_see_end_the_gang),
        CASE(a_job_that_may_not_be_deleted_is_told_and_left),
    };

    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
