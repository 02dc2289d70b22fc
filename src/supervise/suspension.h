/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is suspended (SIGSTOP) and was told to do something. It is continued, and that is
 * usually all. A task that suspends its supervisor in a loop can keep it from ever acting, however:
 * when the suspensions go on for SUSPENSION_PATIENCE_MS, the process is not waited for any longer.
 *
 * Pure: the caller has the clock.
 */
#ifndef SUPERVISE_SUSPENSION_H
#define SUPERVISE_SUSPENSION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SUSPENSION_PATIENCE_MS = 5000,
    SUSPENSION_GAP_MS = 3000, /* after so long without one, the next is the first again */
};

/* Zero: none was seen. */
struct suspension {
    int64_t since_us; /* the first of those that follow each other closely */
    int64_t seen_us;  /* the last of them */
};

/* Notes that the process is seen suspended now. Returns whether patience is over. */
bool suspension_seen(struct suspension *suspension, int64_t now_us);

#endif
