/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/attr.h"
#include "supervise/verdict.h"

static const struct task_end good = { .kind = TASK_EXITED };

static struct task_end exit_with(int code) {
    return (struct task_end){ .kind = TASK_EXITED, .detail = code };
}

/* Random gangs and ends, from a fixed seed: a failure is found again. */
struct trial {
    enum success_rule rule;
    uint32_t n_role[ROLE_COUNT], n;
    uint32_t order[32];
    struct task_end ends[32]; /* by rank */
};

static uint64_t state = 42;

static uint32_t random_below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static struct task_end random_end(void) {
    switch (random_below(8)) {
    case 0: return exit_with(1 + (int)random_below(255));
    case 1: return (struct task_end){ .kind = TASK_SIGNALLED, .detail = 1 + (int)random_below(31) };
    case 2: return (struct task_end){ .kind = TASK_NOT_STARTED, .detail = ENOENT };
    default: return good;
    }
}

static struct trial random_trial(void) {
    struct trial t = { .rule = (enum success_rule)random_below(3) };

    t.n_role[ROLE_MASTER] = random_below(2);
    t.n_role[ROLE_WORKER] = 1 + random_below(8);
    t.n_role[ROLE_PS] = random_below(4);
    for (int role = 0; role < ROLE_COUNT; role++)
        t.n += t.n_role[role];
    for (uint32_t i = 0; i < t.n; i++) {
        const uint32_t j = random_below(i + 1);

        t.order[i] = t.order[j];
        t.order[j] = i;
        t.ends[i] = random_end();
    }
    return t;
}

static bool is_good(const struct task_end *end) {
    return end->kind == TASK_EXITED && end->detail == 0;
}

static bool is_required(const struct trial *t, uint32_t rank) {
    const uint32_t first_worker = t->n_role[ROLE_MASTER];

    if (t->rule == SUCCESS_OF_CHIEF)
        return rank == 0;
    if (t->rule == SUCCESS_OF_WORKERS)
        return rank >= first_worker && rank < first_worker + t->n_role[ROLE_WORKER];
    return true;
}

enum { TRIALS = 20000 };

static void a_verdict_is_final_once_it_has_fallen(void **unused) {
    (void)unused;
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct trial t = random_trial();
        struct verdict v, fallen = { 0 };

        verdict_init(&v, t.rule, t.n_role);
        for (uint32_t i = 0; i < t.n; i++) {
            verdict_ended(&v, t.order[i], &t.ends[t.order[i]]);
            if (fallen.state != VERDICT_RUNNING) {
                assert_int_equal(v.state, fallen.state);
                assert_int_equal(v.first_failed, fallen.first_failed);
                assert_int_equal(verdict_exit_status(&v), verdict_exit_status(&fallen));
            }
            if (v.state != VERDICT_RUNNING)
                verdict_stopping(&v);
            fallen = v;
        }
        assert_int_not_equal(v.state, VERDICT_RUNNING);
        verdict_stop(&v);
        assert_int_equal(v.state, fallen.state);
    }
}

static void the_first_bad_end_before_success_fails_the_run(void **unused) {
    (void)unused;
    for (int trial = 0; trial < TRIALS; trial++) {
        const struct trial t = random_trial();
        uint32_t required = 0, first_bad = UINT32_MAX;
        struct verdict v;

        verdict_init(&v, t.rule, t.n_role);
        for (uint32_t rank = 0; rank < t.n; rank++)
            required += is_required(&t, rank);
        for (uint32_t i = 0; i < t.n && required && first_bad == UINT32_MAX; i++) {
            assert_int_equal(v.state, VERDICT_RUNNING);
            verdict_ended(&v, t.order[i], &t.ends[t.order[i]]);
            if (!is_good(&t.ends[t.order[i]]))
                first_bad = t.order[i];
            else
                required -= is_required(&t, t.order[i]);
        }
        if (first_bad == UINT32_MAX) {
            assert_int_equal(v.state, VERDICT_SUCCEEDED);
            assert_int_equal(verdict_exit_status(&v), 0);
        } else {
            assert_int_equal(v.state, VERDICT_FAILED);
            assert_int_equal(v.first_failed, first_bad);
            assert_int_not_equal(verdict_exit_status(&v), 0);
        }
    }
}

