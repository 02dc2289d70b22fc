/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the supervisor share, and nobody else sees:
 *
 *   supervisor_start.c   in the process of the caller: makes the run, and leaves it to a keeper
 *   supervisor.c         in the supervisor's own process: from the run's turn to its end
 *   supervisor_lost.c    in whoever finds a run that has no supervisor any more
 */
#ifndef SUPERVISE_SUPERVISOR_STATE_H
#define SUPERVISE_SUPERVISOR_STATE_H

#include "model/uuid.h"
#include "store/journal.h"
#include "store/record.h"
#include "supervise/bell.h"
#include "supervise/code_watch.h"
#include "supervise/past.h"
#include "supervise/pinning.h"
#include "supervise/supervisor.h"

enum {
    /* Exit statuses of runs that end by no task's. */
    SUPERVISOR_FAILED = 125,
    SUPERVISOR_STOPPED = 130,
};

struct attempts;
struct event;
struct event_base;
struct placement;
struct queue;
struct run_guard;
struct tracker;

/* What the three processes of a run share at the start; each has its copy after the fork. */
struct supervisor {
    const struct plan *plan;
    const struct supervisor_options *options;
    struct rundir rundir;
    struct journal journal;
    int lock;
    int directory, public_lines; /* held (presence.h) by supervisor and keeper; -1: not */
    char uuid[UUID_TEXT];
    const char *owner, *working_directory;
    int64_t log_origin_us;

    struct event_base *base;
    struct attempts *attempts;         /* NULL before its turn came */
    struct queue *queue;               /* of a run that reserves something */
    const struct placement *placement; /* the queue's, once it is the run's turn */
    gpu_set *no_gpus;
    pid_t keeper;     /* the parent, as long as it lives */
    bool was_ordered; /* somebody has stopped the run by the keeper */
    bool lost_keeper; /* its death is what stops the run */
    const char *gone; /* a sentence, where the run's directory is; else NULL */
    char gone_text[480];
    bool is_over;           /* nothing of it is left to be stopped */
    bool has_ended;         /* its end was written */
    int n_revivals;         /* how often a supervisor was followed by another */
    bool takes_over;        /* the run was begun by a supervisor before this one */
    struct run_record seen; /* by those before */
    struct past past;
    struct event *gather_event;
    struct tracker *tracker;
    struct run_guard *guard;
    struct bell bell;
    struct code_watch code;
    const char *notice;     /* of who prepared it, or NULL */
    bool has_begun;         /* its journal is begun, and the ledger may know it */
    bool is_given_too_long; /* what the file gives is not in the journal */
};

/* All that a supervisor does; `context` is a struct supervisor. Returns 0 when the run is over, -1
 * where one before it began the run, and what that told cannot be read. */
int supervisor_supervise(void *context, pid_t keeper);

/* Of the journal: rings for whoever follows the run. */
void supervisor_journal_written(void *supervisor);

/* Writes the end of a run that cannot do so itself, once what is left of it has ended and nothing
 * is reserved for it: whoever reads the end may rely on both. `was_swept`: no process of it is
 * left, which the journal then states. */
void supervisor_write_lost_end(const struct rundir *rundir, const char *reason, bool was_swept);

#endif
