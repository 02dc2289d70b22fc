/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "supervise/again.h"

enum { UNSET = 12345 };

static const struct again_case plain_failure = { .verdict = VERDICT_FAILED,
                                                 .kind = DIAGNOSIS_EXIT_CODE };

static enum again decide(uint32_t max_restarts, struct again_case last, uint32_t *delay_ms) {
    const struct again_terms terms = { .max_restarts = max_restarts, .first_delay_ms = 1000 };

    *delay_ms = UNSET;
    return again_decide(&terms, &last, delay_ms);
}

static void the_table_of_the_header_holds(void **state) {
    static const struct {
        uint32_t max_restarts;
        struct again_case last;
        enum again expected;
        uint32_t delay_ms;
    } rows[] = {
        { 0, { VERDICT_FAILED, DIAGNOSIS_EXIT_CODE, false, 0, 0, false }, AGAIN_NO, UNSET },
        { 1, { VERDICT_FAILED, DIAGNOSIS_EXIT_CODE, false, 0, 0, false }, AGAIN_RESTART, 1000 },
        { 1, { VERDICT_FAILED, DIAGNOSIS_EXIT_CODE, false, 0, 1, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_FAILED, DIAGNOSIS_SIGNAL, false, 0, 3, false }, AGAIN_RESTART, 8000 },
        { 9, { VERDICT_FAILED, DIAGNOSIS_EXIT_CODE, true, 0, 0, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_STOPPED, DIAGNOSIS_EXIT_CODE, true, 0, 0, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_SUCCEEDED, DIAGNOSIS_EXIT_CODE, false, 0, 0, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_FAILED, DIAGNOSIS_NOT_FOUND, false, 0, 0, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_FAILED, DIAGNOSIS_NOT_EXECUTABLE, false, 0, 0, false }, AGAIN_NO, UNSET },
        { 9, { VERDICT_FAILED, DIAGNOSIS_PYTHON_SYNTAX, false, 0, 0, false }, AGAIN_NO, UNSET },
        /* an address in use */
        { 0,
          { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, false, 0, 0, false },
          AGAIN_OTHER_PORTS,
          0 },
        { 0, { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, false, 0, 0, true }, AGAIN_NO, UNSET },
        { 0, { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, true, 0, 0, false }, AGAIN_NO, UNSET },
        { 0,
          { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, false, AGAIN_START_MS, 0, false },
          AGAIN_NO,
          UNSET },
        { 2,
          { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, false, AGAIN_START_MS, 0, false },
          AGAIN_RESTART,
          1000 },
        { 2, { VERDICT_FAILED, DIAGNOSIS_ADDRESS_IN_USE, false, 0, 1, true }, AGAIN_RESTART, 2000 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t delay_ms;
        const enum again got = decide(rows[i].max_restarts, rows[i].last, &delay_ms);

        if (got != rows[i].expected || delay_ms != rows[i].delay_ms)
            fail_msg("row %zu: %d after %u ms", i, (int)got, delay_ms);
    }
}

static void only_a_failure_that_nobody_asked_for_is_answered_by_another_attempt(void **state) {
    (void)state;
    for (enum verdict_state verdict = 0; verdict < VERDICT_STATE_COUNT; verdict++)
        for (enum diagnosis_kind kind = 0; kind < DIAGNOSIS_KIND_COUNT; kind++)
            for (int is_stopped = 0; is_stopped < 2; is_stopped++) {
                struct again_case last = { verdict, kind, is_stopped, 0, 0, false };
                uint32_t delay_ms;
                const bool expected =
                    verdict == VERDICT_FAILED && !is_stopped && again_may_help(kind);

                assert_int_equal(decide(5, last, &delay_ms) != AGAIN_NO, expected);
            }
}

static void however_it_fails_there_are_no_more_attempts_than_were_allowed(void **state) {
    (void)state;
    for (enum diagnosis_kind kind = 0; kind < DIAGNOSIS_KIND_COUNT; kind++)
        for (uint32_t max_restarts = 0; max_restarts < 6; max_restarts++) {
            struct again_case last = { .verdict = VERDICT_FAILED, .kind = kind };
            uint32_t n_attempts = 1, delay_ms;
            enum again again;

            while ((again = decide(max_restarts, last, &delay_ms)) != AGAIN_NO) {
                last.n_restarts += again == AGAIN_RESTART;
                last.has_moved |= again == AGAIN_OTHER_PORTS;
                assert_true(++n_attempts <= max_restarts + 2);
            }
            if (!again_may_help(kind))
                assert_int_equal(n_attempts, 1);
            else
                assert_int_equal(n_attempts, max_restarts + 1 + (kind == DIAGNOSIS_ADDRESS_IN_USE));
        }
}

static void delays_double_up_to_the_most(void **state) {
    struct again_case last = plain_failure;
    uint32_t before = 500, delay_ms;

    (void)state;
    for (; last.n_restarts < 1000; last.n_restarts++) {
        assert_int_equal(decide(1000, last, &delay_ms), AGAIN_RESTART);
        assert_int_equal(delay_ms,
                         2 * before < AGAIN_DELAY_MOST_MS ? 2 * before : AGAIN_DELAY_MOST_MS);
        before = delay_ms;
    }
    assert_int_equal(delay_ms, AGAIN_DELAY_MOST_MS);
}

static void without_a_first_delay_there_is_none(void **state) {
    const struct again_terms terms = { .max_restarts = 1000 };
    struct again_case last = plain_failure;
    uint32_t delay_ms = UNSET;

    (void)state;
    for (; last.n_restarts < 1000; last.n_restarts++) {
        assert_int_equal(again_decide(&terms, &last, &delay_ms), AGAIN_RESTART);
        assert_int_equal(delay_ms, 0);
    }
}

static void no_attempt_begins_beside_what_is_left_of_the_last(void **state) {
    struct again_case last = plain_failure;
    uint32_t delay_ms;

    (void)state;
    last.is_left = true;
    assert_int_equal(decide(9, last, &delay_ms), AGAIN_NO);
    last.kind = DIAGNOSIS_ADDRESS_IN_USE;
    assert_int_equal(decide(9, last, &delay_ms), AGAIN_NO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_the_header_holds),
        cmocka_unit_test(no_attempt_begins_beside_what_is_left_of_the_last),
        cmocka_unit_test(only_a_failure_that_nobody_asked_for_is_answered_by_another_attempt),
        cmocka_unit_test(however_it_fails_there_are_no_more_attempts_than_were_allowed),
        cmocka_unit_test(delays_double_up_to_the_most),
        cmocka_unit_test(without_a_first_delay_there_is_none),
    };

    return cmocka_run_group_tests_name("again", tests, NULL, NULL);
}
