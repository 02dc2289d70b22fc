/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On which CPUs the tasks of a run go: those that are pinned on CPUs of their own, the others
 * where nobody is pinned.
 *
 * A pinned task is alone among pinned tasks, always: the choice is made in the transaction that
 * writes it to the ledger. The others keep off what is taken, also by runs that start later, and
 * come back when it is free again (queue.h); where nothing else is left they run anywhere. Since
 * amounts are reserved too, at least as many CPUs are left for them as they reserve together.
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
    const struct cpus **own;     /* by rank, into pins; NULL: nobody is pinned */
    struct cpus allowed, shared; /* what this process may use; what of it the others use */
    char trouble[256];           /* why tasks that should be are not pinned, or "" */
};

/* Whether a task that the demand counts is to be pinned: the layout has to be known then. */
bool pinning_is_wanted(const struct plan *plan, const struct demand *demand);

/* Chooses among what the holds leave. `layout` has at least the CPUs that are allowed; all of it
 * where pinning is wanted. To be released. */
void pinning_choose(struct pinning *out, const struct plan *plan, const struct demand *demand,
                    const struct layout *layout, const struct hold *holds, size_t n_holds);
void pinning_release(struct pinning *pinning);

/* Looks again at what others hold. Returns whether the CPUs for tasks that are not pinned have
 * changed; *before is what they were. */
bool pinning_follow(struct pinning *pinning, const struct hold *holds, size_t n_holds,
                    struct cpus *before);

/* The CPUs that are a task's own, or NULL. */
const struct cpus *pinning_of(const struct pinning *pinning, uint32_t rank);

/* Where a task is to run; NULL: wherever this process may. */
const struct cpus *pinning_place(const struct pinning *pinning, uint32_t rank);

#endif
