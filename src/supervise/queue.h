/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run's way through the queue of this machine: it enters, waits for its turn, reserves, and
 * gives back. Every run looks for itself: whoever sees a change asks sched in a transaction of
 * the ledger and writes down its own placement. Nobody rules over the others, so nobody can be
 * missing.
 *
 *   queue_enter ─► queue_new: looks ─┬─► placed  ...  queue_free gives back
 *                          ▲         ├─► waits ── a change, or half a second ──┐
 *                          └─────────┼─────────────────────────────────────────┘
 *                                    └─► refused: it never fits, the time is over
 *
 * A ledger that fails is waited for as well: it says so, and keeps its place.
 *
 * While it runs, tasks of its that are not pinned are kept off the CPUs to which others are, as
 * those come and go.
 *
 * A run that reserves nothing never comes here.
 */
#ifndef SUPERVISE_QUEUE_H
#define SUPERVISE_QUEUE_H

#include "backend/local/inventory.h"
#include "sched/sched.h"
#include "store/ledger.h"
#include "supervise/pinning.h"

struct event_base;
struct queue;

enum { QUEUE_NO_TIMEOUT = -1 };

struct queue_options {
    const char *home;
    const struct rundir *rundir;
    const struct plan *plan;
    const struct demand *demand; /* with ranks; not empty */
    int64_t timeout_ms;          /* for its turn to come, or QUEUE_NO_TIMEOUT */
};

/* What a run was given; lives as long as its queue, which changes where tasks go that are not
 * pinned. */
struct placement {
    const gpu_set *gpus; /* by rank; NULL: nobody asks for any */
    const struct pinning *pinning;
};

/* Called from the event loop; the queue may not be freed inside. `placed` and `refused` are the
 * end of waiting and come once, one of them. */
struct queue_observer {
    void (*placed)(void *context, const struct placement *placement);
    void (*waits)(void *context, const char *sentence); /* if it has to; seldom twice */
    void (*refused)(void *context, const char *sentence);
    /* Before `placed`, inside the transaction: what is written to the journal here is there before
     * the reservation holds. */
    void (*reserves)(void *context, const struct hold *holds, size_t n);
    void *context;
};

/* Before the supervisor exists, so that runs stand in the order in which they were started. The
 * caller owns the run. Waits for other writers, some seconds at most. */
MUST_CHECK int queue_enter(const char *home, const struct rundir *rundir,
                           const struct demand *demand, struct error *err);

/* Frees what a run without an owner holds, where the ledger can be written. */
void queue_forget(const struct rundir *rundir);

/* All that is pointed to outlives the queue. */
struct queue *queue_new(struct event_base *base, const struct queue_options *options,
                        const struct queue_observer *observer);
/* Stops waiting, or gives back what was reserved. */
void queue_free(struct queue *queue);

/* ---- for those who only look ---- */

/* The ledger without runs that are over; those that died while they held something are settled. */
MUST_CHECK int queue_look(const char *home, struct ledger_view *view, struct error *err);

/* How the CPUs lie, as far as a run needs to know it: cheap where nobody is to be pinned. */
void queue_read_layout(const struct plan *plan, const struct demand *demand, struct layout *out);

/* A view as a situation; both must outlive it. `extra` stands behind the others; NULL: nobody.
 * The queue lives in the view's arena. */
struct situation queue_situation(struct ledger_view *view, const struct machine *machine,
                                 const struct waiting *extra);

/* Whether anybody asks for GPUs: the machine has to be looked at for them too then. */
bool queue_wants_gpus(const struct ledger_view *view, const struct demand *demand);

#endif
