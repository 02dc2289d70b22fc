/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean ...?": what is near, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "codec/nearest.h"

static const char *const names[] = { "environment", "framework", "run",      "build", "n_workers",
                                     "n_ps",        "version",   "requests", "worker" };

static void a_mistyped_name_finds_the_one_that_was_meant(void **state) {
    static const char *const rows[][2] = {
        { "enviroment", "environment" }, { "Environment", "environment" },
        { "n-workers", "n_workers" },    { "nworkers", "n_workers" },
        { "frmaework", "framework" },    { "rfamewokr", "framework" },
        { "verison", "version" },        { "rnu", "run" },
        { "request", "requests" },       { "workers", "worker" },
    };
    static const char *const far[] = { "", "x", "zzzzzzzz", "hptuning", "something_else" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *near = nearest_name(rows[i][0], names, ARRAY_LEN(names));

        assert_non_null(near);
        assert_string_equal(near, rows[i][1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(far); i++)
        assert_null(nearest_name(far[i], names, ARRAY_LEN(names)));
    assert_null(nearest_name("run", NULL, 0));
}

static void one_edit_anywhere_in_a_name_finds_it_again(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        char typed[64];

        assert_ptr_equal(nearest_name(names[i], names, ARRAY_LEN(names)), names[i]);
        if (n < 5)
            continue; /* one edit of a short name may be another name */
        for (size_t k = 0; k < n; k++) {
            snprintf(typed, sizeof typed, "%.*s%s", (int)k, names[i], names[i] + k + 1);
            assert_string_equal(nearest_name(typed, names, ARRAY_LEN(names)), names[i]);
            snprintf(typed, sizeof typed, "%.*sX%s", (int)k, names[i], names[i] + k);
            assert_string_equal(nearest_name(typed, names, ARRAY_LEN(names)), names[i]);
            snprintf(typed, sizeof typed, "%.*sX%s", (int)k, names[i], names[i] + k + 1);
            assert_string_equal(nearest_name(typed, names, ARRAY_LEN(names)), names[i]);
        }
    }
}

static void a_name_of_any_length_is_compared_without_harm(void **state) {
    char typed[300];

    (void)state;
    for (size_t n = 0; n < sizeof typed; n++) {
        const char *candidates[] = { typed, "run" };

        memset(typed, 'r', n);
        typed[n] = '\0';
        assert_true(nearest_name(typed, candidates, 1) == (n == 0 || n > 64 ? NULL : typed));
        (void)nearest_name("run", candidates, 2);
    }
}

/* What people type, the names of the kind that they meant, and what may be suggested. */
static void a_suggestion_is_near_and_otherwise_there_is_none(void **state) {
    static const char *const commands[] = { "run",  "rm",     "ps",   "logs",
                                            "stop", "status", "runs", NULL };
    static const char *const fields[] = { "id",   "uuid",   "name",  "status", "owner",
                                          "host", "reason", "tasks", "num",    NULL };
    static const char *const params[] = { "lr", "batch_size", "epochs", "seed", NULL };
    static const char *const options[] = { "dry-run",  "stop-on-hangup", "max-processes",
                                           "max-size", "json",           NULL };
    static const struct {
        const char *const *names;
        const char *typed, *expected;
    } rows[] = {
        { fields, "loss", NULL },
        { fields, "cost", NULL },
        { fields, "lost", NULL },
        { fields, "hots", "host" },
        { fields, "hosts", "host" },
        { fields, "lr", NULL },
        { fields, "if", NULL },
        { fields, "nam", "name" },
        { fields, "statsu", "status" },
        { fields, "state", NULL },
        { fields, "acc", NULL },
        { fields, "rate", NULL },
        { fields, "gpus", NULL },
        { commands, "rnu", "run" },
        { commands, "rum", "run" },
        { commands, "lgos", "logs" },
        { commands, "log", "logs" },
        { commands, "list", NULL },
        { commands, "ls", NULL },
        { commands, "start", NULL },
        { commands, "sotp", "stop" },
        { commands, "train.yml", NULL },
        { params, "learning_rate", "lr" },
        { params, "learning-rate", "lr" },
        { params, "LR", "lr" },
        { params, "bs", "batch_size" },
        { params, "batch", "batch_size" },
        { params, "batchsize", "batch_size" },
        { params, "n_epochs", "epochs" },
        { params, "num_epochs", "epochs" },
        { params, "l2", NULL },
        { params, "need", NULL },
        { params, "momentum", NULL },
        { params, "size", "batch_size" },
        { options, "dry", "dry-run" },
        { options, "dryrun", "dry-run" },
        { options, "max", NULL }, /* two begin so */
        { options, "jsno", "json" },
        { options, "verbose", NULL },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *near;
        size_t n = 0;

        while (rows[i].names[n])
            n++;
        near = nearest_name(rows[i].typed, rows[i].names, n);
        if (near != rows[i].expected &&
            (!near || !rows[i].expected || strcmp(near, rows[i].expected)))
            fail_msg("'%s' becomes '%s', not '%s'", rows[i].typed, near ? near : "nothing",
                     rows[i].expected ? rows[i].expected : "nothing");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistyped_name_finds_the_one_that_was_meant),
        cmocka_unit_test(one_edit_anywhere_in_a_name_finds_it_again),
        cmocka_unit_test(a_name_of_any_length_is_compared_without_harm),
        cmocka_unit_test(a_suggestion_is_near_and_otherwise_there_is_none),
    };

    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
