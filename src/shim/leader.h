/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch on the leading task's pod, by its shim: POST /gang, whose answer has a line every five
 * seconds for as long as that runs. A connection that breaks, or is silent for too long, is made
 * anew, with the name resolved again. shim/vigil.h says what follows from it.
 */
#ifndef SHIM_LEADER_H
#define SHIM_LEADER_H

#include "shim/lookup.h"
#include "shim/vigil.h"

struct leader {
    struct loop *loop;
    const char *name, *key;
    uint16_t port;
    struct vigil vigil;
    /* Whether a supervisor is there. */
    bool (*is_watched)(struct leader *leader);
    /* The task has to end; the text, which is of the program, says why. Called once. */
    void (*lost)(struct leader *leader, const char *why);

    struct lookup lookup;
    struct loop_watch socket; /* fd -1: there is no connection */
    bool is_asked;            /* the request is sent */
    struct loop_timer again;  /* the next connection, or the end of a silent one */
    struct loop_timer look;   /* at the verdict */
    char line[64];            /* the beginning of a line that is not whole */
    size_t n;
};

/* The rest of the members is set, and the texts stay the caller's. */
void leader_watch(struct leader *leader, struct loop *loop, const struct vigil_limits *limits);
void leader_stop(struct leader *leader);

#endif
