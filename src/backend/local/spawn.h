/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts processes the cheap way: the child borrows the parent's memory until it
 * executes its program (birth.h), so that the cost does not grow with the parent, and it
 * comes with a pidfd. Several are born at once: a parent that waits for each would leave a
 * processor idle whenever the kernel puts the child behind something else on another.
 *
 * A child leads a process group of its own (in the supervisor's session, which has no terminal: a
 * session for each task would be a scheduling group for each, which costs more than a fork), has
 * default signal dispositions and an empty mask, reads from /dev/null, writes both standard outputs
 * into one pipe, inherits no other descriptor, and is killed when the thread that started it dies.
 *
 * One spawner serves one thread. It is made right before a gang is started, because it
 * notes which signals are ignored at that time.
 */
#ifndef BACKEND_LOCAL_SPAWN_H
#define BACKEND_LOCAL_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "backend/backend.h"
#include "backend/local/birth.h"
#include "backend/local/cgroup.h"
#include "backend/local/program.h"
#include "base/arena.h"

enum { SPAWNS_AT_ONCE = 16 };

struct spawned {
    pid_t pid;
    int pidfd;
    int output;     /* the reading end of the task's pipe, non-blocking */
    bool is_astray; /* the kernel refused the CPUs that it was to run on: it runs on any */
};

/* Where one is born. */
struct berth {
    struct birth birth;
    char *stack;       /* with a guard page below */
    int slot_fd;       /* where the writing end of its pipe is put: a low number, see birth.c */
    struct arena copy; /* of what it is started with */
    bool is_taken;
    struct spawned born;
};

struct spawner {
    uint32_t n_tasks;
    struct berth berths[SPAWNS_AT_ONCE];
    int n_berths; /* no more than there are tasks */
    char *stacks;
    int null_fd;
    unsigned past_slots;        /* the first number that is none of ours */
    bool shares_files;          /* a child leaves this process's table of descriptors by itself */
    bool overlaps;              /* this kernel can tell when one that goes on beside us is born */
    uint64_t ignored;           /* signals that are ignored here and must not be in a child */
    struct rlimit nofile;       /* what a child gets */
    struct program_cache cache; /* where the last command was found: tasks share it mostly */
};

/* For n_tasks births, more than none. Raises this process's own limit of open files to the hard
 * one: children get back what the user had. */
MUST_CHECK int spawner_init(struct spawner *spawner, uint32_t n_tasks, struct error *err);
void spawner_release(struct spawner *spawner); /* restores the limit; takes a zeroed struct */

/* Begins a birth, and returns its number, which spawner_settle has to be asked for: at most
 * SPAWNS_AT_ONCE may be begun and not settled. The first of a spawner is over when it returns, as
 * it shows what the kernel can do. The entry is released when the process is in its control
 * groups, which is before it executes anything; also on failure.
 * On failure (-1) *errnum is what failed as errno tells it (ENOENT: no such program or
 * interpreter, EACCES and ENOEXEC: it cannot be executed), and err is a sentence with the
 * way out. It does not name the task. */
MUST_CHECK int spawner_begin(struct spawner *spawner, const struct task_start *start,
                             struct cgroup_entry *entry, int *errnum, struct error *err);

/* Waits until the program is executed, or was not: that fails as spawner_begin does. */
MUST_CHECK int spawner_settle(struct spawner *spawner, int number, struct spawned *out, int *errnum,
                              struct error *err);

#endif
