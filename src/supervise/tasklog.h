/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one task: its output, byte for byte, in logs/<task>.log, and beside it when each
 * part came, in logs/<task>.idx (store/logindex.h). The files are made by the first byte, so a
 * silent task has none.
 *
 * Writing never fails for the caller: what a full disk or the limit does not take is counted,
 * the place is marked in the index, and the task goes on. Writing resumes when room comes back.
 * Meanwhile the last 64 KiB that the task wrote are kept in memory: they say why it failed.
 *
 * A log that a task has removed is made again; what was in it is counted as lost. Something else in
 * its place (a FIFO, a directory, a link) is left alone, and is as a log that cannot be written.
 *
 * The index stays small beside the log: a record each INDEX_EVERY_US or INDEX_EVERY_BYTES, and
 * never more than a quarter of the log plus 64 KiB.
 */
#ifndef SUPERVISE_TASKLOG_H
#define SUPERVISE_TASKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "supervise/tail.h"

#define TASKLOG_LIMIT (10ull << 30) /* unless the user says otherwise */

enum { INDEX_EVERY_US = 20 * 1000, INDEX_EVERY_BYTES = 64 * 1024 };

struct tasklog {
    int fd, index_fd; /* -1: not open */
    int errnum;       /* of the last write that failed; 0: none */
    uint64_t kept, lost;

    uint64_t n_records; /* in the index */
    uint64_t indexed_offset;
    int64_t indexed_us; /* of the last record */
    uint64_t gap;       /* bytes of a loss whose record is not final */
    uint64_t gap_offset;

    int64_t looked_us; /* whether the file is still there */
    struct tail *tail; /* of what was lost since the gap began; NULL: nothing, or no memory */
};

#define TASKLOG_INIT                                                                               \
    { .fd = -1, .index_fd = -1 }

/* What the logs of a run share. */
struct tasklog_place {
    const char *directory;
    uint64_t limit;    /* of bytes that are kept of one task */
    int64_t origin_us; /* what the clock below counts from */
};

/* Microseconds since 1970 that never step back; `origin_us` is set once for a run, all its attempts
 * together. */
int64_t tasklog_origin(void);
int64_t tasklog_now(int64_t origin_us);

void tasklog_write(struct tasklog *log, const struct tasklog_place *place, const char *task,
                   int64_t now_us, const char *bytes, size_t n);
/* The task is over: what is left to be said in the index is said. The log is still open. */
void tasklog_end(struct tasklog *log);
void tasklog_close(struct tasklog *log);

/* How much of what a task wrote is kept; 0 where there is no log. */
uint64_t tasklog_size(const char *directory, const char *task);

/* Appends the last that a task wrote, as much as fits, also of what its log did not take; nothing
 * where there is no log. `log` is NULL for who only reads the directory. */
void tasklog_tail(const struct tasklog *log, const char *directory, const char *task,
                  struct buf *out);
/* Whether the last of it was lost, and is not in memory either. */
bool tasklog_lost_tail(const struct tasklog *log);

#endif
