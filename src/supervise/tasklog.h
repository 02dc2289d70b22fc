/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one task: its output, byte for byte, in logs/<task>.log. The file is made by
 * the first byte, so a silent task has none.
 *
 * Writing never fails for the caller: what a full disk or the limit does not take is
 * counted, and the task goes on.
 */
#ifndef SUPERVISE_TASKLOG_H
#define SUPERVISE_TASKLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct tasklog {
    int fd;     /* -1: not open */
    int errnum; /* of the last write that failed; 0: none */
    uint64_t kept, lost;
};

#define TASKLOG_LIMIT (10ull << 30) /* bytes that are kept of one task */

#define TASKLOG_INIT                                                                               \
    { .fd = -1 }

void tasklog_write(struct tasklog *log, const char *directory, const char *task, const char *bytes,
                   size_t n);
void tasklog_close(struct tasklog *log);

/* Appends the last that a task wrote, as much as fits; nothing where there is no log. */
void tasklog_tail(const char *directory, const char *task, struct buf *out);

#endif
