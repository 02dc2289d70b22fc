/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `run.cmd` as one line for a shell, by the rule of the original (polyaxon-schemas 0.6.1): the
 * lines of a text are joined by blanks, backslashes at the beginning and the end of a word are
 * dropped (so continuation lines work, also where YAML has folded them), and the texts of a list
 * are joined by
 * `&&`. One thing differs: blanks within a line are kept as they are, because they may be quoted.
 */
#ifndef SPEC_RUN_COMMAND_H
#define SPEC_RUN_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"

/* Appends the words of one text; behind others, after " && ". Pure. */
MUST_CHECK int run_command_append(const char *text, struct buf *line, struct error *err);

/* Whether the text looks like several commands, one a line, which joining makes one: the first line
 * that would become arguments of the one before it. *line points to it and *n is its length. Pure.
 */
bool run_command_joins_commands(const char *text, const char **line, size_t *n);

#endif
