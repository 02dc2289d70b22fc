/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards standard output and standard error: whatever a command prints, with whatever names,
 * messages and paths of others in it, passes codec/visible.h on its way out. So no place that
 * prints can be forgotten.
 *
 * On a terminal this always holds. Into a pipe or a file it holds for what people read; a command
 * that writes data (JSON, CSV, a manifest) passes every byte on as it is. What the tasks wrote goes
 * past the streams (cli/follow.h), which makes it visible itself.
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include <stdio.h>

/* Puts guarded streams in the place of stdout and stderr. Once, before anything is printed. */
void guard_streams(void);

/* From now on standard output is data. */
void guard_pass_data(void);

/* Writes a sequence of our own for the terminal, behind what was printed so far. */
void guard_control(FILE *out, const char *sequence);

/* Gives out what may have been the beginning of a sequence. For the end of the program. */
void guard_end(void);

#endif
