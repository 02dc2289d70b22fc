/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the task writes: from its pipe into a file of the volume, and from there to our own stdout,
 * the live view.
 *
 *   1. The pipe is read whenever there is something: nothing that happens to the file or to stdout
 *      holds the task up.
 *   2. What the file cannot take (the limit, a full volume, no volume) is counted in `lost`, and
 *      goes to stdout alone. The file then has the rest without a gap.
 *   3. stdout is never waited for. When it lags it is served from the file, as fast as it takes it.
 */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H

#include "shim/loop.h"

struct log {
    struct loop *loop;
    void (*changed)(struct log *log); /* there is more of it, or nothing follows */
    const char *path;
    int fd;         /* -1: it could not be opened so far */
    uint64_t limit; /* of `size` */
    uint64_t size;  /* bytes in the file */
    uint64_t lost;

    struct loop_watch input; /* the task's pipe */
    struct loop_watch live;  /* our stdout; -1: it is gone */
    uint64_t shown;          /* how much of the file stdout was given */
};

void log_init(struct log *log, struct loop *loop, const char *path, uint64_t limit,
              void (*changed)(struct log *log));

/* Makes the pipe, and gives the end that the task writes to. Returns -1 and errno. */
int log_open(struct log *log);

/* Reads what is left in the pipe, and no longer waits for its end: of what a process that does not
 * die holds open. */
void log_close(struct log *log);

/* Whether stdout has everything that it can be given. */
bool log_is_shown(const struct log *log);

#endif
