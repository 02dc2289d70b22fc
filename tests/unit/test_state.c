/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "model/state.h"

typedef bool transition(enum state from, enum state to);

static transition *const tables[] = { run_state_can_become, task_state_can_become };

/* States that only one of the two has. */
static bool exists_in(transition *can_become, enum state state) {
    return state != (can_become == run_state_can_become ? STATE_UNSCHEDULABLE : STATE_STARTING);
}

static void every_name_reads_back_as_its_state_and_no_two_are_equal(void **state) {
    (void)state;
    for (enum state i = 0; i < STATE_COUNT; i++) {
        enum state back = STATE_COUNT;

        assert_true(state_named(state_name(i), &back));
        assert_int_equal(back, i);
    }
}

static void what_is_no_name_of_a_state_is_none(void **state) {
    static const char *const names[] = { "", "Running", "running ", "run", "done" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        enum state out = STATE_COUNT;

        assert_false(state_named(names[i], &out));
        assert_int_equal(out, STATE_COUNT);
    }
}

static void nothing_follows_a_final_state(void **state) {
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (enum state from = 0; from < STATE_COUNT; from++)
            for (enum state to = 0; to < STATE_COUNT; to++)
                if (state_is_final(from))
                    assert_false(tables[t](from, to));
}

static void whatever_is_not_final_can_be_stopped_fail_and_succeed(void **state) {
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (enum state from = 0; from < STATE_COUNT; from++)
            if (!state_is_final(from) && exists_in(tables[t], from)) {
                assert_true(tables[t](from, STATE_STOPPED));
                assert_true(tables[t](from, STATE_FAILED));
                assert_true(tables[t](from, STATE_SUCCEEDED));
            }
}

static void no_state_follows_itself_and_none_leads_back_to_created(void **state) {
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (enum state i = 0; i < STATE_COUNT; i++) {
            assert_false(tables[t](i, i));
            assert_false(tables[t](i, STATE_CREATED));
        }
}

static void runs_are_never_unschedulable_and_tasks_never_starting(void **state) {
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (enum state i = 0; i < STATE_COUNT; i++)
            for (enum state other = 0; other < STATE_COUNT; other++)
                if (!exists_in(tables[t], i)) {
                    assert_false(tables[t](i, other));
                    assert_false(tables[t](other, i));
                }
}

static void every_state_is_reached_from_created(void **state) {
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (enum state to = 0; to < STATE_COUNT; to++)
            if (to != STATE_CREATED && exists_in(tables[t], to)) {
                bool is_reached = tables[t](STATE_CREATED, to);

                for (enum state by = 0; by < STATE_COUNT; by++)
                    is_reached |= tables[t](STATE_CREATED, by) && tables[t](by, to);
                assert_true(is_reached);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_reads_back_as_its_state_and_no_two_are_equal),
        cmocka_unit_test(what_is_no_name_of_a_state_is_none),
        cmocka_unit_test(nothing_follows_a_final_state),
        cmocka_unit_test(whatever_is_not_final_can_be_stopped_fail_and_succeed),
        cmocka_unit_test(no_state_follows_itself_and_none_leads_back_to_created),
        cmocka_unit_test(runs_are_never_unschedulable_and_tasks_never_starting),
        cmocka_unit_test(every_state_is_reached_from_created),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
