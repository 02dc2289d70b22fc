/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes the directory of a run, with whatever its tasks have put there.
 *
 * Symbolic links are removed, never followed; other file systems that are mounted in it are an
 * error. Directories that cannot be written to are made so. A directory inside a directory is
 * first moved up, so that no depth is too deep. The journal and the lock go last: a removal
 * that fails leaves a run that can be listed and removed again.
 */
#ifndef STORE_REMOVE_H
#define STORE_REMOVE_H

#include <stdint.h>

#include "store/rundir.h"

/* The caller holds the run's lock (owner_take). *freed is the space on the disk, in bytes. */
MUST_CHECK int remove_run(const struct rundir *rundir, uint64_t *freed, struct error *err);

/* The same for a run that was refused before it began: nobody has seen its id, and the next run
 * gets it. */
MUST_CHECK int remove_unbegun_run(const struct rundir *rundir, uint64_t *freed, struct error *err);

#endif
