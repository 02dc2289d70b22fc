/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves living processes to other CPUs. Only threads that are on exactly the CPUs that they were
 * given are moved: a program that chose some by itself keeps them, and so do pinned tasks, whose
 * CPUs are others.
 */
#ifndef BACKEND_LOCAL_AFFINITY_H
#define BACKEND_LOCAL_AFFINITY_H

#include "model/cpus.h"

/* Of all that descends from this process. A thread that is made meanwhile may be missed, so it
 * looks again until it finds none, a few times. Returns how many it has moved. */
uint32_t affinity_move(const struct cpus *from, const struct cpus *to);

#endif
