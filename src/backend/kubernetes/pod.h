/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a pod: where it stands, how its container ended, and why it waits. Pure: a node in, a
 * verdict and a sentence out. Anything may be missing or of a wrong type: nothing is assumed of
 * what a server sends.
 *
 *   WAITING -> SCHEDULED -> PULLING -> RUNNING -> ENDED
 *
 * A step may be skipped, none is taken back, and ENDED is reached from each: evicted, deleted, its
 * node lost.
 */
#ifndef BACKEND_KUBERNETES_POD_H
#define BACKEND_KUBERNETES_POD_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/kubernetes/shim_end.h"
#include "codec/node.h"

enum pod_phase {
    POD_WAITING,   /* no node yet */
    POD_SCHEDULED, /* it has a node; volumes, sandbox and init containers are prepared */
    POD_PULLING,   /* its container is about to be made: its image is fetched */
    POD_RUNNING,
    POD_ENDED,
    POD_PHASE_COUNT,
};

/* Why it does not get on. */
enum pod_trouble {
    POD_FINE,
    POD_GATED,         /* somebody's gate keeps the scheduler from it */
    POD_PUT_OFF,       /* it waits since another of its gang found no room */
    POD_UNSCHEDULABLE, /* the sentence has the scheduler's message */
    POD_IMAGE,         /* not pulled: missing, refused, misspelt */
    POD_CONFIG,        /* a secret, config map or key is missing, or it would be root */
    POD_START,         /* the container cannot be started: no such program, a bad mount */
    POD_INIT,          /* an init container fails */
    POD_TROUBLE_COUNT,
};

enum pod_end {
    POD_NOT_ENDED,
    POD_EXITED,    /* detail: the exit code */
    POD_SIGNALLED, /* detail: the signal */
    POD_OOM,       /* killed for its memory limit; detail as of EXITED (mostly 137) */
    POD_EVICTED,   /* the node ran short, or the pod was preempted or drained */
    POD_NODE_LOST,
    POD_DELETED,     /* somebody removed it before its container ended */
    POD_NOT_STARTED, /* refused by the node, or its container never started */
    POD_END_COUNT,
};

struct pod {
    enum pod_phase phase;
    enum pod_trouble trouble;
    enum pod_end end;
    int detail;
    /* Waiting longer does not help unless somebody mends it: a name that no image has, a program
     * that is not in the image. A pull that fails may still work later. */
    bool is_hopeless;
    bool is_gated;                /* at least one gate is closed, whatever its condition says */
    const char *gate;             /* whose: the first that is not ours, else ours; "": none is */
    bool is_being_deleted;        /* it may still run */
    enum pod_end if_gone;         /* how it ended, should it vanish or stay beyond deletion_us */
    char why_gone[240];           /* who takes it away, and why; "": nobody says so */
    int64_t deletion_us;          /* wall clock: when it should be gone; 0: it should not */
    int64_t deletion_grace_s;     /* what it was given for that */
    bool is_cut_off;              /* it runs, or did, on a node that does not answer any more */
    int64_t memory_limit;         /* bytes, of the container; 0: none is set */
    uint32_t restarts;            /* of the container */
    int64_t started_us, ended_us; /* wall clock of the node; 0: not known */
    const char *name, *uid, *version, *node; /* "" where it has none */
    bool has_message;                        /* its container ended with a message of a shim */
    struct shim_end message;
    char sentence[400]; /* trouble or end for people; "" where there is nothing to say */
};

/* `container` is looked at (NULL: the first). *out points into `object`. */
void pod_read(const struct node *object, const char *container, struct pod *out);

/* Whether its node cannot be waited for: it does not answer, or was given up by the cluster. */
bool pod_has_lost_its_node(const struct pod *pod);

/* Whether one trouble says more of what a gang waits for than another, or than none (POD_FINE): who
 * was put off knows less of why than the pod for whose sake it was. */
bool pod_tells_more(enum pod_trouble trouble, enum pod_trouble than);

/* What is known when the pod's object is gone while `last` was the last that was seen of it: its
 * end if it had one, else DELETED. */
void pod_vanished(struct pod *last);

#endif
