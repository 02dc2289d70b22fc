/* SPDX-License-Identifier: Apache-2.0 */
/* The last 64 KiB of a stream of bytes, in memory. Pure. */
#ifndef SUPERVISE_TAIL_H
#define SUPERVISE_TAIL_H

#include "base/buf.h"

enum { TAIL_MOST = 64 * 1024 };

/* A ring; empty when it is zero. */
struct tail {
    size_t n;    /* bytes that are kept, at most TAIL_MOST */
    size_t next; /* where the next one goes */
    char bytes[TAIL_MOST];
};

void tail_add(struct tail *tail, const char *bytes, size_t n);

/* Appends the last of what is kept, as much as fits. */
void tail_read(const struct tail *tail, struct buf *out);

#endif
