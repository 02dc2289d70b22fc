/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster says of a gang at this moment, for a command that asks once and ends: its pods,
 * and whose turn it is. It changes nothing there.
 */
#ifndef BACKEND_KUBERNETES_INQUIRY_H
#define BACKEND_KUBERNETES_INQUIRY_H

#include "backend/kubernetes/lease.h"
#include "backend/kubernetes/pods.h"

enum { INQUIRY_MOST_MS = 8000 }; /* that the cluster has to answer, all in all */

struct inquiry {
    uint32_t n_pods;
    uint32_t n_gated;    /* of them: the scheduler may not look at them yet */
    char gate[80];       /* which the first of them waits at; "": none does */
    uint32_t n_unplaced; /* the scheduler finds no node, or has not looked */
    uint32_t n_placed;   /* they have a node, and do not run yet */
    uint32_t n_running, n_ended;
    char troubled[80]; /* the task of the pod that tells most of its trouble; "": none is in any */
    char trouble[400]; /* which */
    bool has_placer;   /* somebody else places its pods together: there are no turns */
    bool is_ours;      /* the turn is this gang's */
    struct lease turn; /* `is_known` false: it could not be read; `holder` "": nobody has it */
};

/* Waits for the answers. Fails where the pods cannot be listed. */
MUST_CHECK int pods_inquire(const struct pods_options *options, const char *uuid, uint32_t attempt,
                            struct inquiry *out, struct error *err);

#endif
