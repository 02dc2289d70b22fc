/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes what a shim sends (docs/shim.md): bytes in any pieces become frames, and frames log, spool
 * and outputs of one task. It knows no network, and is ready for any bytes: what no shim sends is
 * INVALID, and the stream is of no more use.
 */
#ifndef BACKEND_KUBERNETES_INTAKE_H
#define BACKEND_KUBERNETES_INTAKE_H

#include "backend/kubernetes/gather.h"
#include "backend/kubernetes/mirror.h"
#include "backend/kubernetes/shim_end.h"

struct intake_observer {
    /* Bytes of the log; `at` is how much of it there is by now. */
    void (*output)(void *context, const char *bytes, size_t n, uint64_t at);
    /* The task runs: it waits for nobody any more. Once, over all streams. */
    void (*started)(void *context);
    /* The task has ended, and its log and spool are here. Once, over all streams. */
    void (*ended)(void *context, const struct shim_end *end);
    /* All that it left is here, on the disk, but for so many outputs that the pod could not read.
     * Behind `ended`, of each stream that comes so far. */
    void (*done)(void *context, uint64_t n_unread);
    void *context;
};

struct intake_given {
    const char *task, *spool, *logs; /* as of mirror_new */
    struct gather *gather;           /* NULL: the outputs are left out. Outlives the intake */
    uint32_t rank;
    uint64_t log_at; /* how much of the log is here */
};

struct intake {
    struct intake_observer observer;
    struct mirror *mirror;
    struct gather *gather;
    uint32_t rank;
    struct buf frames; /* what came and is no whole frame yet */
    uint64_t log_at;
    uint64_t log_lost; /* that the pod could not keep */
    bool has_started, has_ended;
    bool is_stopped; /* what comes is passed over: an observer may say so in the midst of it */
};

void intake_init(struct intake *intake, const struct intake_given *given,
                 const struct intake_observer *observer);
void intake_release(struct intake *intake);

/* A stream begins. */
void intake_begin(struct intake *intake);

/* Fails with INVALID for what no shim sends, else because it cannot be kept at present. Either way
 * the next stream goes on with what is here. */
MUST_CHECK int intake_feed(struct intake *intake, const char *bytes, size_t n, struct error *err);

#endif
