/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "each_home.h"
#include "store/owner.h"
#include "store/unbegun.h"

enum { LONG_S = 100000 };

/* As if nothing had changed in the directory since then. */
static void date(const struct rundir *rundir, time_t at) {
    const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };

    assert_int_equal(utimensat(AT_FDCWD, rundir->path, times, 0), 0);
}

static void a_directory_that_is_new_may_still_become_a_run(void **state) {
    const struct rundir rundir = home_run(&home);

    (void)state;
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_STARTS);
}

static void one_that_is_old_or_of_the_future_never_began(void **state) {
    const struct rundir rundir = home_run(&home);

    (void)state;
    date(&rundir, 1);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_NEVER);
    date(&rundir, time(NULL) + 2 * LONG_S);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_NEVER);
}

static void as_long_as_its_maker_holds_the_lock_it_may_begin(void **state) {
    const struct rundir rundir = home_run(&home);
    struct error err;
    int lock;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    date(&rundir, 1);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_STARTS);
    close(lock);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_NEVER);
}

static void a_part_of_the_first_line_is_no_beginning(void **state) {
    const struct rundir rundir = home_run(&home);

    (void)state;
    home_write(&rundir, "events.jsonl", "");
    date(&rundir, 1);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_NEVER);
    home_write(&rundir, "events.jsonl", "{\"seq\":1,\"event\":\"crea");
    date(&rundir, 1);
    assert_int_equal(unbegun_look(&rundir, LONG_S), UNBEGUN_NEVER);
}

static void a_run_that_had_a_keeper_or_has_a_line_was_damaged(void **state) {
    const struct rundir announced = home_run(&home), written = home_run(&home);
    struct error err;
    int lock;

    (void)state;
    assert_int_equal(owner_take(&announced, &lock, &err), 0);
    owner_announce(lock, getpid());
    close(lock);
    date(&announced, 1);
    assert_int_equal(unbegun_look(&announced, LONG_S), UNBEGUN_DAMAGED);
    home_write(&written, "events.jsonl", "garbage\n");
    date(&written, 1);
    assert_int_equal(unbegun_look(&written, LONG_S), UNBEGUN_DAMAGED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_that_is_new_may_still_become_a_run),
        cmocka_unit_test(one_that_is_old_or_of_the_future_never_began),
        cmocka_unit_test(as_long_as_its_maker_holds_the_lock_it_may_begin),
        cmocka_unit_test(a_part_of_the_first_line_is_no_beginning),
        cmocka_unit_test(a_run_that_had_a_keeper_or_has_a_line_was_damaged),
    };

    return cmocka_run_group_tests(tests, make_home, release_home);
}
