/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second sign that a run lives, which no removed file can take away: its supervisor and its
 * keeper hold a shared lock (fcntl, F_OFD_SETLK) on the run's directory itself. The kernel ends it
 * with the last of them. The lock file (owner.h) says who takes orders; when a task has removed or
 * replaced that file, this lock still says that the run is not over.
 *
 * It is only ever asked for, never waited for. On a file system that cannot lock a directory (NFS)
 * nobody holds it, and the lock file decides alone.
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

#endif
