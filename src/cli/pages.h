/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made from the rows of the commands: help, manual pages, the reference page and
 * shell completion. All of it is written to a stdio stream; whether that worked is checked
 * once, when the program ends.
 *
 * A command here may also be &command_program: the page is then the program's.
 */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/prose.h"

void help_command(FILE *out, const struct command *command);
/* Usage and the list of commands, for who typed nothing. */
void help_short(FILE *out);

void manual_page(FILE *out, const struct command *command);       /* roff, for man(1) */
void reference_section(FILE *out, const struct command *command); /* Markdown */
void reference_page(FILE *out); /* Markdown: the program and all commands */
void fields_page(FILE *out);    /* Markdown: every field of a polyaxonfile */
/* Prose, with what Markdown or a table would take for markup escaped; not so in backticks. */
void markdown_prose(FILE *out, struct span text);

void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
