/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend that runs a gang as processes of this machine. One backend runs one gang.
 *
 * This process becomes the reaper of all that its tasks leave behind (a subreaper), so a
 * daemon that a task detached is still found below it, and "no child is left" proves
 * that nothing of the gang is.
 *
 * A task ends when its process does. What a detached child writes into the task's pipe
 * after that is not waited for.
 */
#ifndef BACKEND_LOCAL_LOCAL_H
#define BACKEND_LOCAL_LOCAL_H

#include "backend/backend.h"

MUST_CHECK int local_backend_new(struct event_base *base, struct backend **out, struct error *err);

#endif
