/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's command: started in a process group of its own, reaped with everything that it leaves
 * behind. Where the shim is not the first process of its PID namespace it becomes the reaper of
 * its descendants, so that nothing differs.
 *
 *   NONE ── task_start ──► STARTING ──► RUNNING ──► ENDED ── 1 s, SIGKILL ──► ALONE
 *                              └─ it cannot be executed ─►┘
 *
 * ENDED is the end of the command itself; ALONE comes when nothing of it is left, or when what is
 * left does not even die.
 */
#ifndef SHIM_TASK_H
#define SHIM_TASK_H

#include <sys/resource.h>
#include <sys/types.h>

#include "shim/loop.h"

enum task_phase { TASK_NONE, TASK_STARTING, TASK_RUNNING, TASK_ENDED, TASK_ALONE };

struct task {
    struct loop *loop;
    void (*changed)(struct task *task); /* another phase */
    enum task_phase phase;
    pid_t pid;
    int status; /* as wait gives it, once it has ended and `error` is 0 */
    int error;  /* errno of a command that could not be executed */

    struct rlimit nofile;   /* of the command: as it was given to us */
    struct loop_watch exec; /* tells that errno, or by its end that the command runs */
    struct loop_timer rest;
    int64_t ended_ms;
};

/* Makes this process the reaper of its descendants, where that can be, and lets it have as many
 * descriptors as it may: a connection for each task of a gang is one. */
void task_init(struct task *task, struct loop *loop, void (*changed)(struct task *task));

/* Starts the command, with its stdout and stderr into the descriptor, which stays the caller's.
 * Returns 0, or -1 and errno where no process could be made. */
int task_start(struct task *task, char **command, char **environment, int output);

/* To its whole process group; without effect when that is gone. */
void task_signal(struct task *task, int number);

/* To be called on SIGCHLD. */
void task_reap(struct task *task);

#endif
