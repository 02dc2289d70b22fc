/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be assumed of the place that output goes to: whether it shows colours, how wide it is,
 * and which characters it shows.
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

/* The descriptor of a stream, also of a standard stream that is guarded (cli/guard.h); -1: it has
 * none. */
int terminal_fd(FILE *out);
bool terminal_is(FILE *out);

/* Whether who reads one stream reads the other too: both are the same terminal, pipe or file. */
bool terminal_is_shared(FILE *a, FILE *b);

/* Columns to write in: the terminal's, but within TERMINAL_NARROWEST and TERMINAL_WIDEST, since
 * prose is not readable beyond; TERMINAL_USUAL where there is no terminal. */
enum { TERMINAL_NARROWEST = 40, TERMINAL_USUAL = 80, TERMINAL_WIDEST = 100 };
size_t terminal_width(FILE *out);

/* Columns that a line may have without being wrapped; 0 for a pipe or a file, where a line may
 * have any length. */
size_t terminal_columns(FILE *out);

/* Whether UTF-8 is what the locale says; if no locale is set at all it is assumed. */
bool terminal_is_utf8(void);

/* How text of others is to be shown there: flags of codec/visible.h. */
unsigned terminal_visible(FILE *out);

#endif
