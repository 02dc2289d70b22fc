/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bell between a supervisor and the command that started it: rings when a log or the journal
 * has grown, and falls silent for good (end of file) when the last process of the run is gone.
 *
 * Whoever comes later watches the files by inotify, which does as well; but the kernel takes
 * milliseconds to end such a watch, which a short run would wait for.
 */
#ifndef SUPERVISE_BELL_H
#define SUPERVISE_BELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What is rung besides ranks of tasks, whose logs have grown. */
#define BELL_JOURNAL UINT32_MAX
#define BELL_ALL     (UINT32_MAX - 1) /* so much that not everything was rung: look at all */

struct bell {
    int fd; /* -1: nobody listens */
    bool has_missed;
};

#define BELL_NONE                                                                                  \
    { .fd = -1 }

/* *listener is the other end, non-blocking, for bell_hear. */
MUST_CHECK int bell_make(struct bell *bell, int *listener, struct error *err);
void bell_release(struct bell *bell);

/* Never waits. */
void bell_ring(struct bell *bell, uint32_t what);

/* Returns how many were heard, 0 when nothing is rung now, -1 when the run is gone. */
int bell_hear(int listener, uint32_t *heard, size_t most);

#endif
