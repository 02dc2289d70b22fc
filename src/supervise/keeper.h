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
 * A task can also suspend either of them (SIGSTOP). They continue each other: the keeper continues
 * the supervisor at once, as the kernel reports a child that stops; the supervisor continues the
 * keeper once a second (run_guard.h) and when it ends. If both are suspended, nobody of the run can
 * act: a command that waits for the end of the run, or follows it, calls keeper_continue. A
 * supervisor that has an order and is suspended again and again is killed when patience is over
 * (suspension.h); the keeper then ends what is left, as after any death of a supervisor.
 *
 * A PID namespace would do the same in the kernel, but shows tasks two different numbers for
 * themselves (getpid and /proc), which breaks programs that look themselves up.
 */
#ifndef SUPERVISE_KEEPER_H
#define SUPERVISE_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "supervise/suspension.h"

enum {
    KEEPER_STOP = 15, /* SIGTERM: stop the run gracefully */
    KEEPER_KILL = 3,  /* SIGQUIT: end it at once */
};

/* Why a supervisor did not end by itself. */
enum keeper_loss {
    KEEPER_LOST,      /* it died */
    KEEPER_SUSPENDED, /* it was suspended again and again, and the keeper killed it */
};

struct keeper_work {
    /* Runs in the supervisor's process, in a session without a terminal, until the run is over.
     * Gets KEEPER_STOP and KEEPER_KILL as signals, which wait until it calls
     * keeper_take_orders. `keeper` is its parent as long as that lives. Anything but 0: it could
     * not go on with the run, which is as if it had died. */
    int (*supervise)(void *context, pid_t keeper);
    /* Runs in the keeper, once nothing of the run is left, if the supervisor died of something;
     * `wait_status` is as of waitpid. */
    void (*orphaned)(void *context, int wait_status, enum keeper_loss loss);
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

/* From outside, again and again while one waits for a run: continues a keeper that is suspended.
 * `suspension` is of a run that was told to end, else NULL: when its patience is over, everything
 * below the keeper is killed from here, the task that suspends it included. The keeper itself
 * stays, and writes the end. Does nothing to a process that is no keeper. */
void keeper_continue(pid_t keeper, struct suspension *suspension);

/* Of any process: whether it is a supervisor by its name; and the end of all that descends from it.
 */
bool keeper_is_supervisor(pid_t pid);
void keeper_kill_below(pid_t pid);

#endif
