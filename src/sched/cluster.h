/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machines with what is free of each, and gangs placed on them. Pure.
 *
 * A gang is placed whole or not at all. Its groups are placed in their order, each on the
 * first machines that take a task of it, as many as fit. On one machine that is exact; on
 * several it is first-fit decreasing, which may miss a packing that an exhaustive search
 * would find, and never finds one that is none.
 *
 * The free amounts are the leaves of a tree whose inner nodes hold the largest of each
 * resource below them, so the first machine that fits is found without looking at those
 * that do not: placing a task costs the logarithm of the number of machines.
 */
#ifndef SCHED_CLUSTER_H
#define SCHED_CLUSTER_H

#include "model/demand.h"

/* Where a task goes, and its GPUs there. */
struct spot {
    uint32_t machine;
    gpu_set gpus;
};

struct cluster {
    uint32_t n, n_leaves; /* machines; a power of two that is not less */
    struct level {
        milli free[RESOURCE_COUNT];
    } * tree;      /* the root is 1, the children of i are 2 * i and 2 * i + 1 */
    gpu_set *gpus; /* free ones, by machine */
};

void cluster_init(struct cluster *cluster, const struct machine *machines, uint32_t n);
void cluster_release(struct cluster *cluster);

/* Takes what is held. More may be held than there is, where a machine has shrunk: nothing is
 * free then. */
void cluster_take(struct cluster *cluster, uint32_t machine, const milli amount[RESOURCE_COUNT],
                  gpu_set gpus);

/* Places all tasks, writing one spot for each in the order of demand->ranks, and takes what they
 * ask for; or changes nothing and returns false. */
bool cluster_place(struct cluster *cluster, const struct demand *demand, struct spot *spots);
/* Where placing stops. */
struct blocked {
    uint32_t at;            /* the first task, in the order of demand->ranks, that finds no room */
    enum resource resource; /* of which no machine has enough left for it; RESOURCE_COUNT: of each
                             * some machine has, but none of all */
    milli needed, left;     /* of that: for the task; on the machine that has the most */
};

/* What keeps a demand from being placed now; false: nothing does. Changes nothing. */
bool cluster_find_blocked(struct cluster *cluster, const struct demand *demand, struct spot *spots,
                          struct blocked *out);

/* What is free on all machines together; not less than 0. */
milli cluster_free(const struct cluster *cluster, enum resource resource);

#endif
