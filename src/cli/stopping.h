/* SPDX-License-Identifier: Apache-2.0 */
/* Ends runs from outside: what `stop`, `kill` and `rm --force` share. */
#ifndef CLI_STOPPING_H
#define CLI_STOPPING_H

#include "cli/command.h"
#include "store/rundir.h"

struct stopping {
    int signal;       /* KEEPER_STOP or KEEPER_KILL */
    double timeout_s; /* when what is left is killed; negative: the run's own grace time holds */
};

/* Tells a living run to end. *was_living is false when there was nothing to tell. */
MUST_CHECK int stopping_tell(const struct rundir *rundir, const struct stopping *stopping,
                             bool *was_living, struct error *err);

/* Waits until a run that was told is over. */
MUST_CHECK int stopping_wait(const struct rundir *rundir, const struct stopping *stopping,
                             struct error *err);

/* The commands: tells all operands, waits for each and reports it. Returns the exit status. */
int stopping_main(const struct invocation *invocation, const struct stopping *stopping);

#endif
