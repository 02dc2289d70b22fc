/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would let a gang that waits, or can never fit, start now: the smallest changes to its file,
 * each verified by the function that places. Pure, as all of sched.
 *
 * Smallest is what gives up the least of the resource that the first task without room lacks. On
 * one machine no smaller change of the same kind would do (tests/unit/test_sched.c changes files
 * as it is told here, and holds them to that).
 */
#ifndef SCHED_REMEDY_H
#define SCHED_REMEDY_H

#include "sched/sched.h"

enum remedy_kind {
    REMEDY_FEWER, /* fewer tasks of a role */
    REMEDY_LESS,  /* less of a resource for each task of a role */
};

struct remedy {
    enum remedy_kind kind;
    enum role role;
    uint32_t n, n_before;      /* REMEDY_FEWER: how many tasks; at least 1 */
    enum resource resource;    /* REMEDY_LESS: at most `amount` of it for each, and not 0; */
    milli amount, most_before; /* now one asks for so much */
    milli given_up;            /* of the resource that is lacking, by the whole gang */
};

enum { REMEDIES_MOST = 3 };

/* The remedies for queue[i], which is the plan under these terms; the smallest first.
 * Returns how many there are: none where it is those ahead that it waits for. */
size_t sched_remedies(const struct situation *situation, size_t i, const struct plan *plan,
                      const struct demand_terms *terms, struct remedy out[static REMEDIES_MOST]);

/* Whether queue[i] would start now if it were the plan under these terms. */
bool sched_starts_with(const struct situation *situation, size_t i, const struct plan *plan,
                       const struct demand_terms *terms);

#endif
