/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a watch: bytes in pieces of any size become events. Pure, and bounded: a line may
 * be as large as the largest object that a cluster keeps, several times over.
 *
 * Kinds of events that are not known are passed over, as the protocol asks of clients.
 */
#ifndef BACKEND_KUBERNETES_WATCH_DECODE_H
#define BACKEND_KUBERNETES_WATCH_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "codec/node.h"

enum { WATCH_LINE_MAX = 16 << 20 };

enum watch_line_kind {
    WATCH_LINE_ADDED,
    WATCH_LINE_MODIFIED,
    WATCH_LINE_DELETED,
    WATCH_LINE_BOOKMARK, /* `version` is how far the stream got; there is nothing else */
    WATCH_LINE_ERROR,    /* `object` is a Status */
    WATCH_LINE_KIND_COUNT,
};

/* Texts are "" where the object has none. Valid during the callback. */
struct watch_line {
    enum watch_line_kind kind;
    const struct node *object;
    const char *namespace, *name, *uid, *version;
};

struct watch_decoder {
    struct buf rest; /* the line that has not ended */
};

#define WATCH_DECODER_INIT                                                                         \
    { .rest = BUF_INIT(WATCH_LINE_MAX) }

/* False: no further event of these bytes is wanted, and the decoder may be gone. */
typedef bool watch_line_sink(void *context, const struct watch_line *line);

/* Fails with INVALID on a line that is no event, with EXHAUSTED on one that is too long; events
 * before it were told. */
MUST_CHECK int watch_decode(struct watch_decoder *decoder, const char *bytes, size_t n,
                            watch_line_sink *sink, void *context, struct error *err);

/* What an object is known by, as an event has it. */
void watch_identify(const struct node *object, struct watch_line *out);

void watch_decoder_release(struct watch_decoder *decoder);

#endif
