/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A supervisor whose keeper is dead, seen from outside. The kernel has told it to stop (keeper.h),
 * but the process that the run's lock names takes no orders any more, and if the supervisor is
 * suspended nobody of the run can continue it. It is found in /proc: a process of that name that
 * has the run's directory open.
 */
#ifndef SUPERVISE_STRANDED_H
#define SUPERVISE_STRANDED_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/rundir.h"
#include "supervise/suspension.h"

/* Whether there is one; `keeper` is the process that the lock names. */
bool is_stranded(pid_t keeper);

/* Sends it an order, KEEPER_STOP or KEEPER_KILL, and continues it. False: none was found. */
bool stranded_signal(const struct rundir *rundir, int number);

/* As keeper_continue. When patience is over, the supervisor is killed, too: whoever looks at the
 * run next writes its end. */
void stranded_continue(const struct rundir *rundir, struct suspension *suspension);

#endif
