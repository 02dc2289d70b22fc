/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which CPUs the pinned tasks of a gang get. Pure, as all of sched.
 *
 * Pinning never decides whether a gang starts: amounts do that (cluster.h), and a gang whose
 * tasks cannot have CPUs of their own runs without.
 *
 * Laws (tests/unit/test_pin.c):
 *   1. No CPU is given twice, none that is taken, none that is not allowed.
 *   2. All tasks get exactly as many as they ask for, or none gets any.
 *   3. A gang that fits on one NUMA node is on one; else on one package if it fits there; the
 *      same holds for each task within what its gang was given.
 *   4. On a node whole cores are taken first, as many as go into the number; what is left over
 *      comes from the core with the most free threads, so that a single thread has a core to
 *      itself for as long as there are enough.
 * Of several nodes that would do, the fullest is taken: large gaps stay for large gangs.
 */
#ifndef SCHED_PIN_H
#define SCHED_PIN_H

#include <stddef.h>

#include "model/layout.h"

struct pin {
    uint32_t rank, n;
    struct cpus cpus; /* what it was given */
};

/* The pins come back with the largest first, whether or not they could be given. */
bool pin_gang(const struct layout *layout, const struct cpus *taken, struct pin *pins, size_t n);

#endif
