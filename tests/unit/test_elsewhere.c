/* SPDX-License-Identifier: Apache-2.0 */
/* A gang that is not made of processes here, and whoever takes it over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "home.h"
#include "supervise/past.h"
#include "supervise/tasklog.h"

/* ---- a cluster that does what a test says ---- */

struct cluster {
    struct backend backend;
    struct gang gang;
    struct attempt_facts facts;
    int stops;
    enum stop_manner manner;
};

static int launch(struct backend *backend, const struct gang *gang, struct error *err) {
    (void)err;
    ((struct cluster *)backend)->gang = *gang;
    return 0;
}

static void stop(struct backend *backend, enum stop_manner manner, uint32_t grace_ms) {
    struct cluster *cluster = (struct cluster *)backend;

    (void)grace_ms;
    cluster->stops++;
    cluster->manner = manner;
}

static void do_nothing(struct backend *backend) {
    (void)backend;
}

static const struct backend_ops ops = { "scripted", launch, stop, do_nothing };

static int make(void *context, struct event_base *base, const struct attempt_facts *facts,
                struct backend **out, struct error *err) {
    struct cluster *cluster = context;

    (void)base, (void)err;
    cluster->backend.ops = &ops;
    cluster->facts = *facts;
    *out = &cluster->backend;
    return 0;
}

/* ---- who is told ---- */

struct stage {
    struct home home;
    struct rundir rundir;
    struct plan *plan;
    struct event_base *base;
    struct cluster cluster;
    struct backend_maker maker;
    struct run *run;
    int n_started, n_ended, n_phases;
    enum run_phase phases[8];
    char waits[64];
};

static void on_started(void *context, uint32_t rank, int64_t id) {
    (void)rank, (void)id;
    ((struct stage *)context)->n_started++;
}

static void on_ended(void *context, uint32_t rank, const struct task_state *task) {
    (void)rank, (void)task;
    ((struct stage *)context)->n_ended++;
}

static void on_output(void *context, uint32_t rank) {
    (void)context, (void)rank;
}

static void on_phase(void *context, enum run_phase phase) {
    struct stage *stage = context;

    assert_true(stage->n_phases < (int)ARRAY_LEN(stage->phases));
    stage->phases[stage->n_phases++] = phase;
}

static void on_sentence(void *context, const char *sentence) {
    struct stage *stage = context;

    snprintf(stage->waits, sizeof stage->waits, "%s", sentence ? sentence : "");
}

static void stage_begin(struct stage *stage, const struct run_past *past) {
    const struct run_observer observer = { on_started,  on_ended,    on_output, on_phase,
                                           on_sentence, on_sentence, stage };
    struct run_options options = { .uuid = "0123456789abcdef0123456789abcdef",
                                   .owner = "me",
                                   .attempt = 2,
                                   .log_limit = TASKLOG_LIMIT,
                                   .past = past };
    struct error err;

    *stage = (struct stage){ 0 };
    home_make(&stage->home);
    stage->rundir = home_run(&stage->home);
    stage->plan = compile_text("version: 1\nkind: experiment\nframework: pytorch\n"
                               "environment: {replicas: {n_workers: 2}}\nrun: {cmd: train}\n");
    assert_non_null(stage->plan);
    stage->base = event_base_new();
    stage->maker = (struct backend_maker){ .make = make, .context = &stage->cluster };
    options.rundir = &stage->rundir;
    options.logs = stage->rundir.logs;
    options.elsewhere = &stage->maker;
    if (run_start(stage->plan, &options, stage->base, &observer, &stage->run, &err))
        fail_msg("%s", err.message);
}

static void stage_end(struct stage *stage) {
    run_free(stage->run);
    event_base_free(stage->base);
    plan_free(stage->plan);
    home_release(&stage->home);
}

static void tell_end(struct stage *stage, uint32_t rank, enum task_end_kind kind, int detail) {
    const struct gang *gang = &stage->cluster.gang;

    gang->ended(gang->context, rank, &(struct task_end){ .kind = kind, .detail = detail });
}

/* ---- laws ---- */

