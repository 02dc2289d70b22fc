/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend makes the tasks of a gang exist somewhere: as processes here, as pods, as
 * Kubeflow jobs.
 *
 * The contract, for every backend:
 *   - Calls never block. They start work on the event loop; the outcome comes as an event.
 *   - launch and stop are idempotent in the attempt: asking twice is asking once.
 *   - Every launched task ends with exactly one `ended`, after the last of its `output`.
 *   - `gone` comes once, after the last `ended`, when nothing of the gang is left but what `left`
 *     has told.
 *   - A backend decides nothing: it does not stop a gang because a task failed.
 */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct event_base;
struct cpus;      /* model/cpus.h */
struct resources; /* model/resources.h */

/* What one task is started with. Owned by the describer, valid until its next call. */
struct task_start {
    const char *name;  /* "worker.2" */
    char *const *argv; /* argv[0] is looked up in the PATH of envp */
    char *const *envp;
    const char *directory;             /* where it starts */
    const struct resources *resources; /* NULL: nothing is asked, nothing is limited */
    const struct cpus *cpus;           /* where it runs; NULL: wherever the starter may */
};

/* Whose limit it is. */
enum limit_scope {
    LIMIT_OF_TASK, /* each may reach it by itself */
    LIMIT_OF_RUN,  /* all tasks that have limits share it */
    LIMIT_OUTSIDE, /* none of theirs: that of a group above them, or the end of the machine's */
};

/* How many processes and threads tasks that have limits may have at once. */
struct process_ceiling {
    enum limit_scope scope;
    uint32_t each; /* for every task; 0: no ceiling. A run gets as many times that as it has tasks,
                    * or less where the machine itself could not bear so many */
};

/* A limit that a task ran into before it ended. */
enum task_limit_kind {
    TASK_LIMIT_NONE,
    TASK_LIMIT_MEMORY,    /* a process of the task was killed for it; in bytes */
    TASK_LIMIT_PROCESSES, /* a process or thread was refused */
};

struct task_limit {
    enum task_limit_kind kind;
    enum limit_scope scope; /* of the run's: some task ran into it, this one or another */
    int64_t limit, peak;    /* 0: not known; peak is the task's own */
};

enum task_end_kind {
    TASK_EXITED,      /* detail: the exit code */
    TASK_SIGNALLED,   /* detail: the signal */
    TASK_NOT_STARTED, /* detail: errno, or 0; message says what failed */
    TASK_LOST,        /* message says what became of it: nobody knows how it would have ended */
};

struct task_end {
    enum task_end_kind kind;
    int detail;
    const char *message;     /* with TASK_NOT_STARTED and TASK_LOST */
    struct task_limit limit; /* of one that failed, where it is known */
};

/* What is left of a gang that is called gone. */
enum left_manner {
    LEFT_RUNNING, /* nobody could end it from here: no other attempt may begin beside it */
    LEFT_LOST,    /* cut off with its machine, which ends it as soon as it is back */
};

struct gang {
    uint32_t n_tasks;
    /* Fills in one task; called once for each, in rank order, while launching. */
    int (*describe)(void *context, uint32_t rank, struct task_start *start, struct error *err);
    /* The task exists; `id` is its process id where it has one here, else 0. */
    void (*started)(void *context, uint32_t rank, int64_t id);
    void (*output)(void *context, uint32_t rank, const char *bytes, size_t n);
    void (*ended)(void *context, uint32_t rank, const struct task_end *end);
    void (*gone)(void *context);
    void *context;
    /* Something that people should know, each at most once; NULL: nobody listens. */
    void (*notice)(void *context, const char *sentence);
    /* Of the run, unlike any other's: what is made outside is named after it. May be NULL where
     * no task has limits. */
    const char *id;
    struct process_ceiling processes;

    /* Of backends elsewhere; what is here needs none of them. */
    /* Somebody else runs the gang from here on, also when this process dies. */
    void (*submitted)(void *context);
    /* It cannot go on before what the sentence says is mended; NULL: that is over. */
    void (*waits)(void *context, const char *sentence);
    /* How much of a task's output a process before this one was told. */
    uint64_t (*delivered)(void *context, uint32_t rank);
    /* Something may be left, before `gone`; the sentence says what, and what removes it. */
    void (*left)(void *context, enum left_manner manner, const char *sentence);
};

enum stop_manner {
    STOP_GRACEFULLY, /* SIGTERM now, SIGKILL of what is left after the grace time */
    STOP_AT_ONCE,    /* SIGKILL */
};

struct backend;

struct backend_ops {
    const char *name;

    /* Starts all tasks. Fails only when none was started; a task that alone cannot be
     * started ends with TASK_NOT_STARTED. */
    MUST_CHECK int (*launch)(struct backend *backend, const struct gang *gang, struct error *err);

    /* Ends every task that still lives, and all they left behind. A second call may be
     * more severe than the first, never milder. */
    void (*stop)(struct backend *backend, enum stop_manner manner, uint32_t grace_ms);

    void (*free)(struct backend *backend);
};

/* The first member of every concrete backend. */
struct backend {
    const struct backend_ops *ops;
};

/* What is known of an attempt before anything of it exists. Borrowed, outlives the backend. */
struct attempt_facts {
    const char *run_id, *uuid, *owner;
    const char *logs;    /* its directory, where a backend may keep files of its own */
    const char *spool;   /* of the run, with a folder for each task: what they log elsewhere */
    const char *outputs; /* of the run */
    uint32_t number;     /* of the attempt, from 0 */
    uint32_t grace_ms;   /* what tasks get when they are stopped */
    bool was_submitted;  /* by a process before this one: it is to be found, never made again */
};

/* Makes the backend of an attempt that is not made of processes of this machine. */
struct backend_maker {
    const char *kind; /* "kubeflow", "native" */
    const char *cluster,
        *namespace; /* where its tasks are, for people and for whoever takes over */
    const char *image;
    const char *volume; /* that keeps the outputs beyond the tasks; NULL: none does */
    int (*make)(void *context, struct event_base *base, const struct attempt_facts *facts,
                struct backend **out, struct error *err);
    void *context;
};

#endif
