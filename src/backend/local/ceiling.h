/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many processes and threads the tasks of a run may have together, where nobody has said it.
 *
 * The ceiling is there for the machine: a task that forks without end must not get the last number
 * of a process, with which somebody would have ended it. So it is never more than half of what
 * there can be, whatever the number of tasks; a ceiling for each task would protect nothing once
 * there are enough of them.
 */
#ifndef BACKEND_LOCAL_CEILING_H
#define BACKEND_LOCAL_CEILING_H

#include <stdint.h>

/* What a control file, or one below /proc/sys, says. INT64_MAX: "max", or nothing that is a
 * number. */
int64_t ceiling_read(const char *text);

/* `each` for every task, but no more than half of the room; at least 1. */
int64_t ceiling_of_run(uint32_t each, uint32_t n_tasks, int64_t room);

/* How many processes there can be in a group: as many as the kernel has numbers and memory for, and
 * as the group and those above it may have, as far as they are seen from here. */
int64_t ceiling_room(const char *group);

#endif
