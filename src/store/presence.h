/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further signs that a run lives, beside its lock file (owner.h). The supervisor and the keeper
 * hold them, and the kernel ends them with the last of the two.
 *
 *   the directory     a shared lock on the run's directory itself: when a task has removed or
 *                     replaced the lock file, this still says that the run is not over. For the
 *                     run's own user.
 *   public.jsonl      an exclusive lock on the lines that others may read: how other users of a
 *                     shared home know that the run lives.
 *
 * Whoever may read a file can put a shared lock on it. So other users may neither read the lock
 * file nor list the directory; of public.jsonl, which they may read, only an exclusive lock counts,
 * for which they would have to write it, and nobody but the presence itself wants one.
 *
 * Both are only ever asked for, never waited for. On a file system that cannot lock a directory
 * (NFS) nobody holds it, and the lock file decides alone.
 */
#ifndef STORE_PRESENCE_H
#define STORE_PRESENCE_H

#include <stdbool.h>

#include "store/rundir.h"

/* Opens the run's directory and holds it while the descriptor is open, here or in a child. Returns
 * the descriptor, or -1. */
int presence_hold(const struct rundir *rundir);

bool presence_is_held(const struct rundir *rundir);
/* The same of a directory that is open, even after it was removed; false for -1. */
bool presence_is_held_at(int directory);

/* Opens the directory for the question above. Returns -1 when there is none. */
int presence_open(const struct rundir *rundir);

/* In a shared home: holds the public lines, and lets the members of the home read them. The file
 * exists, and was readable by nobody else before. Returns the descriptor, or -1. */
int presence_hold_public(const struct rundir *rundir);
/* Whether another user's run lives. True also if it cannot be looked at: who takes a living run for
 * a dead one gives away what it holds. */
bool presence_is_public(const struct rundir *rundir);

#endif
