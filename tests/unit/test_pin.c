/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of pinning under random machines and gangs. MYELIN_TEST_SEED plays one again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chance.h"
#include "sched/pin.h"

enum { GANGS_MOST = 10, TASKS_MOST = 6, WORLDS = 300, STEPS = 30 };

/* ---- machines ---- */

/* The kernel's numbers are in any order, as they are on real machines. */
static void shuffle_numbers(struct layout *layout) {
    for (uint32_t i = layout->n_cpus - 1; i > 0; i--) {
        const uint32_t k = random_below(i + 1);
        const uint16_t number = layout->cpus[i].cpu;

        layout->cpus[i].cpu = layout->cpus[k].cpu;
        layout->cpus[k].cpu = number;
    }
}

static void build(struct layout *layout, uint32_t packages, uint32_t nodes, uint32_t cores,
                  uint32_t threads) {
    *layout = (struct layout){ .n_packages = packages, .is_this_machine = true };
    for (uint32_t p = 0; p < packages; p++)
        for (uint32_t n = 0; n < nodes; n++, layout->n_nodes++)
            for (uint32_t c = 0; c < cores; c++, layout->n_cores++)
                for (uint32_t t = 0; t < threads; t++, layout->n_cpus++) {
                    layout->cpus[layout->n_cpus] =
                        (struct layout_cpu){ .cpu = (uint16_t)layout->n_cpus,
                                             .core = (uint16_t)layout->n_cores,
                                             .node = (uint16_t)layout->n_nodes,
                                             .package = (uint16_t)p };
                    cpus_add(&layout->allowed, layout->n_cpus);
                }
}

static void random_layout(struct layout *layout) {
    build(layout, 1 + random_below(3), 1 + random_below(3), 1 + random_below(6),
          1 + random_below(2));
    shuffle_numbers(layout);
    if (random_below(3) == 0)
        for (uint32_t i = 0; i < layout->n_cpus; i++)
            if (random_below(4) == 0) {
                struct cpus one = { 0 };

                cpus_add(&one, i);
                cpus_remove(&layout->allowed, &one);
            }
}

static struct cpus of_node(const struct layout *layout, uint32_t node) {
    struct cpus cpus = { 0 };

    for (uint32_t i = 0; i < layout->n_cpus; i++)
        if (layout->cpus[i].node == node)
            cpus_add(&cpus, layout->cpus[i].cpu);
    return cpus;
}

static struct cpus of_package(const struct layout *layout, uint32_t package) {
    struct cpus cpus = { 0 };

    for (uint32_t i = 0; i < layout->n_cpus; i++)
        if (layout->cpus[i].package == package)
            cpus_add(&cpus, layout->cpus[i].cpu);
    return cpus;
}

/* How many of a kind the CPUs lie on, and whether one alone had room for n of the free ones. */
struct spread {
    uint32_t touched;
    bool one_has_room;
};

static struct spread spread(const struct layout *layout, const struct cpus *cpus,
                            const struct cpus *free, uint32_t n, uint32_t n_kinds,
                            struct cpus (*of)(const struct layout *, uint32_t)) {
    struct spread found = { 0 };

    for (uint32_t i = 0; i < n_kinds; i++) {
        struct cpus there = of(layout, i), room = there;

        cpus_keep(&there, cpus);
        cpus_keep(&room, free);
        found.touched += cpus_count(&there) > 0;
        found.one_has_room |= cpus_count(&room) >= n;
    }
    return found;
}

static void are_together(const struct layout *layout, const struct cpus *cpus,
                         const struct cpus *free, uint32_t n) {
    const struct spread nodes = spread(layout, cpus, free, n, layout->n_nodes, of_node);
    const struct spread packages = spread(layout, cpus, free, n, layout->n_packages, of_package);

    assert_true(!nodes.one_has_room || nodes.touched <= 1);
    assert_true(!packages.one_has_room || packages.touched <= 1);
}

