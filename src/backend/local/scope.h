/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place of its own for a run among the control groups of systemd.
 *
 *   run-myelin-<id>.scope/              a transient scope that systemd delegates to us
 *       supervisor/                     the supervisor: a group with groups below it may hold no
 * process myelin-<id>/worker.2            what cgroup.h makes
 *
 * Who logs in by ssh or su stands in a session scope, which root owns; the user's own manager gives
 * out scopes. It is asked over its private socket by sd-bus, out of libsystemd, which is loaded
 * only here: every machine with systemd has it, and others never come here. systemd removes the
 * scope when the last process has left it.
 */
#ifndef BACKEND_LOCAL_SCOPE_H
#define BACKEND_LOCAL_SCOPE_H

#include "backend/local/cgroup_tree.h"

/* Whether there is a manager that could be asked for a scope. */
bool scope_may_be_given(void);

/* Moves this process into a scope of its own. Waits for systemd, some seconds at most. False: it
 * stays where it was, and `why` says what systemd said, or nothing where there is none. */
bool scope_enter(const char *id, char why[static CGROUP_WHY_MOST]);

/* Ends what lives in scopes of dead runs that stand beside the one at `path`, if that is one. */
void scope_clear_dead(const char *path, const char *except);

#endif
