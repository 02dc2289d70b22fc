/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervise/merge.h"

/* The value of the name, which must be there at most once; or NULL. */
static const char *value_of(char *const *environment, const char *name) {
    const size_t n = strlen(name);
    const char *found = NULL;

    for (; *environment; environment++) {
        if (strncmp(*environment, name, n) != 0 || (*environment)[n] != '=')
            continue;
        assert_null(found);
        found = *environment + n + 1;
    }
    return found;
}

/* clang-format off */
#define ENVIRONMENT(...) ((char *[]){ __VA_ARGS__, NULL })
/* clang-format on */

static char home[] = "HOME=/home/u", rank[] = "RANK=7", rank_ours[] = "RANK=0",
            rank_later[] = "RANK=1", ranks[] = "RANKS=5", omp[] = "OMP_NUM_THREADS=3",
            omp_ours[] = "OMP_NUM_THREADS=1", python_ours[] = "PYTHONUNBUFFERED=1",
            odd[] = "no equals sign";

static void ours_win_over_the_users(void **unused) {
    struct merge merge;
    char *const *got;

    (void)unused;
    merge_init(&merge, ENVIRONMENT(home, rank, ranks, odd));
    got = merge_environment(&merge, ENVIRONMENT(rank_ours));
    assert_string_equal(value_of(got, "RANK"), "0");
    assert_string_equal(value_of(got, "RANKS"), "5");
    assert_string_equal(value_of(got, "HOME"), "/home/u");
    assert_string_equal(got[3], odd);
    merge_release(&merge);
}

static void a_suggestion_yields_to_the_users(void **unused) {
    struct merge merge;
    char *const *got;

    (void)unused;
    merge_init(&merge, ENVIRONMENT(omp));
    got = merge_environment(&merge, ENVIRONMENT(omp_ours, python_ours));
    assert_string_equal(value_of(got, "OMP_NUM_THREADS"), "3");
    assert_string_equal(value_of(got, "PYTHONUNBUFFERED"), "1");
    merge_release(&merge);
}

static void one_merge_leaves_nothing_for_the_next(void **unused) {
    struct merge merge;

    (void)unused;
    merge_init(&merge, ENVIRONMENT(home, rank));
    merge_environment(&merge, ENVIRONMENT(rank_ours, python_ours, rank_later));
    assert_string_equal(value_of(merge.result, "RANK"), "1");
    merge_environment(&merge, ENVIRONMENT(ranks));
    assert_string_equal(value_of(merge.result, "RANK"), "7");
    assert_null(value_of(merge.result, "PYTHONUNBUFFERED"));
    merge_release(&merge);
}

static void of_two_with_one_name_the_later_wins(void **unused) {
    struct merge merge;
    char *none[] = { NULL };

    (void)unused;
    merge_init(&merge, none);
    assert_string_equal(
        value_of(merge_environment(&merge, ENVIRONMENT(rank, home, rank_later)), "RANK"), "1");
    merge_release(&merge);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ours_win_over_the_users),
        cmocka_unit_test(a_suggestion_yields_to_the_users),
        cmocka_unit_test(one_merge_leaves_nothing_for_the_next),
        cmocka_unit_test(of_two_with_one_name_the_later_wins),
    };

    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