/* ---- a world of gangs that come and go ---- */

struct gang {
    struct pin pins[TASKS_MOST];
    size_t n;
};

struct world {
    struct layout layout;
    struct gang gangs[GANGS_MOST];
    size_t n_gangs;
};

static struct cpus taken(const struct world *world) {
    struct cpus cpus = { 0 };

    for (size_t i = 0; i < world->n_gangs; i++)
        for (size_t k = 0; k < world->gangs[i].n; k++) {
            struct cpus both = cpus;

            cpus_keep(&both, &world->gangs[i].pins[k].cpus);
            assert_int_equal(cpus_count(&both), 0); /* no CPU is two tasks' */
            cpus_join(&cpus, &world->gangs[i].pins[k].cpus);
        }
    return cpus;
}

static uint32_t ask(struct gang *gang) {
    uint32_t total = 0;

    gang->n = 1 + random_below(TASKS_MOST);
    for (size_t i = 0; i < gang->n; i++) {
        gang->pins[i] = (struct pin){ .rank = (uint32_t)i, .n = 1 + random_below(4) };
        total += gang->pins[i].n;
    }
    return total;
}

/* One gang comes: it gets all that it asks for, near each other, or nothing. */
static void come(struct world *world) {
    struct gang *gang = &world->gangs[world->n_gangs];
    const uint32_t total = ask(gang);
    const struct cpus before = taken(world);
    struct cpus free = world->layout.allowed, all = { 0 };
    bool is_given;

    cpus_remove(&free, &before);
    is_given = pin_gang(&world->layout, &before, gang->pins, gang->n);
    assert_int_equal(is_given, cpus_count(&free) >= total);
    for (size_t i = 0; i < gang->n; i++) {
        struct cpus outside = gang->pins[i].cpus;

        assert_true(i == 0 || gang->pins[i - 1].n >= gang->pins[i].n);
        assert_int_equal(cpus_count(&gang->pins[i].cpus), is_given ? gang->pins[i].n : 0);
        cpus_remove(&outside, &free);
        assert_int_equal(cpus_count(&outside), 0);
        cpus_join(&all, &gang->pins[i].cpus);
    }
    if (!is_given)
        return;
    are_together(&world->layout, &all, &free, total);
    if (gang->n == 1)
        are_together(&world->layout, &gang->pins[0].cpus, &free, total);
    world->n_gangs++;
    taken(world);
}

static void leave(struct world *world, size_t i) {
    world->n_gangs--;
    world->gangs[i] = world->gangs[world->n_gangs];
}

static void no_cpu_is_given_twice_and_gangs_stay_together(void **unused) {
    struct world *world = calloc(1, sizeof *world);

    (void)unused;
    assert_non_null(world);
    state = seed;
    for (int i = 0; i < WORLDS; i++) {
        world->n_gangs = 0;
        random_layout(&world->layout);
        for (int step = 0; step < STEPS; step++) {
            if (world->n_gangs < GANGS_MOST && random_below(3))
                come(world);
            else if (world->n_gangs > 0)
                leave(world, random_below((uint32_t)world->n_gangs));
        }
    }
    free(world);
}

/* ---- single cases ---- */

static uint32_t whole_cores(const struct layout *layout, const struct cpus *cpus) {
    uint32_t all[CPUS_MAX] = { 0 }, own[CPUS_MAX] = { 0 }, n = 0;

    for (uint32_t i = 0; i < layout->n_cpus; i++) {
        all[layout->cpus[i].core]++;
        own[layout->cpus[i].core] += cpus_has(cpus, layout->cpus[i].cpu);
    }
    for (uint32_t i = 0; i < layout->n_cores; i++)
        n += own[i] == all[i];
    return n;
}

