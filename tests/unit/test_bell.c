/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <unistd.h>

#include "base/attr.h"
#include "supervise/bell.h"

static void what_is_rung_is_heard_in_order(void **state) {
    struct bell bell;
    struct error err;
    uint32_t heard[8];
    int listener;

    (void)state;
    assert_int_equal(bell_make(&bell, &listener, &err), 0);
    assert_int_equal(bell_hear(listener, heard, ARRAY_LEN(heard)), 0);
    bell_ring(&bell, 3);
    bell_ring(&bell, BELL_JOURNAL);
    assert_int_equal(bell_hear(listener, heard, ARRAY_LEN(heard)), 2);
    assert_int_equal(heard[0], 3);
    assert_int_equal(heard[1], BELL_JOURNAL);
    bell_release(&bell);
    assert_int_equal(bell_hear(listener, heard, ARRAY_LEN(heard)), -1);
    close(listener);
}

static void who_listens_too_slowly_is_told_to_look_at_all(void **state) {
    struct bell bell;
    struct error err;
    uint32_t heard[4096];
    int listener, n, last = 0;

    (void)state;
    assert_int_equal(bell_make(&bell, &listener, &err), 0);
    for (uint32_t i = 0; i < 100000; i++)
        bell_ring(&bell, i);
    while ((n = bell_hear(listener, heard, ARRAY_LEN(heard))) > 0)
        last = n;
    assert_true(last > 0);
    bell_ring(&bell, 7);
    bell_ring(&bell, 8);
    assert_int_equal(bell_hear(listener, heard, ARRAY_LEN(heard)), 2);
    assert_int_equal(heard[0], BELL_ALL);
    assert_int_equal(heard[1], 8);
    bell_release(&bell);
    close(listener);
}

static void a_listener_that_has_gone_costs_nothing(void **state) {
    struct bell bell;
    struct error err;
    int listener;

    (void)state;
    signal(SIGPIPE, SIG_IGN); /* as in a supervisor */
    assert_int_equal(bell_make(&bell, &listener, &err), 0);
    close(listener);
    bell_ring(&bell, 1);
    assert_int_equal(bell.fd, -1);
    bell_ring(&bell, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_rung_is_heard_in_order),
        cmocka_unit_test(who_listens_too_slowly_is_told_to_look_at_all),
        cmocka_unit_test(a_listener_that_has_gone_costs_nothing),
    };

    return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
