/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine has for tasks: the cores that we may run on, less where a cgroup gives
 * fewer; the memory, less where a cgroup gives less; the GPUs. Where CUDA_VISIBLE_DEVICES of
 * the environment names GPUs, by number or by uuid, only those are ours to give.
 */
#ifndef BACKEND_LOCAL_INVENTORY_H
#define BACKEND_LOCAL_INVENTORY_H

#include "backend/local/nvml.h"
#include "model/demand.h"

/* Asking the driver takes a moment, and most runs need no GPU. */
enum inventory_depth { INVENTORY_WITHOUT_GPUS, INVENTORY_WHOLE };

void inventory_read(enum inventory_depth depth, struct machine *out, struct gpus *gpus);

/* The CPUs that this process and what it starts may use together, in whole ones: at least 1. */
uint32_t inventory_cpus(void);

/* What is used now, by whomever. */
struct machine_use {
    double load;         /* the average of the last minute; negative: not known */
    uint64_t memory_mib; /* of what inventory_read calls the memory: the machine's, or a cgroup's */
};
void inventory_use(struct machine_use *out);

#endif