static void a_task_gets_whole_cores_as_far_as_they_go(void **unused) {
    struct layout layout;
    struct pin pin = { .n = 5 };

    (void)unused;
    build(&layout, 1, 1, 4, 2);
    assert_true(pin_gang(&layout, &(struct cpus){ 0 }, &pin, 1));
    assert_int_equal(whole_cores(&layout, &pin.cpus), 2);
}

static void single_threads_have_a_core_each_while_there_are_enough(void **unused) {
    struct layout layout;
    struct pin pins[] = { { 0, 1, { { 0 } } }, { 1, 1, { { 0 } } }, { 2, 1, { { 0 } } } };

    (void)unused;
    build(&layout, 1, 1, 3, 2);
    assert_true(pin_gang(&layout, &(struct cpus){ 0 }, pins, 3));
    assert_true(cpus_has(&pins[0].cpus, 0));
    assert_true(cpus_has(&pins[1].cpus, 2));
    assert_true(cpus_has(&pins[2].cpus, 4));
}

static void the_fullest_node_that_suffices_is_taken(void **unused) {
    struct layout layout;
    struct cpus busy = { 0 }, second;
    struct pin pin = { .n = 2 };

    (void)unused;
    build(&layout, 1, 2, 4, 1);
    cpus_add(&busy, 4);
    assert_true(pin_gang(&layout, &busy, &pin, 1));
    second = of_node(&layout, 1);
    cpus_remove(&pin.cpus, &second);
    assert_int_equal(cpus_count(&pin.cpus), 0);
}

static void a_gang_too_large_for_one_node_splits_between_tasks_not_within(void **unused) {
    struct layout layout;
    struct pin pins[] = { { 0, 3, { { 0 } } }, { 1, 3, { { 0 } } } };
    const struct cpus none = { 0 };

    (void)unused;
    build(&layout, 2, 1, 4, 1);
    assert_true(pin_gang(&layout, &none, pins, 2));
    for (int i = 0; i < 2; i++)
        assert_int_equal(spread(&layout, &pins[i].cpus, &none, 0, layout.n_nodes, of_node).touched,
                         1);
}

static void a_set_is_written_as_ranges(void **unused) {
    static const struct {
        uint32_t cpus[8], n;
        const char *text;
    } rows[] = {
        { { 0 }, 0, "" },
        { { 7 }, 1, "7" },
        { { 0, 1, 2, 3, 8 }, 5, "0-3,8" },
        { { 62, 63, 64, 65, 1022, 1023 }, 6, "62-65,1022-1023" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf) text = BUF_INIT(CPUS_TEXT_MOST);
        struct cpus set = { 0 };
        struct error err;

        for (uint32_t k = 0; k < rows[i].n; k++)
            cpus_add(&set, rows[i].cpus[k]);
        assert_int_equal(cpus_count(&set), rows[i].n);
        assert_int_equal(cpus_write(&set, &text, &err), 0);
        assert_string_equal(text.data, rows[i].text);
    }
}

static void the_longest_set_fits_into_its_text(void **unused) {
    AUTO(buf) text = BUF_INIT(CPUS_TEXT_MOST);
    struct cpus every_other = { 0 };
    struct error err;

    (void)unused;
    for (uint32_t i = 0; i < CPUS_MAX; i += 2)
        cpus_add(&every_other, i);
    assert_int_equal(cpus_write(&every_other, &text, &err), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cpu_is_given_twice_and_gangs_stay_together),
        cmocka_unit_test(a_task_gets_whole_cores_as_far_as_they_go),
        cmocka_unit_test(single_threads_have_a_core_each_while_there_are_enough),
        cmocka_unit_test(the_fullest_node_that_suffices_is_taken),
        cmocka_unit_test(a_gang_too_large_for_one_node_splits_between_tasks_not_within),
        cmocka_unit_test(a_set_is_written_as_ranges),
        cmocka_unit_test(the_longest_set_fits_into_its_text),
    };

    return cmocka_run_group_tests(tests, choose_seed, NULL);
}
