/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the parent of a supervisor, and its witness.
 *
 *   myelin run ── fork ──► keeper ── fork ──► supervisor ── spawns ──► tasks
 *
 * It does nothing while all is well: it hands signals on and waits. When the supervisor dies,
 * whatever of the run still lives comes to the keeper (it is a subreaper, as the supervisor
 * is), which ends it and says so. When the keeper dies, the supervisor is told by SIGTERM, stops
 * the run, and says why: whether an order came from the keeper or from its death shows in who its
 * parent is then. Only both killed at one blow leave a detached process behind; tasks
 * themselves die with the supervisor (PDEATHSIG) even then.
 *
 * A PID namespace would do the same in the kernel, but shows tasks two different numbers for
 * themselves (getpid and /proc), which breaks programs that look themselves up.
 */
#ifndef SUPERVISE_KEEPER_H
#define SUPERVISE_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    KEEPER_STOP = 15, /* SIGTERM: stop the run gracefully */
    KEEPER_KILL = 3,  /* SIGQUIT: end it at once */
};

struct keeper_work {
    /* Runs in the supervisor's process, in a session without a terminal, until the run is over.
     * Gets KEEPER_STOP and KEEPER_KILL as signals, which wait until it calls
     * keeper_take_orders. `keeper` is its parent as long as that lives. Anything but 0: it could
     * not go on with the run, which is as if it had died. */
    int (*supervise)(void *context, pid_t keeper);
    /* Runs in the keeper, once nothing of the run is left, if the supervisor died of something;
     * `wait_status` is as of waitpid. */
    void (*orphaned)(void *context, int wait_status);
    /* Asked first, in the keeper, when nothing of this machine is left: true has another
     * supervisor started, as what it watched goes on without it; that one gets the severest order
     * that came so far. NULL: never. */
    bool (*revives)(void *context, int wait_status);
    void *context;
};

/* In the supervisor, once its handlers are in place. */
void keeper_take_orders(void);

/* Returns in the caller with the keeper's process number; the keeper lives on by itself. */
MUST_CHECK int keeper_start(const struct keeper_work *work, pid_t *pid, struct error *err);

#endif
