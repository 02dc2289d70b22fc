/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the first word of a plan's command is a program of this machine: what `check` and `plan`
 * say before a run fails for it.
 */
#ifndef CLI_PROGRAM_NOTE_H
#define CLI_PROGRAM_NOTE_H

#include "model/plan.h"

enum { PROGRAM_NOTE_MOST = 400 };

/* Writes a sentence if PATH has no such program but one of a near name; false if there is nothing
 * to say. Words that may be the shell's own, paths and assignments are passed over. */
bool program_note(const struct plan *plan, char out[static PROGRAM_NOTE_MOST]);

#endif
