/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as one attempt after the other. supervise.h knows the life of one attempt, again.h
 * whether another follows; here is what lies between two of them.
 *
 *   began ─► run_start ... RUN_OVER ─► ended ─┬─► over
 *     ▲                                       └─► again ── the delay ──┐
 *     └────────────────────────────────────────────────────────────────┘
 *
 * Of the attempt before nothing is left when the next one begins: its tasks are gone, its
 * rendezvous and its control groups too. Its ports stay leased until the next has its own, so
 * no attempt gets a port of the one before it. Outputs and reservations are the run's.
 */
#ifndef SUPERVISE_ATTEMPTS_H
#define SUPERVISE_ATTEMPTS_H

#include "supervise/again.h"
#include "supervise/supervise.h"

struct attempts;

/* What follows an attempt that failed. */
struct next_attempt {
    enum again manner;   /* not AGAIN_NO */
    uint32_t number;     /* of the attempt that comes */
    uint32_t n_restarts; /* counted, with the one that comes */
    uint32_t delay_ms;
};

/* All slots are called from the event loop; none may free the attempts. */
struct attempts_observer {
    struct run_observer run; /* of the attempt that goes on; RUN_OVER is not told */
    /* Before anything of the attempt exists. */
    void (*began)(void *context, uint32_t attempt);
    /* Of every attempt, the last one too, once nothing of it is left. `listeners` is how many of
     * its ports somebody listens on. */
    void (*ended)(void *context, uint32_t attempt, const struct run_status *status,
                  size_t listeners);
    void (*again)(void *context, const struct run_status *status, const struct next_attempt *next);
    /* Once, when nothing follows. `status` is of the last attempt; NULL where the end came
     * between two of them: it was stopped, or `trouble` says why the next could not begin. */
    void (*over)(void *context, const struct run_status *status, const char *trouble);
    void *context;
};

/* Starts the attempt that the options name, the first one unless the run is taken over; `logs` is
 * filled in here, and `past` is of that attempt alone. All that is pointed to outlives the
 * attempts. */
MUST_CHECK int attempts_start(const struct plan *plan, const struct run_options *options,
                              const struct again_terms *terms, struct event_base *base,
                              const struct attempts_observer *observer, struct attempts **out,
                              struct error *err);

/* Asks for the end: no attempt follows. Between two of them that is the end. A second call may
 * be more severe. */
void attempts_stop(struct attempts *attempts, enum stop_manner manner);

/* Before `over` it leaves the tasks to their fate: they die with this process. Takes NULL. */
void attempts_free(struct attempts *attempts);

#endif
