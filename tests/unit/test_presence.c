/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "each_home.h"
#include "store/presence.h"

static void a_directory_is_held_until_the_last_descriptor_is_closed(void **state) {
    struct rundir rundir = home_run(&home);
    int held, second;

    (void)state;
    assert_false(presence_is_held(&rundir));
    held = presence_hold(&rundir);
    assert_true(presence_is_held(&rundir));
    second = dup(held);
    close(held);
    assert_true(presence_is_held(&rundir));
    close(second);
    assert_false(presence_is_held(&rundir));
}

static void a_child_holds_it_on_and_its_death_ends_it(void **state) {
    struct rundir rundir = home_run(&home);
    const int held = presence_hold(&rundir);
    const pid_t child = fork();

    (void)state;
    if (child == 0) {
        alarm(30);
        pause();
        _exit(0);
    }
    close(held);
    assert_true(presence_is_held(&rundir));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_false(presence_is_held(&rundir));
}

static void who_has_a_removed_directory_open_still_sees_it_held(void **state) {
    struct rundir rundir = home_run(&home);
    const int held = presence_hold(&rundir), looking = presence_open(&rundir);

    (void)state;
    rundir_remove(&rundir);
    assert_false(presence_is_held(&rundir));
    assert_true(presence_is_held_at(looking));
    close(held);
    assert_false(presence_is_held_at(looking));
    assert_false(presence_is_held_at(-1));
    close(looking);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_held_until_the_last_descriptor_is_closed),
        cmocka_unit_test(a_child_holds_it_on_and_its_death_ends_it),
        cmocka_unit_test(who_has_a_removed_directory_open_still_sees_it_held),
    };

    return cmocka_run_group_tests_name("presence", tests, make_home, release_home);
}
