/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one attempt of a run in this process: ports, rendezvous, launch, watch, verdict,
 * end. It prints nothing and ends no event loop: an observer is told. attempts.h makes a run of
 * it, supervisor.h a process of that.
 *
 *   LAUNCHING ─► RUNNING ─┬─ verdict: succeeded ─► LINGERING ─┬─► OVER
 *                         └─ failed or stopped ──► STOPPING ──┘
 *
 * LINGERING: tasks that do not count (a parameter server) may finish by themselves for
 * linger_ms, and are then stopped. The first failure stops the gang at once; only one that
 * reads like the loss of a peer waits a moment for the peer, whose end is then the cause.
 */
#ifndef SUPERVISE_SUPERVISE_H
#define SUPERVISE_SUPERVISE_H

#include "backend/backend.h"
#include "backend/local/ports.h"
#include "model/demand.h"
#include "store/rundir.h"
#include "supervise/diagnosis.h"
#include "supervise/pinning.h"
#include "supervise/verdict.h"

struct event_base;

enum {
    RUN_GRACE_MS = 10 * 1000,
    RUN_LINGER_MS = 3 * 1000,
    RUN_PROCESSES_EACH = 8192, /* threads count: a trainer with many loaders has hundreds */
    RUN_DOUBT_MS = 400, /* how long a task that blames another waits for that one's own end */
};

enum run_phase {
    RUN_LAUNCHING,
    RUN_SUBMITTED, /* of a gang elsewhere: it goes on without us, not all of its tasks run yet */
    RUN_RUNNING,
    RUN_LINGERING,
    RUN_STOPPING,
    RUN_OVER,
};

/* What is known of one task. Times are monotonic, from the start of the run. */
struct task_state {
    enum task_fate fate;
    struct task_end end; /* once the fate is not RUNNING; the message lives as long as the run */
    bool was_started;
    uint64_t log_lost; /* bytes of output that could not be written to the log */
};

/* What is known of the attempt. */
struct run_status {
    const struct plan *plan;
    enum run_phase phase;
    struct verdict verdict;
    struct diagnosis why;           /* with VERDICT_FAILED: of the first failing task */
    const struct task_state *tasks; /* by rank */
    bool is_left;                   /* it is over, and some of it goes on elsewhere */
    const char *left; /* a sentence on what may be left of it that nobody could look for; or NULL */
};

/* All slots are called from the event loop; none may free the run. */
struct run_observer {
    void (*started)(void *context, uint32_t rank, int64_t id);
    void (*ended)(void *context, uint32_t rank, const struct task_state *task);
    void (*output)(void *context, uint32_t rank);        /* its log has grown */
    void (*phase)(void *context, enum run_phase phase);  /* also when the verdict falls */
    void (*notice)(void *context, const char *sentence); /* something to tell once */
    /* Of a gang elsewhere: what it waits for, or NULL when it does not any more. */
    void (*waits)(void *context, const char *sentence);
    void *context;
};

/* What a supervisor before this one saw of the attempt; the observer is not told again. */
struct run_past {
    const struct past_end {
        uint32_t rank;
        bool was_stopped; /* it ended after the gang was told to */
        struct task_end end;
    } * ends; /* in the order in which they came */
    size_t n_ends;
    bool was_stopping; /* the gang had been told to end */
};

struct run_options {
    const struct rundir *rundir;
    uint32_t attempt;              /* counts from 0; those before it were restarted */
    const char *logs;              /* the directory of its logs */
    int64_t log_origin_us;         /* of the run: tasklog_origin */
    const char *uuid;              /* 32 hexadecimal digits */
    const char *owner;             /* who runs it */
    const char *working_directory; /* absolute */
    char *const *environment;      /* the user's */
    const char *earlier_outputs;   /* as struct run_facts has it */
    uint32_t grace_ms, linger_ms;
    struct process_ceiling processes;
    uint64_t log_limit;  /* bytes that are kept of what a task writes */
    const gpu_set *gpus; /* granted, by rank; NULL: GPUs are left to the user's environment */
    const struct pinning *pinning;         /* NULL: every task runs wherever the user may */
    const struct backend_maker *elsewhere; /* NULL: the tasks are processes of this machine */
    const struct run_past *past; /* of an attempt elsewhere that is taken over; NULL: a new one */
};

struct run;

/* Starts to launch. All that is pointed to outlives the run. */
MUST_CHECK int run_start(const struct plan *plan, const struct run_options *options,
                         struct event_base *base, const struct run_observer *observer,
                         struct run **out, struct error *err);

/* Asks for the end. A second call may be more severe. */
void run_stop(struct run *run, enum stop_manner manner);

const struct run_status *run_status(const struct run *run);

/* How many of the run's ports somebody still listens on: 0 once it is OVER. */
size_t run_listeners(const struct run *run);

/* Takes the leases of an attempt that is OVER, to be given back by the caller. */
struct ports run_take_ports(struct run *run);

/* Before OVER it leaves the tasks to their fate: they die with this process. */
void run_free(struct run *run);

#endif
