/* SPDX-License-Identifier: Apache-2.0 */
/* Removes runs: what `rm` and `gc` share. */
#ifndef CLI_REMOVING_H
#define CLI_REMOVING_H

#include <stdbool.h>

#include "store/rundir.h"

enum removing_manner {
    REMOVING_IF_OVER,     /* one of another host that may be going on there is refused */
    REMOVING_FOREIGN_TOO, /* somebody knows better */
};

/* Removes a run that is over, under its lock. Fails with ERROR_CONFLICT, and says how to go on,
 * where it is going on, another run has its outputs, or a model of it has an alias. */
MUST_CHECK int removing_remove(const struct rundir *rundir, enum removing_manner manner,
                               uint64_t *freed, struct error *err);

/* Whether it is not there (any more): another command may have removed it. */
bool removing_is_gone(const struct rundir *rundir);

#endif
