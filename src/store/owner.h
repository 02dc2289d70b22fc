/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns a run: the processes that hold the lock on runs/<id>/lock. The kernel ends the lock
 * with the last of them, so a run without an owner is over, whatever its journal says, and a
 * reused process number is never mistaken for one. Where a task has removed or replaced the file,
 * the lock on the run's directory (presence.h) still says that the run has an owner.
 */
#ifndef STORE_OWNER_H
#define STORE_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/rundir.h"

enum { OWNER_PASSING_MS = 5000 }; /* how long who passes by is waited for */

/* Takes the lock. It is held while the descriptor is open, here or in a child. Fails with
 * ERROR_CONFLICT when someone else holds it. */
MUST_CHECK int owner_take(const struct rundir *rundir, int *fd, struct error *err);

/* For who puts a run without an owner in order, and is soon done: while the descriptor is open
 * nobody else acts on the run, and yet it has no owner. Waits so long for another who passes by;
 * fails with ERROR_CONFLICT when that takes longer, and at once when the run has an owner. */
MUST_CHECK int owner_pass(const struct rundir *rundir, unsigned most_ms, int *fd,
                          struct error *err);

/* Takes the room on the disk that the announcement needs, and forgets who was announced before.
 * For whoever is about to start something: a run that nobody can reach is not begun. */
MUST_CHECK int owner_reserve(int fd, const struct rundir *rundir, struct error *err);

/* Says which process signals are to go to, in the room that was reserved. */
void owner_announce(int fd, pid_t pid);

/* For the owner whose lock file was removed or replaced: makes it again, locked from the moment
 * that it is there, with the process that signals are to go to. *fd becomes the new one. */
MUST_CHECK int owner_put_back(const struct rundir *rundir, int *fd, pid_t pid, struct error *err);

/* Whether the run has an owner; *pid is the announced process then, or 0. Where the lock cannot be
 * looked at (it is another user's, no file can be opened) it has one: who takes a living run for a
 * dead one gives away what it holds. */
bool owner_lives(const struct rundir *rundir, pid_t *pid);

/* The same, for who can tell otherwise whether a run lives whose lock cannot be looked at. */
enum owner_sight { OWNER_IS_GONE, OWNER_LIVES, OWNER_IS_HIDDEN };
enum owner_sight owner_look(const struct rundir *rundir, pid_t *pid);

/* Whether the lock names a process, also of a run that is over: false as long as a run never had a
 * keeper. */
bool owner_was_announced(const struct rundir *rundir);

/* Sends a signal to the owner. Fails with ERROR_NOT_FOUND when there is none, with ERROR_DENIED and
 * a name when it is another user's, and with ERROR_UNAVAILABLE when it has announced nobody. */
MUST_CHECK int owner_signal(const struct rundir *rundir, int number, struct error *err);

#endif