static void it_runs_when_the_last_of_its_tasks_does(void **unused) {
    struct stage stage;
    const struct gang *gang;

    (void)unused;
    stage_begin(&stage, NULL);
    gang = &stage.cluster.gang;
    assert_int_equal(stage.cluster.facts.number, 2);
    assert_false(stage.cluster.facts.was_submitted);
    gang->submitted(gang->context);
    gang->waits(gang->context, "no node has a GPU");
    assert_string_equal(stage.waits, "no node has a GPU");
    for (uint32_t rank = 0; rank < 3; rank++)
        gang->started(gang->context, rank, 0);
    assert_int_equal(stage.n_phases, 2);
    assert_int_equal(stage.phases[0], RUN_SUBMITTED);
    assert_int_equal(stage.phases[1], RUN_RUNNING);
    stage_end(&stage);
}

static void what_was_delivered_is_what_the_log_holds(void **unused) {
    struct stage stage;
    const struct gang *gang;

    (void)unused;
    stage_begin(&stage, NULL);
    gang = &stage.cluster.gang;
    assert_int_equal(gang->delivered(gang->context, 1), 0);
    gang->output(gang->context, 1, "12345", 5);
    assert_int_equal(gang->delivered(gang->context, 1), 5);
    stage_end(&stage);
}

static void a_lost_task_fails_the_gang_and_is_named(void **unused) {
    struct stage stage;
    const struct gang *gang;

    (void)unused;
    stage_begin(&stage, NULL);
    gang = &stage.cluster.gang;
    gang->ended(gang->context, 2,
                &(struct task_end){ .kind = TASK_LOST, .message = "its pod was evicted" });
    assert_int_equal(run_status(stage.run)->verdict.state, VERDICT_FAILED);
    assert_string_equal(run_status(stage.run)->why.sentence,
                        "worker.1 was lost: its pod was evicted");
    assert_int_equal(verdict_exit_status(&run_status(stage.run)->verdict), 125);
    assert_int_equal(stage.cluster.stops, 1);
    stage_end(&stage);
}

static void what_was_seen_before_is_not_told_again_and_counts(void **unused) {
    const struct past_end ends[] = { { .rank = 1, .end = { .kind = TASK_EXITED } } };
    const struct run_past past = { .ends = ends, .n_ends = 1 };
    struct stage stage;

    (void)unused;
    stage_begin(&stage, &past);
    assert_true(stage.cluster.facts.was_submitted);
    tell_end(&stage, 1, TASK_EXITED, 0); /* a backend finds it again */
    tell_end(&stage, 0, TASK_EXITED, 0);
    assert_int_equal(run_status(stage.run)->verdict.state, VERDICT_RUNNING);
    tell_end(&stage, 2, TASK_EXITED, 0);
    assert_int_equal(run_status(stage.run)->verdict.state, VERDICT_SUCCEEDED);
    assert_int_equal(stage.n_ended, 2);
    stage_end(&stage);
}

static void a_gang_that_was_being_stopped_is_stopped_again(void **unused) {
    const struct past_end ends[] = {
        { .rank = 1, .was_stopped = true, .end = { .kind = TASK_SIGNALLED, .detail = 15 } }
    };
    const struct run_past past = { .ends = ends, .n_ends = 1, .was_stopping = true };
    struct stage stage;

    (void)unused;
    stage_begin(&stage, &past);
    assert_int_equal(run_status(stage.run)->verdict.state, VERDICT_STOPPED);
    assert_int_equal(run_status(stage.run)->tasks[1].fate, FATE_STOPPED);
    assert_int_equal(stage.cluster.stops, 1);
    stage_end(&stage);
}

static void one_that_had_failed_has_failed_of_the_same(void **unused) {
    const struct past_end ends[] = {
        { .rank = 2, .end = { .kind = TASK_EXITED, .detail = 3 } },
        { .rank = 0, .was_stopped = true, .end = { .kind = TASK_SIGNALLED, .detail = 15 } },
    };
    const struct run_past past = { .ends = ends, .n_ends = 2, .was_stopping = true };
    struct stage stage;

    (void)unused;
    stage_begin(&stage, &past);
    assert_int_equal(run_status(stage.run)->verdict.state, VERDICT_FAILED);
    assert_int_equal(run_status(stage.run)->verdict.first_failed, 2);
    assert_int_equal(verdict_exit_status(&run_status(stage.run)->verdict), 3);
    assert_int_equal(run_status(stage.run)->tasks[0].fate, FATE_STOPPED);
    stage_end(&stage);
}

