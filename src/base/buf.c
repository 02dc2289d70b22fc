/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char buf_empty[1];

static int buf_reserve(struct buf *b, size_t extra, struct error *err) {
    size_t want, capacity;
    char *grown;

    if (extra > b->limit - b->len)
        return error_set(err, ERROR_EXHAUSTED, "larger than the %zu bytes allowed here", b->limit);

    want = b->len + extra + 1;
    if (want <= b->capacity)
        return 0;

    capacity = b->capacity > want / 2 ? b->capacity * 2 : want;
    grown = realloc(b->capacity ? b->data : NULL, capacity);
    if (!grown)
        abort(); /* small, and bounded by the limit */
    b->data = grown;
    b->capacity = capacity;
    return 0;
}

int buf_append(struct buf *b, const void *bytes, size_t n, struct error *err) {
    if (n == 0)
        return 0;
    if (buf_reserve(b, n, err))
        return -1;
    memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int buf_printf(struct buf *b, struct error *err, const char *fmt, ...) {
    va_list args, again;
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(n >= 0); /* only a bad format string can do this */

    if (n > 0 && buf_reserve(b, (size_t)n, err)) {
        va_end(again);
        return -1;
    }
    if (n > 0) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
    return 0;
}

void buf_clear(struct buf *b) {
    b->len = 0;
    if (b->capacity)
        b->data[0] = '\0';
}

void buf_release(struct buf *b) {
    if (b->capacity)
        free(b->data);
    *b = (struct buf)BUF_INIT(b->limit);
}

char *buf_take(struct buf *b) {
    char *taken = b->capacity ? b->data : calloc(1, 1);

    if (!taken)
        abort();
    *b = (struct buf)BUF_INIT(b->limit);
    return taken;
}
