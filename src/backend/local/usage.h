/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tasks use of this machine: each task's process and all below it, from one look at /proc.
 * Sums of what lives and of what it has reaped, so they grow as a task works; what a task has
 * detached counts for nobody.
 */
#ifndef BACKEND_LOCAL_USAGE_H
#define BACKEND_LOCAL_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct task_usage {
    bool is_known; /* false: it is not running */
    double cpu_seconds;
    uint64_t memory_bytes; /* resident; pages that processes share count for each of them */
    uint64_t read_bytes, written_bytes; /* through system calls, also from and to caches */
    uint32_t n_processes;
};

/* roots[i] is the process of task i, a child of this one; 0: it is not running. */
void usage_look(const pid_t *roots, uint32_t n, struct task_usage *out);

#endif
