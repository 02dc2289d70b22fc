/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends runs from outside: what `stop`, `kill` and `rm --force` share.
 *
 * A run that was told ends by itself, whoever waits for it: an interrupt (SIGINT, SIGTERM) ends
 * only the waiting, and the user is told so.
 */
#ifndef CLI_STOPPING_H
#define CLI_STOPPING_H

#include <stdbool.h>

#include "cli/command.h"
#include "store/rundir.h"

struct stopping {
    int signal;       /* KEEPER_STOP or KEEPER_KILL */
    double timeout_s; /* when what is left is killed; negative: the run's own grace time holds */
};

/* Interrupts are noted from here on, and end the process again after. */
void stopping_catch(void);
void stopping_release(void);
/* Whether there was one. */
bool stopping_was_interrupted(void);

/* Tells a living run to end. *was_living is false when there was nothing to tell. */
MUST_CHECK int stopping_tell(const struct rundir *rundir, const struct stopping *stopping,
                             bool *was_living, struct error *err);

/* Waits until a run that was told is over. Fails with ERROR_CONFLICT on an interrupt; the message
 * says that the run goes on ending, and how to follow it. */
MUST_CHECK int stopping_wait(const struct rundir *rundir, const struct stopping *stopping,
                             struct error *err);

/* The commands: tells all operands, waits for each and reports it. Returns the exit status. */
int stopping_main(const struct invocation *invocation, const struct stopping *stopping);

/* For the description of each of them. */
#define STOPPING_INTERRUPTED                                                                       \
    "Ctrl-C ends the waiting, not the ending: a run that was told ends nevertheless."
#define STOPPING_INTERRUPTED_STATUS                                                                \
    { "130", "an interrupt ended the waiting; the runs that were told go on ending" }

#endif
