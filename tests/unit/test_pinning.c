/* SPDX-License-Identifier: Apache-2.0 */
/* Who is pinned, and where the others go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "supervise/pinning.h"

/* A machine of n CPUs, each a core of its own. */
static void flat(struct layout *layout, uint32_t n) {
    *layout = (struct layout){
        .n_cpus = n, .n_cores = n, .n_nodes = 1, .n_packages = 1, .is_this_machine = true
    };
    for (uint32_t i = 0; i < n; i++) {
        layout->cpus[i] = (struct layout_cpu){ .cpu = (uint16_t)i, .core = (uint16_t)i };
        cpus_add(&layout->allowed, i);
    }
}

static struct plan *one_task(const char *cpu) {
    char text[512];

    snprintf(text, sizeof text,
             "version: 1\nkind: experiment\nenvironment: {resources: {cpu: %s}}\n"
             "run: {cmd: 'true'}\n",
             cpu);
    return compile_text(text);
}

static void only_a_limit_that_is_the_request_in_whole_cpus_pins(void **unused) {
    static const struct {
        const char *cpu;
        uint32_t pinned;
    } rows[] = {
        { "{requests: 2, limits: 2}", 2 },
        { "{limits: 3}", 3 },
        { "{requests: 2}", 0 },
        { "{requests: 1, limits: 2}", 0 },
        { "{requests: 0.5, limits: 0.5}", 0 },
        { "{requests: 1.5, limits: 1.5}", 0 },
        { "{requests: 0, limits: 0}", 0 },
        { "{limits: 2.001}", 0 },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_PTR(plan) plan = one_task(rows[i].cpu);

        assert_non_null(plan);
        assert_int_equal(plan_pinned(plan, 0), rows[i].pinned);
    }
}

static const char gang[] = "version: 1\nkind: experiment\nframework: tensorflow\n"
                           "environment:\n"
                           "  resources: {cpu: {requests: 1}}\n"
                           "  replicas:\n"
                           "    n_workers: 2\n"
                           "    n_ps: 1\n"
                           "    default_worker: {resources: {cpu: {requests: 1, limits: 1}}}\n"
                           "run: {cmd: 'true'}\n";

/* The gang's place on a machine of n CPUs, of which the first `held` are another run's. */
static void choose(struct pinning *out, uint32_t n, uint32_t held,
                   const struct demand_terms *terms) {
    AUTO_PTR(plan) plan = compile_text(gang);
    AUTO(arena) arena = ARENA_INIT;
    struct hold hold = { .run = 9 };
    struct layout layout;
    struct demand demand;

    assert_non_null(plan);
    flat(&layout, n);
    for (uint32_t i = 0; i < held; i++)
        cpus_add(&hold.cpus, i);
    demand_of_plan(plan, terms, &arena, &demand);
    pinning_choose(out, plan, &demand, &layout, &hold, 1);
}

static void the_others_run_where_nobody_is_pinned(void **unused) {
    const struct demand_terms all = { 0 };
    struct pinning pinning;

    (void)unused;
    choose(&pinning, 5, 1, &all);
    assert_string_equal(pinning.trouble, "");
    assert_int_equal(cpus_count(pinning_of(&pinning, 1)), 1);
    assert_int_equal(cpus_count(pinning_of(&pinning, 2)), 1);
    assert_false(cpus_are_equal(pinning_of(&pinning, 1), pinning_of(&pinning, 2)));
    for (uint32_t rank = 0; rank < 4; rank += 3) { /* the master and the server */
        assert_null(pinning_of(&pinning, rank));
        assert_non_null(pinning_place(&pinning, rank));
        assert_int_equal(cpus_count(pinning_place(&pinning, rank)), 2);
        assert_false(cpus_has(pinning_place(&pinning, rank), 0));
        for (uint32_t worker = 1; worker <= 2; worker++) {
            struct cpus both = *pinning_place(&pinning, rank);

            cpus_keep(&both, pinning_of(&pinning, worker));
            assert_int_equal(cpus_count(&both), 0);
        }
    }
    pinning_release(&pinning);
}

static void the_others_run_anywhere_where_all_is_taken(void **unused) {
    const struct demand_terms all = { 0 };
    struct pinning pinning;

    (void)unused;
    choose(&pinning, 2, 0, &all);
    assert_non_null(pinning_of(&pinning, 1));
    assert_null(pinning_place(&pinning, 0));
    assert_null(pinning_place(&pinning, 3));
    pinning_release(&pinning);
}

static void what_cannot_be_pinned_runs_off_the_cpus_of_others_and_says_so(void **unused) {
    const struct demand_terms all = { 0 };
    struct pinning pinning;

    (void)unused;
    choose(&pinning, 4, 3, &all);
    assert_non_null(strstr(pinning.trouble, "need: 2; those that this process may use: 4, and not "
                                            "taken: 1"));
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_null(pinning_of(&pinning, rank));
        assert_true(cpus_has(pinning_place(&pinning, rank), 3));
        assert_int_equal(cpus_count(pinning_place(&pinning, rank)), 1);
    }
    pinning_release(&pinning);
}

static void the_others_follow_as_pinned_tasks_come_and_go(void **unused) {
    const struct demand_terms all = { 0 };
    struct hold later = { .run = 10 };
    struct pinning pinning;
    struct cpus before;

    (void)unused;
    choose(&pinning, 5, 0, &all);
    assert_int_equal(cpus_count(&pinning.shared), 3);
    assert_false(pinning_follow(&pinning, NULL, 0, &before));
    cpus_add(&later.cpus, 4);
    assert_true(pinning_follow(&pinning, &later, 1, &before));
    assert_int_equal(cpus_count(&before), 3);
    assert_int_equal(cpus_count(&pinning.shared), 2);
    assert_false(cpus_has(&pinning.shared, 4));
    assert_true(pinning_follow(&pinning, NULL, 0, &before));
    assert_int_equal(cpus_count(&pinning.shared), 3);
    later.cpus = pinning.allowed;
    assert_true(pinning_follow(&pinning, &later, 1, &before));
    assert_true(cpus_are_equal(&pinning.shared, &pinning.allowed));
    pinning_release(&pinning);
}

static void who_reserves_no_cpu_is_not_pinned(void **unused) {
    const struct demand_terms oversubscribed = { .leaves_out = { [RESOURCE_CPU] = true } };
    struct pinning pinning;

    (void)unused;
    choose(&pinning, 8, 0, &oversubscribed);
    assert_int_equal(pinning.n_pins, 0);
    assert_null(pinning_place(&pinning, 0));
    assert_string_equal(pinning.trouble, "");
    pinning_release(&pinning);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_limit_that_is_the_request_in_whole_cpus_pins),
        cmocka_unit_test(the_others_run_where_nobody_is_pinned),
        cmocka_unit_test(the_others_run_anywhere_where_all_is_taken),
        cmocka_unit_test(what_cannot_be_pinned_runs_off_the_cpus_of_others_and_says_so),
        cmocka_unit_test(the_others_follow_as_pinned_tasks_come_and_go),
        cmocka_unit_test(who_reserves_no_cpu_is_not_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
