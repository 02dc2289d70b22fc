/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/pin.h"

#include <assert.h>
#include <stdlib.h>

static uint32_t node_of(const struct layout_cpu *cpu) {
    return cpu->node;
}

static uint32_t package_of(const struct layout_cpu *cpu) {
    return cpu->package;
}

/* What CPUs that are near each other have in common, the nearest first. */
static uint32_t (*const kinds[])(const struct layout_cpu *) = { node_of, package_of };

static void count_free(const struct layout *layout, const struct cpus *free,
                       uint32_t (*kind)(const struct layout_cpu *), uint32_t counts[CPUS_MAX]) {
    for (uint32_t i = 0; i < CPUS_MAX; i++)
        counts[i] = 0;
    for (uint32_t i = 0; i < layout->n_cpus; i++)
        counts[kind(&layout->cpus[i])] += cpus_has(free, layout->cpus[i].cpu);
}

/* Those of the free CPUs among which n are chosen: of the fullest node that still has n, else of
 * such a package, else all. */
static struct cpus choose_pool(const struct layout *layout, const struct cpus *free, uint64_t n) {
    uint32_t counts[CPUS_MAX];

    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        uint32_t best = CPUS_MAX;
        struct cpus pool = { 0 };

        count_free(layout, free, kinds[k], counts);
        for (uint32_t i = 0; i < CPUS_MAX; i++)
            if (counts[i] >= n && (best == CPUS_MAX || counts[i] < counts[best]))
                best = i;
        if (best == CPUS_MAX)
            continue;
        for (uint32_t i = 0; i < layout->n_cpus; i++)
            if (kinds[k](&layout->cpus[i]) == best && cpus_has(free, layout->cpus[i].cpu))
                cpus_add(&pool, layout->cpus[i].cpu);
        return pool;
    }
    return *free;
}

/* Moves up to n free CPUs of a core. */
static uint32_t take_core(const struct layout *layout, struct cpus *free, uint32_t core, uint32_t n,
                          struct cpus *out) {
    struct cpus moved = { 0 };
    uint32_t taken = 0;

    for (uint32_t i = 0; i < layout->n_cpus && taken < n; i++)
        if (layout->cpus[i].core == core && cpus_has(free, layout->cpus[i].cpu)) {
            cpus_add(&moved, layout->cpus[i].cpu);
            taken++;
        }
    cpus_join(out, &moved);
    cpus_remove(free, &moved);
    return taken;
}

/* Moves up to n free CPUs of a node: whole cores, then threads of the emptiest. */
static uint32_t take_node(const struct layout *layout, struct cpus *free, uint32_t node, uint32_t n,
                          struct cpus *out) {
    uint32_t all[CPUS_MAX] = { 0 }, left[CPUS_MAX] = { 0 }, taken = 0;

    for (uint32_t i = 0; i < layout->n_cpus; i++)
        if (layout->cpus[i].node == node) {
            all[layout->cpus[i].core]++;
            left[layout->cpus[i].core] += cpus_has(free, layout->cpus[i].cpu);
        }
    for (uint32_t core = 0; core < CPUS_MAX; core++)
        if (left[core] > 0 && left[core] == all[core] && left[core] <= n - taken) {
            taken += take_core(layout, free, core, left[core], out);
            left[core] = 0;
        }
    while (taken < n) {
        uint32_t emptiest = 0;

        for (uint32_t core = 1; core < CPUS_MAX; core++)
            if (left[core] > left[emptiest])
                emptiest = core;
        if (left[emptiest] == 0)
            break;
        taken += take_core(layout, free, emptiest, n - taken, out);
        left[emptiest] = 0;
    }
    return taken;
}

/* Moves n CPUs, of which there are enough: from one node where they fit, else from those with
 * the most. */
static void take(const struct layout *layout, struct cpus *free, uint32_t n, struct cpus *out) {
    struct cpus pool = choose_pool(layout, free, n);
    uint32_t counts[CPUS_MAX];

    *out = (struct cpus){ 0 };
    while (n > 0) {
        uint32_t most = 0;

        count_free(layout, &pool, node_of, counts);
        for (uint32_t i = 1; i < CPUS_MAX; i++)
            if (counts[i] > counts[most])
                most = i;
        assert(counts[most] > 0);
        n -= take_node(layout, &pool, most, n, out);
    }
    cpus_remove(free, out);
}

static int largest_first(const void *a, const void *b) {
    const struct pin *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

bool pin_gang(const struct layout *layout, const struct cpus *taken, struct pin *pins, size_t n) {
    struct cpus free = { 0 };
    uint64_t total = 0;

    if (n > 0)
        qsort(pins, n, sizeof *pins, largest_first);
    for (size_t i = 0; i < n; i++)
        total += pins[i].n;
    for (uint32_t i = 0; i < layout->n_cpus; i++)
        cpus_add(&free, layout->cpus[i].cpu);
    cpus_keep(&free, &layout->allowed);
    cpus_remove(&free, taken);
    if (cpus_count(&free) < total)
        return false;
    free = choose_pool(layout, &free, total);
    for (size_t i = 0; i < n; i++)
        take(layout, &free, pins[i].n, &pins[i].cpus);
    return true;
}
