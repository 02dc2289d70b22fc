/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "cli/pages.h"
#include "cli/prose.h"
#include "cli/terminal.h"

enum { INDENT = 2, GAP = 2, LABEL_WIDEST = 28 };

static void put_span(FILE *out, struct span span) {
    fwrite(span.text, 1, span.n, out);
}

static void put_blanks(FILE *out, size_t n) {
    fprintf(out, "%*s", (int)n, "");
}

static void put_heading(FILE *out, const char *text) {
    bool bold = terminal_colour(out);

    fprintf(out, "%s%s%s", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

/* Writes text from `column` on, where the cursor is; further lines start at `indent`. */
static void put_wrapped(FILE *out, struct span text, size_t column, size_t indent) {
    size_t width = terminal_width(out);
    bool at_start = true;
    struct span word;

    while (prose_word(&text, &word)) {
        size_t columns = word.n;

        if (!at_start && column + 1 + columns > width) {
            fputc('\n', out);
            put_blanks(out, indent);
            column = indent;
        } else if (!at_start) {
            fputc(' ', out);
            column++;
        }
        put_span(out, word);
        column += columns;
        at_start = false;
    }
    fputc('\n', out);
}

/* One line of a list: the label, and its text in a column that all lines share. */
static void put_item(FILE *out, struct span label, struct span text, size_t label_width) {
    size_t column = INDENT + label_width + GAP, used = INDENT + label.n;

    put_blanks(out, INDENT);
    put_span(out, label);
    if (used + GAP > column) {
        fputc('\n', out);
        used = 0;
    }
    put_blanks(out, column - used);
    put_wrapped(out, text, column, column);
}

/* The common width of labels; one that is wider than most stands on a line of its own. */
static void widen(size_t *width, struct span label) {
    size_t columns = label.n;

    if (columns > *width && columns <= LABEL_WIDEST)
        *width = columns;
}

static void put_usage(FILE *out, const struct command *command) {
    char typed[OPTION_LABEL_MAX];

    put_heading(out, "Usage:");
    fprintf(out, " %s [OPTION...]%s%s\n", command_typed(command, typed),
            command->arguments ? " " : "", command->arguments ? command->arguments : "");
}

/* The summary as a sentence. */
static void put_summary(FILE *out, const struct command *command) {
    char sentence[200];

    snprintf(sentence, sizeof sentence, "%c%s.", toupper((unsigned char)command->summary[0]),
             command->summary + 1);
    fputc('\n', out);
    put_wrapped(out, span_of(sentence), 0, 0);
}

static void put_commands(FILE *out) {
    size_t width = 0;

    put_heading(out, "Commands:");
    fputc('\n', out);
    for (size_t i = 0; commands[i]; i++)
        widen(&width, span_of(commands[i]->name));
    for (size_t i = 0; commands[i]; i++)
        put_item(out, span_of(commands[i]->name), span_of(commands[i]->summary), width);
}

static void put_description(FILE *out, const char *description) {
    struct span paragraph;

    while (prose_paragraph(&description, &paragraph)) {
        fputc('\n', out);
        if (prose_is_verbatim(paragraph)) {
            put_span(out, paragraph);
            fputc('\n', out);
        } else {
            put_wrapped(out, paragraph, 0, 0);
        }
    }
}

static void put_options(FILE *out, const struct command *command) {
    char label[OPTION_LABEL_MAX], text[OPTION_TEXT_MAX];
    const struct option *option;
    size_t width = 0;

    fputc('\n', out);
    put_heading(out, "Options:");
    fputc('\n', out);
    for (size_t i = 0; (option = command_option(command, i)); i++) {
        option_label(option, label);
        widen(&width, span_of(label));
    }
    for (size_t i = 0; (option = command_option(command, i)); i++) {
        option_label(option, label);
        option_text(option, text);
        put_item(out, span_of(label), span_of(text), width);
    }
}

/* Remarks stand beside the commands where all of it fits, else above them. */
static void put_examples(FILE *out, const char *examples) {
    size_t command_width = 0, remark_width = 0;
    struct span line, command, remark;
    const char *rest = examples;
    bool beside;

    if (!examples)
        return;
    while (prose_line(&rest, &line)) {
        prose_example(line, &command, &remark);
        command_width = command.n > command_width ? command.n : command_width;
        remark_width = remark.n > remark_width ? remark.n : remark_width;
    }
    beside = INDENT + command_width + GAP + strlen("# ") + remark_width <= terminal_width(out);

    fputc('\n', out);
    put_heading(out, "Examples:");
    fputc('\n', out);
    for (rest = examples; prose_line(&rest, &line);) {
        prose_example(line, &command, &remark);
        if (remark.n && !beside)
            fprintf(out, "  # %.*s\n", (int)remark.n, remark.text);
        fprintf(out, "  %.*s", (int)command.n, command.text);
        if (remark.n && beside)
            fprintf(out, "%*s# %.*s", (int)(command_width - command.n + GAP), "", (int)remark.n,
                    remark.text);
        fputc('\n', out);
    }
}

static void put_statuses(FILE *out, const struct status_help *statuses) {
    size_t width = 0;

    fputc('\n', out);
    put_heading(out, "Exit status:");
    fputc('\n', out);
    for (const struct status_help *row = statuses; row->status; row++)
        widen(&width, span_of(row->status));
    for (const struct status_help *row = statuses; row->status; row++)
        put_item(out, span_of(row->status), span_of(row->meaning), width);
}

void help_command(FILE *out, const struct command *command) {
    put_usage(out, command);
    put_summary(out, command);
    put_description(out, command->description);
    if (command == &command_program) {
        fputc('\n', out);
        put_commands(out);
    }
    put_options(out, command);
    put_examples(out, command->examples);
    if (command->statuses || command == &command_program)
        put_statuses(out, command_statuses(command));
    if (command == &command_program)
        fputs("\n'myelin help COMMAND' tells more about a command.\n", out);
}

void help_short(FILE *out) {
    put_usage(out, &command_program);
    put_summary(out, &command_program);
    fputc('\n', out);
    put_commands(out);
    fputs("\n'myelin help COMMAND' tells more about a command.\n", out);
}
