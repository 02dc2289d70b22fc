/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a name, without holding up the loop: the C library's resolver waits for seconds
 * where a server does not answer, so a child asks it and tells by a pipe. One question at a time.
 */
#ifndef SHIM_LOOKUP_H
#define SHIM_LOOKUP_H

#include <sys/socket.h>

#include "shim/loop.h"

struct lookup {
    struct loop *loop;
    void (*done)(struct lookup *lookup); /* once for each question */
    struct sockaddr_storage address;     /* without its port */
    socklen_t length;                    /* 0: the name has no address, or nobody said */

    struct loop_watch pipe; /* fd -1: nothing is asked */
};

void lookup_init(struct lookup *lookup, struct loop *loop, void (*done)(struct lookup *lookup));

/* `done` follows, and not before this has returned. Returns -1 and errno where no process could be
 * made; then nothing follows. */
int lookup_ask(struct lookup *lookup, const char *name);

/* Nothing follows. The child ends by itself, and is reaped as all children of the shim are: to kill
 * it by a number that may be another's by now would be worse. */
void lookup_cancel(struct lookup *lookup);

#endif