/* ---- from a record ---- */

#define AT(seq, elapsed)                                                                           \
    "{\"seq\": " seq ", \"time\": \"2026-01-02T03:04:05.000000Z\", \"elapsed\": " elapsed ", "

static const char *const story[] = {
    AT("1", "0") "\"event\": \"created\", \"uuid\": \"0123456789abcdef0123456789abcdef\", "
                 "\"backend\": \"kubeflow\", \"cluster\": \"c\", \"namespace\": \"n\", "
                 "\"counts\": {\"master\": 1, \"worker\": 2, \"ps\": 0}}",
    AT("2", "1") "\"event\": \"attempt\", \"status\": \"starting\", \"attempt\": 0}",
    AT("3", "2") "\"event\": \"phase\", \"phase\": \"launching\", \"attempt\": 0}",
    AT("4", "3") "\"event\": \"phase\", \"phase\": \"submitted\", \"attempt\": 0}",
    AT("5", "4") "\"event\": \"task\", \"rank\": 2, \"status\": \"failed\", \"exit_code\": 3, "
                 "\"attempt\": 0}",
    AT("6", "5") "\"event\": \"phase\", \"phase\": \"stopping\", \"attempt\": 0}",
    AT("7", "6") "\"event\": \"task\", \"rank\": 1, \"status\": \"stopped\", \"signal\": 15, "
                 "\"attempt\": 0}",
    AT("8", "7") "\"event\": \"attempt\", \"status\": \"failed\", \"exit_status\": 3, "
                 "\"attempt\": 0}",
};

static void past_after(size_t n, struct run_record *record, struct arena *arena, struct past *out) {
    static const struct rundir nowhere = { .id = "1", .path = "/nowhere/1" };
    const char *notice;

    record_init(record, &nowhere);
    for (size_t i = 0; i < n; i++)
        record_feed(record, story[i], strlen(story[i]), &notice);
    assert_int_equal(record->bad_lines, 0);
    past_read(record, arena, out);
}

static void a_record_tells_how_far_an_attempt_came(void **unused) {
    static const struct {
        size_t lines;
        uint32_t attempt;
        bool was_submitted;
        size_t n_ends;
        bool was_stopping;
    } rows[] = {
        { 1, 0, false, 0, false }, { 2, 0, false, 0, false }, { 3, 0, false, 0, false },
        { 4, 0, true, 0, false },  { 5, 0, true, 1, false },  { 6, 0, true, 1, true },
        { 7, 0, true, 2, true },   { 8, 1, false, 0, false },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(arena) arena = ARENA_INIT;
        struct run_record record;
        struct past past;

        past_after(rows[i].lines, &record, &arena, &past);
        assert_string_equal(record.backend, "kubeflow");
        assert_int_equal(past.attempt, rows[i].attempt);
        assert_int_equal(past.was_submitted, rows[i].was_submitted);
        assert_int_equal(past.run.n_ends, rows[i].n_ends);
        assert_int_equal(past.run.was_stopping, rows[i].was_stopping);
        if (rows[i].n_ends == 2) {
            assert_int_equal(past.run.ends[0].rank, 2);
            assert_int_equal(past.run.ends[0].end.detail, 3);
            assert_true(past.run.ends[1].was_stopped);
        }
        record_release(&record);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_when_the_last_of_its_tasks_does),
        cmocka_unit_test(what_was_delivered_is_what_the_log_holds),
        cmocka_unit_test(a_lost_task_fails_the_gang_and_is_named),
        cmocka_unit_test(what_was_seen_before_is_not_told_again_and_counts),
        cmocka_unit_test(a_gang_that_was_being_stopped_is_stopped_again),
        cmocka_unit_test(one_that_had_failed_has_failed_of_the_same),
        cmocka_unit_test(a_record_tells_how_far_an_attempt_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
