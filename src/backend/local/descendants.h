/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The living processes below this one or another, found by reading /proc.
 *
 * A scan is a picture that is old at once: forks that happen meanwhile may be missed, so
 * that who wants all of them gone scans again until none is found. A signal is sent
 * through a pidfd after looking whether it is still the process that was seen: a reused
 * pid is never hit.
 */
#ifndef BACKEND_LOCAL_DESCENDANTS_H
#define BACKEND_LOCAL_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct process {
    pid_t pid, parent, group;
    unsigned long long born; /* in clock ticks since boot: with the pid, one process */
    uint64_t ticks;          /* processor time, with that of children which it has reaped */
    int64_t pages;           /* resident */
    bool is_zombie;
    bool is_stopped; /* by a signal (SIGSTOP and the like) */
    bool is_ours;    /* a descendant */
};

struct processes {
    VEC(struct process) list;
};

/* Fills the list with the descendants of this process, without the subtrees of those in
 * `except` (which may be NULL). Zombies are included. */
void descendants_scan(struct processes *found, const struct processes *except);
/* The same for the descendants of another process. */
void descendants_of(pid_t root, struct processes *found, const struct processes *except);
/* False when there is no such process. */
bool process_read(pid_t pid, struct process *out);
void processes_release(struct processes *processes);

/* Whether this process may signal another one. Usually the kernel decides that. But while root acts
 * with the rights of a run's owner (store/rights.h) its real user is still root, and the kernel
 * lets it signal root's processes too: then only the processes of the owner count. The caller holds
 * a pidfd, so that the number cannot become that of another process. */
bool process_is_within_rights(pid_t pid);

/* False when the process is gone, or not within the rights of this one. */
bool process_signal(const struct process *process, int number);

#endif
