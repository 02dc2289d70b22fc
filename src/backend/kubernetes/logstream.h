/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a container as the API server gives it with `timestamps=true`: each line behind the
 * moment at which it was written. This takes the moments off, and remembers how far it came, so
 * that a stream which broke goes on where it was: nothing is told twice, and nothing is lost that
 * the node still has. Pure.
 *
 *   logstream_init(&log, &from, delivered);
 *   for each stream:  logstream_since -> the query;  logstream_begin;  logstream_feed ...;
 *   at the end of the container:  logstream_finish
 *
 * A line is told whole, once its end has come; only one longer than LOGSTREAM_LINE is told in
 * parts. A line without a moment is the node's own word (that a log is gone, say), and left out.
 */
#ifndef BACKEND_KUBERNETES_LOGSTREAM_H
#define BACKEND_KUBERNETES_LOGSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOGSTREAM_LINE = 64 * 1024, LOGSTREAM_SINCE = 32 };

/* What was told last. */
struct logstream_cursor {
    int64_t time_ns; /* since 1970, of the newest line; 0: nothing yet */
    uint64_t lines;  /* that were told whole and have that moment */
    uint64_t part;   /* bytes of the line behind them, of the same moment */
    uint64_t offset; /* bytes of content up to here */
};

struct logstream {
    struct logstream_cursor at;
    uint64_t skip; /* bytes behind the cursor that were told before */

    /* of the stream */
    struct logstream_cursor from; /* what is at or before it is known */
    uint64_t same;                /* lines that came with from.time_ns */
    char *line;                   /* LOGSTREAM_LINE bytes */
    size_t n;
    int64_t line_ns;
    bool in_line, is_known; /* of the line whose beginning has come */
    uint64_t line_part;     /* bytes of it that went by */
};

typedef void logstream_out(void *context, const char *bytes, size_t n);

/* `delivered`: how many bytes were told in all, which may be more than the cursor knows of. */
void logstream_init(struct logstream *log, const struct logstream_cursor *from, uint64_t delivered);
void logstream_release(struct logstream *log);

/* For `sinceTime`, in whole seconds; false: from the beginning. */
bool logstream_since(const struct logstream *log, char out[static LOGSTREAM_SINCE]);

/* A stream begins; what an earlier one left unfinished is forgotten, as it comes again. */
void logstream_begin(struct logstream *log);
void logstream_feed(struct logstream *log, const char *bytes, size_t n, logstream_out *out,
                    void *context);
/* Nothing follows: a last line without an end is told. */
void logstream_finish(struct logstream *log, logstream_out *out, void *context);

/* "2026-03-01T12:00:00.123456789+01:00 " at the start of n bytes: its length with the blank, or 0.
 */
size_t logstream_moment(const char *text, size_t n, int64_t *out_ns);

#endif
