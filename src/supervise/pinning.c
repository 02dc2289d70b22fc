/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/pinning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The CPUs of its own that a task is to get, as the demand counts it. */
static uint32_t wanted(const struct plan *plan, const struct demand_group *group, uint32_t rank) {
    if (group->amount[RESOURCE_CPU] == 0) /* left out: oversubscribed */
        return 0;
    return plan_pinned(plan, rank);
}

/* The tasks that are to be pinned; `pins` may be NULL, to count them. */
static size_t gather(const struct plan *plan, const struct demand *demand, struct pin *pins) {
    uint32_t at = 0;
    size_t n = 0;

    for (size_t g = 0; g < demand->n_groups; g++)
        for (uint32_t i = 0; i < demand->groups[g].n; i++, at++) {
            const uint32_t n_cpus = wanted(plan, &demand->groups[g], demand->ranks[at]);

            if (n_cpus > 0 && pins)
                pins[n] = (struct pin){ .rank = demand->ranks[at], .n = n_cpus };
            n += n_cpus > 0;
        }
    return n;
}

bool pinning_is_wanted(const struct plan *plan, const struct demand *demand) {
    return gather(plan, demand, NULL) > 0;
}

static void explain(struct pinning *pinning, const struct layout *layout,
                    const struct cpus *taken) {
    struct cpus free = layout->allowed;
    uint64_t total = 0;

    for (size_t i = 0; i < pinning->n_pins; i++)
        total += pinning->pins[i].n;
    cpus_remove(&free, taken);
    if (!layout->is_this_machine)
        snprintf(pinning->trouble, sizeof pinning->trouble,
                 "not pinned: HWLOC_SYNTHETIC or HWLOC_XMLFILE describe another machine");
    else
        snprintf(pinning->trouble, sizeof pinning->trouble,
                 "not pinned: CPUs of their own that the tasks need: %llu; those that this process "
                 "may use: %u, and not taken: %u",
                 (unsigned long long)total, cpus_count(&layout->allowed), cpus_count(&free));
}

static void remember_owners(struct pinning *pinning, const struct plan *plan) {
    pinning->own = calloc(plan->n_tasks, sizeof *pinning->own);
    if (!pinning->own)
        abort();
    for (size_t i = 0; i < pinning->n_pins; i++)
        pinning->own[pinning->pins[i].rank] = &pinning->pins[i].cpus;
}

/* What is left for those that are not pinned; all, rather than nothing. */
static void share(struct pinning *pinning, const struct cpus *taken) {
    pinning->shared = pinning->allowed;
    cpus_remove(&pinning->shared, taken);
    for (size_t i = 0; i < pinning->n_pins; i++)
        cpus_remove(&pinning->shared, &pinning->pins[i].cpus);
    if (cpus_count(&pinning->shared) == 0)
        pinning->shared = pinning->allowed;
}

static struct cpus taken_by(const struct hold *holds, size_t n_holds) {
    struct cpus taken = { 0 };

    for (size_t i = 0; i < n_holds; i++)
        cpus_join(&taken, &holds[i].cpus);
    return taken;
}

void pinning_choose(struct pinning *out, const struct plan *plan, const struct demand *demand,
                    const struct layout *layout, const struct hold *holds, size_t n_holds) {
    const struct cpus taken = taken_by(holds, n_holds);

    *out = (struct pinning){ .n_pins = gather(plan, demand, NULL), .allowed = layout->allowed };
    if (out->n_pins > 0) {
        out->pins = calloc(out->n_pins, sizeof *out->pins);
        if (!out->pins)
            abort();
        gather(plan, demand, out->pins);
        if (!layout->is_this_machine || !pin_gang(layout, &taken, out->pins, out->n_pins)) {
            explain(out, layout, &taken);
            out->n_pins = 0;
        }
    }
    if (!layout->is_this_machine) {
        out->shared = out->allowed;
        return;
    }
    if (out->n_pins > 0)
        remember_owners(out, plan);
    share(out, &taken);
}

bool pinning_follow(struct pinning *pinning, const struct hold *holds, size_t n_holds,
                    struct cpus *before) {
    const struct cpus taken = taken_by(holds, n_holds);

    *before = pinning->shared;
    share(pinning, &taken);
    return !cpus_are_equal(before, &pinning->shared);
}

void pinning_release(struct pinning *pinning) {
    free(pinning->pins);
    free(pinning->own);
    *pinning = (struct pinning){ 0 };
}

const struct cpus *pinning_of(const struct pinning *pinning, uint32_t rank) {
    return pinning->own ? pinning->own[rank] : NULL;
}

const struct cpus *pinning_place(const struct pinning *pinning, uint32_t rank) {
    if (pinning_of(pinning, rank))
        return pinning_of(pinning, rank);
    return cpus_are_equal(&pinning->shared, &pinning->allowed) ? NULL : &pinning->shared;
}
