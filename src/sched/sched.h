/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: first come, first served, with a protected head. Pure: no clock, no I/O;
 * the same situation gives the same decision in every process, and the function that places a
 * run is the one that explains why it waits and what would change that.
 *
 * Laws (tests/unit/test_sched.c holds random workloads to them):
 *   1. Nothing is given twice, and no more than there is.
 *   2. A gang is placed whole or not at all.
 *   3. Nobody starts before one that stands further ahead and waits.
 *   4. What an explanation names is what blocks: without it the gang starts.
 *   5. What is told to change lets the file start (remedy.h).
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "sched/cluster.h"

struct waiting {
    uint64_t run;
    struct demand demand;
};

/* All that a decision depends on. */
struct situation {
    const struct machine *machines;
    uint32_t n_machines;
    const struct hold *holds;
    size_t n_holds;
    const struct waiting *queue; /* in order */
    size_t n_queue;
};

enum fit {
    FIT_NOW,
    FIT_LATER, /* it waits for what others hold, or for those ahead */
    FIT_NEVER, /* not even if everything were free */
};

struct decision {
    enum fit fit;
    /* Of the gang, and of all machines: what it needs, what was free when its turn came (those
     * ahead that start now have taken theirs), what there is. */
    milli needed[RESOURCE_COUNT], free[RESOURCE_COUNT], capacity[RESOURCE_COUNT];
    milli promised[RESOURCE_COUNT]; /* what those ahead that start now take */
    bool is_short[RESOURCE_COUNT];  /* needed is more than free; with FIT_NEVER: than there is */
    size_t n_ahead;                 /* those ahead that wait too */
    uint64_t head; /* the first of them: it may not be overtaken; with n_ahead > 0 */
    /* With FIT_LATER: whether a task of it finds no room now, and which is the first. Else it only
     * waits for those ahead. */
    bool is_blocked;
    struct blocked blocked;
};

/* Decides about queue[i]. With FIT_NOW one spot a task is written, in the order of its demand's
 * ranks; `spots` may be NULL. */
void sched_decide(const struct situation *situation, size_t i, struct decision *out,
                  struct spot *spots);

/* Whether queue[i] would start now if a run gave back all that it holds. */
bool sched_starts_without(const struct situation *situation, size_t i, uint64_t run);

#endif
