/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct buf: a growable byte string with a ceiling.
 *
 * Whoever creates a buf states the most it may ever hold. Input from a file, a
 * socket or a cluster therefore cannot grow memory without someone having
 * chosen the number.
 *
 * Invariants, true between any two calls:
 *   1. data[len] is '\0'; data is never NULL, not even before the first append.
 *   2. len <= limit.
 *   3. A failed append leaves the contents as they were.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>

#include "base/error.h"

struct buf {
    char *data;
    size_t len;
    size_t capacity; /* 0 while data points at the shared empty string */
    size_t limit;
};

extern char buf_empty[1];
#define BUF_INIT(max_bytes)                                                                        \
    { .data = buf_empty, .limit = (max_bytes) }

MUST_CHECK int buf_append(struct buf *b, const void *bytes, size_t n, struct error *err);
MUST_CHECK int buf_printf(struct buf *b, struct error *err, const char *fmt, ...) PRINTF_LIKE(3, 4);

void buf_clear(struct buf *b);   /* empty it, keep the memory */
void buf_release(struct buf *b); /* give the memory back; b is as after BUF_INIT */

/* Hands the bytes to the caller, who frees them with free(3). */
char *buf_take(struct buf *b);

#endif
