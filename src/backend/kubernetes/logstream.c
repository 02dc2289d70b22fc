/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/logstream.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { MOMENT_MOST = 64 };
#define SECOND_NS 1000000000ll

size_t logstream_moment(const char *text, size_t n, int64_t *out_ns) {
    const char *blank = memchr(text, ' ', n < MOMENT_MOST ? n : MOMENT_MOST);
    struct time_given given;

    if (!blank || !time_parse(text, (size_t)(blank - text), &given) || given.unit < UNIT_SECOND ||
        !given.has_zone)
        return 0;
    /* Before 1970 nothing is logged, and after 2262 nanoseconds do not fit. */
    if (given.moment.tv_sec < 0 || given.moment.tv_sec >= INT64_MAX / SECOND_NS)
        return 0;
    *out_ns = given.moment.tv_sec * SECOND_NS + given.moment.tv_nsec;
    return (size_t)(blank - text) + 1;
}

/* ---- the log ---- */

void logstream_init(struct logstream *log, const struct logstream_cursor *from,
                    uint64_t delivered) {
    *log = (struct logstream){ .at = *from,
                               .skip = delivered > from->offset ? delivered - from->offset : 0,
                               .line = malloc(LOGSTREAM_LINE) };
    if (!log->line)
        abort();
    logstream_begin(log);
}

void logstream_release(struct logstream *log) {
    free(log->line);
    *log = (struct logstream){ 0 };
}

bool logstream_since(const struct logstream *log, char out[static LOGSTREAM_SINCE]) {
    const struct time_text text = time_text(log->at.time_ns / SECOND_NS * 1000000, TIME_SECONDS);

    if (log->at.time_ns <= 0 || strlen(text.text) >= LOGSTREAM_SINCE)
        return false;
    memcpy(out, text.text, strlen(text.text) + 1);
    return true;
}

void logstream_begin(struct logstream *log) {
    log->from = log->at;
    log->same = 0;
    log->n = 0;
    log->in_line = false;
}

static void tell(struct logstream *log, const char *bytes, size_t n, logstream_out *out,
                 void *context) {
    const size_t skipped = log->skip < n ? (size_t)log->skip : n;

    log->at.offset += n;
    log->skip -= skipped;
    if (n > skipped)
        out(context, bytes + skipped, n - skipped);
}

/* The beginning of a line has come: is it one that was told before? */
static size_t begin_line(struct logstream *log) {
    int64_t ns;
    const size_t moment = logstream_moment(log->line, log->n, &ns);

    log->in_line = true;
    log->line_part = 0;
    log->is_known = false;
    log->line_ns = moment ? ns : 0;
    if (moment && ns < log->from.time_ns)
        log->is_known = true;
    else if (moment && ns == log->from.time_ns)
        log->is_known = log->same++ < log->from.lines;
    return moment;
}

/* How much of what comes next of this line was told before. */
static size_t known_part(const struct logstream *log, size_t n) {
    const bool is_the_one =
        log->line_ns && log->line_ns == log->from.time_ns && log->same == log->from.lines + 1;
    const uint64_t left =
        is_the_one && log->from.part > log->line_part ? log->from.part - log->line_part : 0;

    return left < n ? (size_t)left : n;
}

/* Takes n bytes of the line's content, its end among them or not. */
static void take(struct logstream *log, const char *bytes, size_t n, bool is_whole,
                 logstream_out *out, void *context) {
    const size_t known = log->is_known ? n : known_part(log, n);

    log->line_part += n;
    if (!log->is_known && log->line_ns) {
        if (log->line_ns != log->at.time_ns) {
            log->at.time_ns = log->line_ns;
            log->at.lines = log->at.part = 0;
        }
        if (is_whole) {
            log->at.part = 0;
            log->at.lines++;
        } else if (log->line_part > log->at.part) {
            log->at.part = log->line_part;
        }
    }
    if (n > known && log->line_ns)
        tell(log, bytes + known, n - known, out, context);
}

/* Hands on what has come of the line. */
static void flush(struct logstream *log, bool is_whole, logstream_out *out, void *context) {
    size_t moment = 0;

    if (log->n == 0 && !log->in_line)
        return;
    if (!log->in_line)
        moment = begin_line(log);
    take(log, log->line + moment, log->n - moment, is_whole, out, context);
    log->n = 0;
    if (is_whole)
        log->in_line = false;
}

void logstream_feed(struct logstream *log, const char *bytes, size_t n, logstream_out *out,
                    void *context) {
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        const size_t rest = LOGSTREAM_LINE - log->n, of_line = end ? (size_t)(end - bytes) + 1 : n;
        const size_t part = of_line < rest ? of_line : rest;
        const bool is_whole = end && part == of_line;

        memcpy(log->line + log->n, bytes, part);
        log->n += part;
        bytes += part;
        n -= part;
        if (is_whole || log->n == LOGSTREAM_LINE)
            flush(log, is_whole, out, context);
    }
}

void logstream_finish(struct logstream *log, logstream_out *out, void *context) {
    flush(log, true, out, context);
}
