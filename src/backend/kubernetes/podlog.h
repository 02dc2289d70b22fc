/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a container as the API server gives it with `timestamps=true`: each line behind the
 * moment at which it was written. This takes the moments off, and remembers how far it came, so
 * that a stream which broke goes on where it was: nothing is told twice, and nothing is lost that
 * the node still has. Pure.
 *
 *   podlog_init(&log, &from, delivered);
 *   for each stream:  podlog_since -> the query;  podlog_begin;  podlog_feed ...;
 *   at the end of the container:  podlog_finish
 *
 * A line is told whole, once its end has come; only one longer than PODLOG_LINE is told in parts.
 * A line without a moment is the node's own word, and told as it is.
 */
#ifndef BACKEND_KUBERNETES_PODLOG_H
#define BACKEND_KUBERNETES_PODLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PODLOG_LINE = 64 * 1024, PODLOG_SINCE = 32 };

/* What was told last. */
struct podlog_cursor {
    int64_t time_ns; /* since 1970, of the newest line; 0: nothing yet */
    uint64_t lines;  /* that were told whole and have that moment */
    uint64_t part;   /* bytes of the line behind them, of the same moment */
    uint64_t offset; /* bytes of content up to here */
};

struct podlog {
    struct podlog_cursor at;
    uint64_t skip; /* bytes behind the cursor that were told before */

    /* of the stream */
    struct podlog_cursor from; /* what is at or before it is known */
    uint64_t same;             /* lines that came with from.time_ns */
    char *line;                /* PODLOG_LINE bytes */
    size_t n;
    int64_t line_ns;
    bool in_line, is_known; /* of the line whose beginning has come */
    uint64_t line_part;     /* bytes of it that went by */
};

typedef void podlog_out(void *context, const char *bytes, size_t n);

/* `delivered`: how many bytes were told in all, which may be more than the cursor knows of. */
void podlog_init(struct podlog *log, const struct podlog_cursor *from, uint64_t delivered);
void podlog_release(struct podlog *log);

/* For `sinceTime`, in whole seconds; false: from the beginning. */
bool podlog_since(const struct podlog *log, char out[static PODLOG_SINCE]);

/* A stream begins; what an earlier one left unfinished is forgotten, as it comes again. */
void podlog_begin(struct podlog *log);
void podlog_feed(struct podlog *log, const char *bytes, size_t n, podlog_out *out, void *context);
/* Nothing follows: a last line without an end is told. */
void podlog_finish(struct podlog *log, podlog_out *out, void *context);

/* "2026-03-01T12:00:00.123456789+01:00 " at the start of n bytes: its length with the blank, or 0.
 */
size_t podlog_moment(const char *text, size_t n, int64_t *out_ns);

#endif
