/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches what a task in a pod leaves: asks its shim (docs/shim.md), through the API server, for a
 * stream of frames, and puts log, spool and outputs where they belong on this machine.
 *
 *   connecting ─► open ─► ENDED ─► DONE ─► unless it is held, POST /end ─► over: all is here
 *     ▲ │ ▲         │ cut, or the disk is full: again, from the offsets of what is here
 *     │ │ └─────────┘
 *     │ └─► away: refused before it was ever open; tried again every minute
 *     └───────┘
 *
 * A shim that was reached once is asked on whatever is answered: a token has expired, a server is
 * being replaced, a portal stands before it. One that never was may be out of reach for good: the
 * log has to come by another way meanwhile.
 *
 * From time to time the shim is told how much is on the disk here, so that it can give it up.
 * `over` comes once. Until then a pull goes on asking, for as long as the pod is there.
 */
#ifndef BACKEND_KUBERNETES_PULL_H
#define BACKEND_KUBERNETES_PULL_H

#include "backend/kubernetes/api.h"
#include "backend/kubernetes/gather.h"
#include "backend/kubernetes/shim_end.h"

enum pull_outcome {
    PULL_ALL,         /* all is here, and the shim has let go of it */
    PULL_CUT,         /* the pod is over, and not all that its task left is here */
    PULL_UNREACHABLE, /* there is no way to the shim, or was none; why says what is in it */
};

struct pull_observer {
    /* Bytes of the log; `at` is how much of it there is by now. */
    void (*output)(void *context, const char *bytes, size_t n, uint64_t at);
    /* The task runs: it waits for nobody any more. Once. */
    void (*started)(void *context);
    /* The task has ended; its log and spool are here, its outputs follow. Once. */
    void (*ended)(void *context, const struct shim_end *end);
    void (*over)(void *context, enum pull_outcome outcome, const char *why);
    /* What comes cannot be kept at present; told once. */
    void (*trouble)(void *context, const char *sentence);
    /* It is away, and is back: the log comes by another way in between. At most once each. */
    void (*away)(void *context, const char *why);
    void (*back)(void *context);
    /* How much of the log came by then. */
    uint64_t (*log_at)(void *context);
    /* A shim that was reached is refused at present: it is asked on. Told once. */
    void (*refused)(void *context, const char *why);
    void *context;
};

struct pull_given {
    const char *namespace, *pod, *key;
    const char *task, *spool, *logs; /* as of mirror_new */
    struct gather *gather;           /* NULL: the outputs are not fetched. Outlives the pull */
    uint32_t rank;
    uint64_t log_at;  /* how much of the log is here */
    bool was_reached; /* by a process before this one */
    bool is_held;     /* its shim stays until pull_let_go, though all is here: others look for it */
};

struct pull;

/* Copies what it is given. */
struct pull *pull_new(struct api *api, const struct pull_given *given,
                      const struct pull_observer *observer);

/* The container has ended, or its pod is gone: what does not come now will not come. */
void pull_pod_over(struct pull *pull);

/* We slept: a stream that is open may be dead, and waits are over. */
void pull_wake(struct pull *pull);

/* Nobody looks for its shim any more. */
void pull_let_go(struct pull *pull);

/* Whether its task has said that it runs. */
bool pull_has_started(const struct pull *pull);

/* How much of the log is here, and how much of it the pod could not keep. */
uint64_t pull_log_at(const struct pull *pull);
uint64_t pull_log_lost(const struct pull *pull);
/* How much of it the shim knows to be here. */
uint64_t pull_log_acked(const struct pull *pull);

/* Whether all is here, also where the shim has not heard of it yet; how many outputs are not, since
 * the pod could not read them. */
bool pull_has_all(const struct pull *pull);
uint64_t pull_unread(const struct pull *pull);

/* Takes NULL; may be called from the observer. */
void pull_free(struct pull *pull);

#endif
