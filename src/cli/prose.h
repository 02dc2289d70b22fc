/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of the rows, taken apart in the one way that help, manual and reference share.
 */
#ifndef CLI_PROSE_H
#define CLI_PROSE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"

struct span {
    const char *text;
    size_t n;
};

/* Each of these takes the next piece off the front of *rest and returns false when there is
 * none. *rest may be NULL. */

bool prose_paragraph(const char **rest, struct span *paragraph); /* parted by blank lines */
bool prose_line(const char **rest, struct span *line);
bool prose_word(struct span *rest, struct span *word); /* parted by blanks and line ends */

/* A paragraph to be kept as it stands: it starts with a blank. */
bool prose_is_verbatim(struct span paragraph);

/* Parts "command  # what it does"; `remark` is empty when there is none. */
void prose_example(struct span line, struct span *command, struct span *remark);

struct span span_of(const char *text);

enum { OPTION_LABEL_MAX = 120, OPTION_TEXT_MAX = 400 };
/* "-f, --file FILE"; blanks stand in the place of a missing letter. */
void option_label(const struct option *option, char label[static OPTION_LABEL_MAX]);
/* The help, with what the row itself says: the choices, whether it repeats. */
void option_text(const struct option *option, char text[static OPTION_TEXT_MAX]);

/* "run" or, for the program, "myelin"; as typed: "myelin run". */
const char *command_typed(const struct command *command, char typed[static OPTION_LABEL_MAX]);

/* The rows of the command's exit statuses, its own or the usual ones. */
const struct status_help *command_statuses(const struct command *command);

#endif
