/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process does between its making and the program that it executes.
 *
 * It lives in its parent's memory until then, and the parent does not wait: both run at once. So
 * it calls the kernel by itself and nothing of libc, whose errno (and whatever else is the
 * thread's) is the parent's; it allocates nothing, writes only where the parent reads later, and
 * stands on a stack of its own.
 */
#ifndef BACKEND_LOCAL_BIRTH_H
#define BACKEND_LOCAL_BIRTH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "backend/local/cgroup.h"
#include "model/cpus.h"

enum { BIRTH_STACK = 16 * 1024 };

/* Whether the parent goes on meanwhile. */
enum birth_manner {
    BIRTH_WAITED_FOR, /* it stands still until the birth is over */
    BIRTH_BESIDE,     /* it goes on: only where end_was_told of one that was waited for */
};

struct birth {
    /* What it is given; nothing of it changes before the birth is over. */
    const char *path;
    char *const *argv, *const *envp;
    const char *directory;   /* NULL: where the parent is */
    const struct cpus *cpus; /* NULL: wherever the parent may run */
    struct cgroup_entry entry;
    pid_t parent;
    int input, output;           /* what become its standard streams, both below `past` */
    unsigned past;               /* descriptors from here on are not for it */
    bool shares_files;           /* it leaves the parent's table of descriptors by itself */
    const struct rlimit *nofile; /* NULL: it keeps the parent's */
    uint64_t ignored;            /* signals that the parent ignores; bit 0 is signal 1 */

    /* What it tells. */
    volatile int errnum; /* 0: it has executed its program */
    const char *volatile step;
    volatile bool is_astray; /* not on the CPUs that it was to run on */

    /* Of birth.c. */
    int32_t going_on;  /* the kernel clears it when the memory is left, and wakes who waits */
    bool end_was_told; /* it did so for one that was waited for: here, it can be relied on */
    bool is_inside, handlers_cleared;
};

/* Makes the process. All signals are blocked by the caller: no handler of his may run in it.
 * `stack` is the low end of BIRTH_STACK bytes. Returns its id, or -1 with errno set. */
pid_t birth_begin(struct birth *birth, enum birth_manner manner, char *stack, int *pidfd);

/* Returns when the process has left the parent's memory: what it tells is told then. */
void birth_await(struct birth *birth);

#endif