static void tensorflow_succeeds_with_its_chief_whatever_the_others_do_later(void **unused) {
    const uint32_t with_master[ROLE_COUNT] = { 1, 2, 1 }, masterless[ROLE_COUNT] = { 0, 3, 1 };
    const uint32_t *const shapes[] = { with_master, masterless };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct task_end bad = exit_with(3);
        struct verdict v;

        verdict_init(&v, SUCCESS_OF_CHIEF, shapes[i]);
        verdict_ended(&v, 2, &good);
        assert_int_equal(v.state, VERDICT_RUNNING);
        verdict_ended(&v, 0, &good);
        assert_int_equal(v.state, VERDICT_SUCCEEDED);
        assert_int_equal(verdict_ended(&v, 1, &bad), FATE_FAILED);
        verdict_stopping(&v);
        assert_int_equal(verdict_ended(&v, 3, &bad), FATE_STOPPED);
        assert_int_equal(v.state, VERDICT_SUCCEEDED);
        assert_int_equal(verdict_exit_status(&v), 0);
    }
}

static void tensorflow_fails_with_any_task_before_its_chief(void **unused) {
    const uint32_t n_role[ROLE_COUNT] = { 1, 2, 1 };
    const struct task_end bad = exit_with(9);
    struct verdict v;

    (void)unused;
    verdict_init(&v, SUCCESS_OF_CHIEF, n_role);
    verdict_ended(&v, 3, &bad);
    assert_int_equal(v.state, VERDICT_FAILED);
    verdict_ended(&v, 0, &good);
    assert_int_equal(v.state, VERDICT_FAILED);
    assert_int_equal(verdict_exit_status(&v), 9);
}

static void mxnet_succeeds_with_its_workers_alone(void **unused) {
    const uint32_t n_role[ROLE_COUNT] = { 1, 2, 2 };
    struct verdict v;

    (void)unused;
    verdict_init(&v, SUCCESS_OF_WORKERS, n_role);
    verdict_ended(&v, 0, &good); /* the scheduler */
    verdict_ended(&v, 1, &good);
    assert_int_equal(v.state, VERDICT_RUNNING);
    verdict_ended(&v, 2, &good);
    assert_int_equal(v.state, VERDICT_SUCCEEDED);
}

static void a_stopped_run_marks_all_that_end_after_it(void **unused) {
    const uint32_t n_role[ROLE_COUNT] = { 1, 3, 0 };
    const struct task_end killed = { .kind = TASK_SIGNALLED, .detail = 15 };
    struct verdict v;

    (void)unused;
    verdict_init(&v, SUCCESS_OF_ALL, n_role);
    assert_int_equal(verdict_ended(&v, 1, &good), FATE_SUCCEEDED);
    verdict_stop(&v);
    assert_int_equal(verdict_ended(&v, 0, &killed), FATE_STOPPED);
    assert_int_equal(verdict_ended(&v, 2, &good), FATE_STOPPED);
    assert_int_equal(v.state, VERDICT_STOPPED);
    assert_int_equal(verdict_exit_status(&v), 130);
}

static void the_exit_status_is_that_of_the_first_failing_task(void **unused) {
    static const struct {
        struct task_end end;
        int status;
    } rows[] = {
        { { TASK_EXITED, 1, NULL }, 1 },
        { { TASK_EXITED, 255, NULL }, 255 },
        { { TASK_SIGNALLED, 9, NULL }, 137 },
        { { TASK_SIGNALLED, 11, NULL }, 139 },
        { { TASK_NOT_STARTED, ENOENT, "" }, 127 },
        { { TASK_NOT_STARTED, EACCES, "" }, 126 },
        { { TASK_NOT_STARTED, ENOEXEC, "" }, 126 },
        { { TASK_NOT_STARTED, EAGAIN, "" }, 125 },
    };
    const uint32_t n_role[ROLE_COUNT] = { 1, 1, 0 };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct task_end later = exit_with(77);
        struct verdict v;

        verdict_init(&v, SUCCESS_OF_ALL, n_role);
        verdict_ended(&v, 1, &rows[i].end);
        verdict_ended(&v, 0, &later);
        assert_int_equal(v.first_failed, 1);
        assert_int_equal(verdict_exit_status(&v), rows[i].status);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_verdict_is_final_once_it_has_fallen),
        cmocka_unit_test(the_first_bad_end_before_success_fails_the_run),
        cmocka_unit_test(tensorflow_succeeds_with_its_chief_whatever_the_others_do_later),
        cmocka_unit_test(tensorflow_fails_with_any_task_before_its_chief),
        cmocka_unit_test(mxnet_succeeds_with_its_workers_alone),
        cmocka_unit_test(a_stopped_run_marks_all_that_end_after_it),
        cmocka_unit_test(the_exit_status_is_that_of_the_first_failing_task),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
