/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts processes the cheap way: the child borrows the parent's memory until it
 * executes its program (CLONE_VM | CLONE_VFORK), so that the cost does not grow with
 * the parent, and it comes with a pidfd.
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

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "backend/backend.h"
#include "backend/local/cgroup.h"
#include "backend/local/program.h"

struct spawner {
    char *stack; /* the child's, with a guard page below; reused, as the parent waits for exec */
    int null_fd;
    int slot_fd; /* where the writing end of a child's pipe is put: a low number, see spawn.c */
    bool shares_files;          /* a child leaves this process's table of descriptors by itself */
    sigset_t ignored;           /* signals that are ignored here and must not be in a child */
    struct rlimit nofile;       /* what a child gets */
    bool has_clone3;            /* until the kernel or a filter refuses it */
    struct program_cache cache; /* where the last command was found: tasks share it mostly */
};

struct spawned {
    pid_t pid;
    int pidfd;
    int output;     /* the reading end of the task's pipe, non-blocking */
    bool is_astray; /* the kernel refused the CPUs that it was to run on: it runs on any */
};

/* Raises this process's own limit of open files to the hard one: children get back what
 * the user had. */
MUST_CHECK int spawner_init(struct spawner *spawner, struct error *err);
void spawner_release(struct spawner *spawner); /* restores the limit; takes a zeroed struct */

/* The process is in its control groups before it executes anything.
 * On failure *errnum is what failed as errno tells it (ENOENT: no such program or
 * interpreter, EACCES and ENOEXEC: it cannot be executed), and err is a sentence with the
 * way out. It does not name the task. */
MUST_CHECK int spawner_start(struct spawner *spawner, const struct task_start *start,
                             const struct cgroup_entry *entry, struct spawned *out, int *errnum,
                             struct error *err);

#endif
