/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "store/sweep.h"

enum { N = 6, RANDOM_MOST = 40 };

/* Runs 1 to 6, of which each is a day younger than the one before, takes 10 bytes and is meant. */
static void make_runs(struct sweep_run runs[static N]) {
    for (size_t i = 0; i < N; i++)
        runs[i] = (struct sweep_run){ .id = i + 1,
                                      .outputs_of = i + 1,
                                      .is_meant = true,
                                      .age_s = 86400.0 * (double)(N - i),
                                      .bytes = 10 };
}

/* A letter for each verdict. */
static void assert_verdicts(const struct sweep_run *runs, const char *expected) {
    static const char letters[] = {
        [SWEEP_GOES] = 'X',         [SWEEP_NOT_MEANT] = 'm', [SWEEP_YOUNG] = 'y',
        [SWEEP_AMONG_NEWEST] = 'k', [SWEEP_HAS_ROOM] = 'r',  [SWEEP_NEEDED] = '!'
    };
    char is[N + 1] = "";

    for (size_t i = 0; i < N; i++)
        is[i] = letters[runs[i].verdict];
    assert_string_equal(is, expected);
}

static void a_run_goes_when_every_rule_that_is_given_holds(void **state) {
    const struct sweep_rules none = { 0 };
    const struct sweep_rules older = { .has_older = true, .older_s = 3 * 86400 };
    const struct sweep_rules keep = { .has_keep = true, .keep = 2 };
    const struct sweep_rules size = { .has_size = true, .size = 35 };
    const struct sweep_rules all = { .has_older = true,
                                     .older_s = 3 * 86400,
                                     .has_keep = true,
                                     .keep = 1,
                                     .has_size = true,
                                     .size = 45 };
    struct sweep_run runs[N];

    (void)state;
    make_runs(runs);
    sweep_decide(runs, N, &none);
    assert_verdicts(runs, "XXXXXX");
    sweep_decide(runs, N, &older);
    assert_verdicts(runs, "XXXXyy");
    sweep_decide(runs, N, &keep);
    assert_verdicts(runs, "XXXXkk");
    sweep_decide(runs, N, &size);
    assert_verdicts(runs, "XXXrrr");
    sweep_decide(runs, N, &all);
    assert_verdicts(runs, "XXrryk");
}

static void only_those_that_are_meant_count_among_the_newest(void **state) {
    const struct sweep_rules keep = { .has_keep = true, .keep = 2 };
    struct sweep_run runs[N];

    (void)state;
    make_runs(runs);
    runs[5].is_meant = runs[3].is_meant = false;
    sweep_decide(runs, N, &keep);
    assert_verdicts(runs, "XXkmkm");
}

static void what_is_needed_stays_and_others_make_the_room(void **state) {
    const struct sweep_rules size = { .has_size = true, .size = 35 };
    struct sweep_run runs[N];

    (void)state;
    make_runs(runs);
    runs[0].needed = "it goes on";
    runs[1].is_meant = false;
    sweep_decide(runs, N, &size);
    assert_verdicts(runs, "!mXXXr");
}

static void outputs_that_a_run_which_stays_shares_stay(void **state) {
    const struct sweep_rules older = { .has_older = true, .older_s = 3 * 86400 };
    const struct sweep_rules size = { .has_size = true, .size = 55 };
    const struct sweep_rules small = { .has_size = true, .size = 30 };
    struct sweep_run runs[N];

    (void)state;
    make_runs(runs);
    runs[5].outputs_of = runs[2].outputs_of = 1;
    sweep_decide(runs, N, &older);
    assert_verdicts(runs, "!XXXyy");
    assert_int_equal(runs[0].user, 6);
    runs[5].outputs_of = 6;
    sweep_decide(runs, N, &older);
    assert_verdicts(runs, "XXXXyy");
    sweep_decide(runs, N, &size);
    assert_verdicts(runs, "rXrrrr");
    sweep_decide(runs, N, &small);
    assert_verdicts(runs, "XXXrrr");
}

/* Whatever the runs and the rules are: what goes is meant, not needed, and nobody that stays has
 * its outputs; and what stays for its size would not be too large. */
static void nothing_goes_that_anybody_needs(void **state) {
    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        struct sweep_run runs[RANDOM_MOST];
        const size_t n = (size_t)(rand() % RANDOM_MOST);
        const struct sweep_rules rules = { .has_older = rand() % 2,
                                           .has_keep = rand() % 2,
                                           .has_size = rand() % 2,
                                           .older_s = rand() % 100,
                                           .keep = (uint64_t)(rand() % 10),
                                           .size = (uint64_t)(rand() % 400) };
        uint64_t left = 0;
        bool has_room = false;

        for (size_t i = 0; i < n; i++)
            runs[i] = (struct sweep_run){ .id = 2 * i + 1,
                                          .outputs_of = 2 * i + 1,
                                          .is_meant = rand() % 4 > 0,
                                          .age_s = rand() % 100,
                                          .bytes = (uint64_t)(rand() % 20),
                                          .needed = rand() % 8 ? NULL : "so" };
        for (size_t i = 1; i < n; i++) {
            const size_t other = (size_t)rand() % i;

            if (rand() % 3 == 0 && runs[other].outputs_of == runs[other].id)
                runs[i].outputs_of = runs[other].id;
        }
        sweep_decide(runs, n, &rules);
        for (size_t i = 0; i < n; i++) {
            const struct sweep_run *run = &runs[i];

            left += run->verdict == SWEEP_GOES ? 0 : run->bytes;
            has_room |= run->verdict == SWEEP_HAS_ROOM;
            if (run->outputs_of != run->id && run->verdict != SWEEP_GOES)
                assert_int_not_equal(runs[(run->outputs_of - 1) / 2].verdict, SWEEP_GOES);
            if (run->verdict != SWEEP_GOES)
                continue;
            assert_true(run->is_meant && !run->needed);
            assert_true(!rules.has_older || run->age_s >= rules.older_s);
        }
        assert_true(!has_room || left <= rules.size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_when_every_rule_that_is_given_holds),
        cmocka_unit_test(only_those_that_are_meant_count_among_the_newest),
        cmocka_unit_test(what_is_needed_stays_and_others_make_the_room),
        cmocka_unit_test(outputs_that_a_run_which_stays_shares_stay),
        cmocka_unit_test(nothing_goes_that_anybody_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
