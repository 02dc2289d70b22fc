/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tasks of a run log, and what they use of the machine, becomes series of the run while
 * it goes on (track/fold.h), and lines of its journal: params, tags, summaries and artifacts. So do
 * the scalars of event files in its outputs (track/events_follow.h).
 *
 * Nothing here can hurt a run. A disk that is full or a store that is damaged is told once, and
 * tried again; what was logged waits in the spool meanwhile. A run that logs nothing and is over
 * within seconds costs nothing: files are made when there is something to put into them.
 *
 * tracker_settle is for a run without a supervisor: one that was killed, or that a process made
 * for itself. Whoever looks at such a run folds what has been logged since.
 */
#ifndef SUPERVISE_TRACKER_H
#define SUPERVISE_TRACKER_H

#include "model/demand.h"
#include "model/plan.h"
#include "store/journal.h"
#include "store/record.h"
#include "store/rundir.h"

struct event_base;
struct tracker;

struct tracker_options {
    const struct rundir *rundir;
    const struct plan *plan;
    struct journal *journal;
    bool is_elsewhere; /* what the tasks log is a mirror, of which others bring the rest */
    void (*notice)(void *context, const char *sentence);
    void *context;
};

/* What is pointed to outlives the tracker. */
struct tracker *tracker_new(struct event_base *base, const struct tracker_options *options);
void tracker_free(struct tracker *tracker); /* takes NULL */

/* For what tasks use of the machine, and whose an event file is. An attempt is told before its
 * first task is started: event files that the first one finds are another run's. One that is taken
 * over has made them itself. */
enum tracker_begin { TRACKER_NEW, TRACKER_TAKEN_OVER };
void tracker_attempt(struct tracker *tracker, uint32_t attempt, enum tracker_begin begin);
void tracker_task_started(struct tracker *tracker, uint32_t rank, int64_t pid);
void tracker_task_ended(struct tracker *tracker, uint32_t rank);

/* By rank, as long as the tracker lives; NULL: none. */
void tracker_grant(struct tracker *tracker, const gpu_set *gpus);

/* Nothing of the gang is left: all that it has logged is folded when this returns, or stays in
 * the spool, with a notice. */
void tracker_gang_over(struct tracker *tracker);

/* Whether a task has logged an artifact. */
bool tracker_has_artifacts(const struct tracker *tracker);

/* The run is over: its series are made compact. */
void tracker_finish(struct tracker *tracker);

/* Folds what a run without a supervisor has logged. Nothing is done while somebody else does, for
 * a run that logs nothing, and where nothing can be written. */
void tracker_settle(const struct rundir *rundir);

/* How long a run went on that nobody told the end of, in seconds: to the last line of its journal,
 * or to the last point that it logged, which for a run that a process made for itself may be hours
 * later. */
double tracker_elapsed_s(const struct run_record *record);

#endif
