/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/tail.h"

#include <string.h>

void tail_add(struct tail *tail, const char *bytes, size_t n) {
    size_t before_edge;

    if (n > TAIL_MOST) {
        bytes += n - TAIL_MOST;
        n = TAIL_MOST;
    }
    before_edge = n < TAIL_MOST - tail->next ? n : TAIL_MOST - tail->next;
    memcpy(tail->bytes + tail->next, bytes, before_edge);
    memcpy(tail->bytes, bytes + before_edge, n - before_edge);
    tail->next = (tail->next + n) % TAIL_MOST;
    tail->n = n < TAIL_MOST - tail->n ? tail->n + n : TAIL_MOST;
}

void tail_read(const struct tail *tail, struct buf *out) {
    const size_t room = out->limit - out->len;
    const size_t n = tail->n < room ? tail->n : room;
    const size_t start = (tail->next + TAIL_MOST - n) % TAIL_MOST;
    const size_t before_edge = n < TAIL_MOST - start ? n : TAIL_MOST - start;
    struct error err;

    if (buf_append(out, tail->bytes + start, before_edge, &err) == 0 &&
        buf_append(out, tail->bytes, n - before_edge, &err) == 0)
        return;
}
