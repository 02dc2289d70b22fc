/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/logread.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { SCAN_SIZE = 64 * 1024 };

void logread_init(struct logread *log, const char *directory, const char *task,
                  enum logread_manner manner) {
    *log = (struct logread){ .directory = directory,
                             .manner = manner,
                             .fd = -1,
                             .limit = UINT64_MAX,
                             .time_us = LOGREAD_NO_TIME };
    snprintf(log->task, sizeof log->task, "%s", task);
}

void logread_release(struct logread *log) {
    if (log->fd >= 0)
        close(log->fd);
    if (log->index)
        logindex_close(log->index);
    free(log->index);
    log->fd = -1;
    log->index = NULL;
}

bool logread_open(struct logread *log) {
    char path[PATH_MAX];

    if (log->fd >= 0)
        return true;
    if (snprintf(path, sizeof path, "%s/%s.log", log->directory, log->task) >= (int)sizeof path)
        return false;
    log->fd = file_open_regular(path, O_RDONLY, 0);
    if (log->fd < 0)
        return false;
    log->index = malloc(sizeof *log->index);
    if (!log->index)
        abort();
    logindex_open(log->index, log->directory, log->task);
    return true;
}

/* Passes the records that speak of bytes up to the offset. Returns where the next piece has to
 * end, at most `most` bytes on; sets *lost when the next thing is a gap. */
static uint64_t pass_records(struct logread *log, uint64_t most, uint64_t *lost) {
    struct logindex_entry entry, after;

    *lost = 0;
    while (logindex_get(log->index, log->next, &entry)) {
        const bool is_ahead = entry.offset > log->offset;

        if (is_ahead &&
            (entry.is_gap || log->manner == LOGREAD_TIMES || entry.offset - log->offset >= most))
            return entry.offset - log->offset < most ? entry.offset - log->offset : most;
        if (entry.is_gap) {
            /* The last record may be of a loss that goes on: then it is told when it is over. */
            if (!log->is_over && !logindex_get(log->index, log->next + 1, &after))
                return most;
            log->next++;
            if (entry.time_us <= 0)
                continue; /* no writer of ours leaves that */
            *lost = (uint64_t)entry.time_us;
            return 0;
        }
        log->time_us = entry.time_us;
        log->next++;
    }
    return most;
}

bool logread_next(struct logread *log, char *bytes, size_t size, struct log_piece *piece) {
    uint64_t want;
    ssize_t n;

    if (!logread_open(log) || log->offset >= log->limit)
        return false;
    want = pass_records(log, size, &piece->lost);
    piece->time_us = log->time_us;
    piece->n = 0;
    if (piece->lost)
        return true;
    if (want > log->limit - log->offset)
        want = log->limit - log->offset;
    n = pread(log->fd, bytes, want, (off_t)log->offset);
    if (n <= 0)
        return false;
    log->offset += (uint64_t)n;
    piece->n = (size_t)n;
    return true;
}

uint64_t logread_size(struct logread *log) {
    struct stat st;

    return logread_open(log) && fstat(log->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

int64_t logread_time(struct logread *log) {
    struct logindex_entry entry;

    if (!logread_open(log))
        return LOGREAD_NO_TIME;
    for (uint64_t i = log->next; logindex_get(log->index, i, &entry); i++) {
        if (entry.is_gap || entry.offset > log->offset)
            break;
        log->time_us = entry.time_us;
        log->next = i + 1;
    }
    return log->time_us;
}

/* ---- starting points ---- */

static void skip_to(struct logread *log, uint64_t offset) {
    struct logindex_entry entry;
    uint64_t i;

    if (offset <= log->offset)
        return;
    log->offset = offset;
    if (logindex_find_offset(log->index, offset, &i) && logindex_get(log->index, i, &entry)) {
        log->time_us = entry.time_us;
        log->next = i + 1;
    }
}

/* The start of the first line that starts at this offset or behind it. */
static uint64_t line_start(const struct logread *log, uint64_t offset) {
    char chunk[SCAN_SIZE];

    while (offset > 0) {
        const ssize_t n = pread(log->fd, chunk, sizeof chunk, (off_t)(offset - 1));
        const char *end = n > 0 ? memchr(chunk, '\n', (size_t)n) : NULL;

        if (end)
            return offset + (uint64_t)(end - chunk);
        if (n <= 1)
            break;
        offset += (uint64_t)n;
    }
    return offset;
}

void logread_skip_to_time(struct logread *log, int64_t time_us) {
    struct logindex_entry entry;

    if (!logread_open(log) || !logindex_get(log->index, 0, &entry))
        return;
    if (logindex_get(log->index, logindex_find_time(log->index, time_us), &entry))
        skip_to(log, line_start(log, entry.offset));
    else
        skip_to(log, line_start(log, logread_size(log)));
}

void logread_skip_to_tail(struct logread *log, uint64_t n_lines) {
    char chunk[SCAN_SIZE];
    uint64_t end, at;

    if (!logread_open(log))
        return;
    end = at = logread_size(log);
    if (n_lines == 0)
        skip_to(log, end);
    while (at > log->offset) {
        const uint64_t start = at > sizeof chunk ? at - sizeof chunk : 0;
        const ssize_t n = pread(log->fd, chunk, (size_t)(at - start), (off_t)start);

        if (n != (ssize_t)(at - start))
            return;
        for (const char *found = chunk + n;
             (found = memrchr(chunk, '\n', (size_t)(found - chunk)));) {
            const uint64_t behind = start + (uint64_t)(found - chunk) + 1;

            /* The newline at the very end ends the last line, and starts none. */
            if (behind != end && --n_lines == 0) {
                skip_to(log, behind);
                return;
            }
        }
        at = start;
    }
}

void logread_skip_to_end(struct logread *log) {
    if (logread_open(log))
        skip_to(log, line_start(log, logread_size(log)));
}
