/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gang asks of machines, what is held of them, and what there is: the nouns of
 * scheduling. Amounts are thousandths, as in resources.h. Memory is an amount alone; GPUs are
 * also particular ones, as a set of indexes, and are given out whole; CPUs are particular ones
 * for tasks that are pinned (sched/pin.h), and an amount for all.
 *
 * Tasks that ask for the same form a group, so that a gang of 100,000 is a few rows.
 */
#ifndef MODEL_DEMAND_H
#define MODEL_DEMAND_H

#include "base/arena.h"
#include "model/cpus.h"
#include "model/plan.h"

enum { GPUS_MAX = 64, HOLD_OF_SEVERAL = -1 };

/* Bit i is the GPU with index i. */
typedef uint64_t gpu_set;

struct demand_group {
    milli amount[RESOURCE_COUNT]; /* of each task; not all 0 */
    uint32_t n;
};

/* Groups stand with the largest tasks first, which is how they pack best. */
struct demand {
    struct demand_group *groups;
    size_t n_groups;
    uint32_t n_tasks; /* of all groups; tasks that ask for nothing are not among them */
    uint32_t *ranks;  /* of the tasks, group by group; NULL where it was read from a text */
    milli total[RESOURCE_COUNT];
};

/* What of a plan is asked for. */
struct demand_terms {
    bool leaves_out[RESOURCE_COUNT]; /* as if no task asked for it */
    bool is_cut[ROLE_COUNT];         /* as if the role had fewer tasks ... */
    uint32_t n_role[ROLE_COUNT];     /* ... namely so many */
    /* As if no task of the role asked for more of the resource. */
    bool is_capped[ROLE_COUNT][RESOURCE_COUNT];
    milli most[ROLE_COUNT][RESOURCE_COUNT];
};

/* Requests, else limits; a part of a GPU counts as a whole one. Lives in the arena. */
void demand_of_plan(const struct plan *plan, const struct demand_terms *terms, struct arena *arena,
                    struct demand *out);

/* A demand as one line of text and back, without its ranks. */
enum { DEMAND_TEXT_MOST = 16 * 1024 * 1024 }; /* bytes of one that is kept */
MUST_CHECK int demand_write(const struct demand *demand, struct buf *out, struct error *err);
MUST_CHECK int demand_read(const char *text, struct arena *arena, struct demand *out,
                           struct error *err);

/* What a run holds of a machine: one row for each task that has GPUs or CPUs of its own, and one
 * (HOLD_OF_SEVERAL) for all of its others together. */
struct hold {
    uint64_t run;
    uint32_t machine;
    int64_t rank;
    milli amount[RESOURCE_COUNT];
    gpu_set gpus;
    struct cpus cpus; /* its own; none: it is not pinned */
    double since;     /* seconds since the epoch, for people */
};

/* What there is. amount[RESOURCE_GPU] is the number of `gpus`. */
struct machine {
    milli amount[RESOURCE_COUNT];
    gpu_set gpus;
};

/* "2 CPUs", "512 MiB of memory", "1 GPU". */
struct amount_text {
    char text[64];
};
struct amount_text amount_text(enum resource resource, milli amount);

#endif
