/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from the operators' objects, and what is kept of how far logs were read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "backend/kubernetes/cursors.h"
#include "backend/kubernetes/job.h"
#include "codec/json_read.h"
#include "home.h"

static struct node read_json(struct arena *arena, const char *text) {
    struct node node;
    struct error err;

    if (json_read(text, strlen(text), arena, &node, &err))
        fail_msg("%s", err.message);
    return node;
}

static void a_pod_says_which_task_it_is(void **unused) {
    static const struct {
        const char *pod;
        int role; /* -1: none of ours */
        uint32_t index;
    } rows[] = {
        { "{\"metadata\": {\"name\": \"m-1-0-worker-3\", \"labels\": {\"myelin/role\": \"worker\", "
          "\"training.kubeflow.org/replica-index\": \"3\"}}}",
          ROLE_WORKER, 3 },
        { "{\"metadata\": {\"name\": \"m-1-0-worker\", \"labels\": {\"myelin/role\": \"worker\", "
          "\"myelin/index\": \"5\"}}}",
          ROLE_WORKER, 5 },
        { "{\"metadata\": {\"name\": \"m-1-0-worker-7\", \"labels\": {\"myelin/role\": "
          "\"worker\"}}}",
          ROLE_WORKER, 7 },
        { "{\"metadata\": {\"name\": \"m-1-0-launcher-x9k2p\", \"labels\": {\"myelin/role\": "
          "\"master\"}}}",
          ROLE_MASTER, 0 },
        { "{\"metadata\": {\"name\": \"m-ps-0\", \"labels\": {\"myelin/role\": \"ps\", "
          "\"training.kubeflow.org/replica-index\": 1}}}",
          ROLE_PS, 0 },
        { "{\"metadata\": {\"name\": \"m-worker-x\", \"labels\": {\"myelin/role\": "
          "\"worker\"}}}",
          -1, 0 },
        { "{\"metadata\": {\"name\": \"m-worker-99999999999\", \"labels\": {\"myelin/role\": "
          "\"worker\"}}}",
          -1, 0 },
        { "{\"metadata\": {\"labels\": {\"myelin/role\": \"evaluator\"}}}", -1, 0 },
        { "{\"metadata\": []}", -1, 0 },
        { "[]", -1, 0 },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(arena) arena = ARENA_INIT;
        const struct node pod = read_json(&arena, rows[i].pod);
        enum role role;
        uint32_t index;

        assert_int_equal(job_task_of_pod(&pod, &role, &index), rows[i].role >= 0);
        if (rows[i].role >= 0) {
            assert_int_equal(role, rows[i].role);
            assert_int_equal(index, rows[i].index);
        }
    }
}

static void a_condition_that_holds_says_that_a_job_is_over(void **unused) {
    static const struct {
        const char *job, *why; /* NULL: it is not */
    } rows[] = {
        { "{\"status\": {\"conditions\": [{\"type\": \"Created\", \"status\": \"True\"}, "
          "{\"type\": "
          "\"Failed\", \"status\": \"True\", \"message\": \"backoff limit\"}]}}",
          "backoff limit" },
        { "{\"status\": {\"conditions\": [{\"type\": \"Succeeded\", \"status\": \"True\"}]}}",
          "Succeeded" },
        { "{\"status\": {\"conditions\": [{\"type\": \"Failed\", \"status\": \"False\"}]}}", NULL },
        { "{\"status\": {\"conditions\": {\"type\": \"Failed\"}}}", NULL },
        { "{\"status\": {\"conditions\": [1, null, {\"type\": 3}]}}", NULL },
        { "{}", NULL },
    };
    char why[40];

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(arena) arena = ARENA_INIT;
        const struct node job = read_json(&arena, rows[i].job);

        assert_int_equal(job_is_over(&job, why, sizeof why), rows[i].why != NULL);
        if (rows[i].why)
            assert_string_equal(why, rows[i].why);
    }
}

static void a_cursor_is_read_as_it_was_written_or_not_at_all(void **unused) {
    const struct logstream_cursor at = { 1794802614123456789, 2, 3, 400 };
    struct cursors cursors;
    struct home home;

    (void)unused;
    home_make(&home);
    assert_int_equal(cursors_open(&cursors, home.path, CURSORS_API), CURSORS_NEW);
    assert_true(cursors.fd >= 0);
    assert_int_equal(cursors_read(&cursors, 5).offset, 0);
    cursors_write(&cursors, 5, &at);
    cursors_close(&cursors);
    assert_int_equal(cursors_open(&cursors, home.path, CURSORS_API), CURSORS_OF_BEFORE);
    assert_int_equal(cursors_read(&cursors, 4).time_ns, 0);
    assert_int_equal(cursors_read(&cursors, 5).time_ns, at.time_ns);
    assert_int_equal(cursors_read(&cursors, 5).offset, 400);
    assert_int_equal(pwrite(cursors.fd, "x", 1, 5 * 40 + 8), 1);
    assert_int_equal(cursors_read(&cursors, 5).time_ns, 0);
    cursors_close(&cursors);
    home_release(&home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_says_which_task_it_is),
        cmocka_unit_test(a_condition_that_holds_says_that_a_job_is_over),
        cmocka_unit_test(a_cursor_is_read_as_it_was_written_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
