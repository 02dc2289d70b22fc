/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be assumed of the place that output goes to: whether it shows colours, and how
 * wide it is.
 *
 * Colour is shown when the output is a terminal, TERM is not "dumb" and NO_COLOR is unset
 * or empty; --color always and --color never overrule all three. The choice is the
 * process's, made once before a command runs.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* The values of --color, in the order of the enum, ended by NULL. */
extern const char *const colour_choices[];

void terminal_choose_colour(enum colour_choice choice);

bool terminal_colour(FILE *out);

/* Columns to write in: the terminal's, but within TERMINAL_NARROWEST and TERMINAL_WIDEST, since
 * prose is not readable beyond; TERMINAL_USUAL where there is no terminal. */
enum { TERMINAL_NARROWEST = 40, TERMINAL_USUAL = 80, TERMINAL_WIDEST = 100 };
size_t terminal_width(FILE *out);

#endif
