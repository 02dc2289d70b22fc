/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "supervise/suspension.h"

enum { MS = 1000 };

static void patience_is_over_only_when_suspensions_go_on_for_so_long(void **state) {
    struct suspension suspension = { 0 };

    (void)state;
    for (int64_t ms = 7; ms < 7 + SUSPENSION_PATIENCE_MS; ms++)
        assert_false(suspension_seen(&suspension, ms * MS));
    assert_true(suspension_seen(&suspension, (7 + SUSPENSION_PATIENCE_MS) * (int64_t)MS));
}

static void one_after_a_long_gap_is_the_first_again(void **state) {
    struct suspension suspension = { 0 };

    (void)state;
    for (int64_t i = 1; i < 100; i++)
        assert_false(suspension_seen(&suspension, i * (SUSPENSION_GAP_MS + 1) * MS));
}

static void looks_that_are_a_second_apart_see_it_too(void **state) {
    struct suspension suspension = { 0 };
    int64_t seconds = 1;

    (void)state;
    while (!suspension_seen(&suspension, seconds * 1000 * MS))
        seconds++;
    assert_int_equal(seconds, 1 + SUSPENSION_PATIENCE_MS / 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patience_is_over_only_when_suspensions_go_on_for_so_long),
        cmocka_unit_test(one_after_a_long_gap_is_the_first_again),
        cmocka_unit_test(looks_that_are_a_second_apart_see_it_too),
    };

    return cmocka_run_group_tests_name("suspension", tests, NULL, NULL);
}
