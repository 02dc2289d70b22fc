/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "each_home.h"
#include "model/plan.h"
#include "store/owner.h"
#include "supervise/supervisor.h"

static void a_run_whose_journal_does_not_tell_how_it_began_is_not_taken_over(void **state) {
    static const char *const journals[] = { "", "no line\n",
                                            "{\"seq\": 1, \"event\": \"status\"}\n" };
    const struct supervisor_options options = { .home = home.path };
    const struct plan plan = { 0 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(journals); i++) {
        struct rundir rundir = home_run(&home);
        struct error err;
        pid_t pid;

        home_write(&rundir, "events.jsonl", journals[i]);
        assert_int_equal(supervisor_take_over(&plan, &options, &rundir, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
        assert_non_null(strstr(err.message, "does not tell how it began"));
        assert_false(owner_lives(&rundir, &pid));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_whose_journal_does_not_tell_how_it_began_is_not_taken_over),
    };

    return cmocka_run_group_tests_name("supervisor", tests, make_home, release_home);
}
