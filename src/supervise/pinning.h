/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which CPUs the tasks of a run go: those that are pinned on CPUs of their own, the others
 * where nobody is pinned.
 *
 * A pinned task is alone among pinned tasks, always: the choice is made in the transaction that
 * writes it to the ledger. Tasks that are not pinned keep off the CPUs that are taken when they
 * start; where nothing else is left they run anywhere. Since amounts are reserved too, there are
 * at least as many CPUs left for them as they reserve together. What starts later does not
 * change where they may run.
 *
 * A run that cannot have CPUs of its own does not wait for them: it runs without, and says so.
 */
#ifndef SUPERVISE_PINNING_H
#define SUPERVISE_PINNING_H

#include "model/demand.h"
#include "model/layout.h"
#include "sched/pin.h"

struct pinning {
    struct pin *pins; /* of the pinned tasks */
    size_t n_pins;
    struct cpus shared;          /* for the others */
    const struct cpus **by_rank; /* NULL, or a task's is NULL: anywhere */
    char trouble[256];           /* why tasks that should be are not pinned, or "" */
};

/* Whether a task that the demand counts is to be pinned: the layout has to be known then. */
bool pinning_is_wanted(const struct plan *plan, const struct demand *demand);

/* Chooses among what the holds leave. `layout` has at least the CPUs that are allowed; all of it
 * where pinning is wanted. To be released. */
void pinning_choose(struct pinning *out, const struct plan *plan, const struct demand *demand,
                    const struct layout *layout, const struct hold *holds, size_t n_holds);
void pinning_release(struct pinning *pinning);

/* The CPUs that are a task's own, or NULL. */
const struct cpus *pinning_of(const struct pinning *pinning, uint32_t rank);

#endif
