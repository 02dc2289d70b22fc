/* SPDX-License-Identifier: Apache-2.0 */
/* The manual pages, in the man macros of roff. */
#include <ctype.h>
#include <string.h>

#include "cli/pages.h"
#include "cli/prose.h"

/* In what is typed, a hyphen must stay the ASCII character, so that it can be copied from the
 * page and searched for; in prose it may become a hyphen, where a line may be broken. */
enum roff_style { ROFF_PROSE, ROFF_TYPED };

static void put_character(FILE *out, char c, enum roff_style style) {
    static const char *const escapes[128] = {
        ['\\'] = "\\(rs", ['\''] = "\\(aq", ['`'] = "\\(ga", ['^'] = "\\(ha", ['~'] = "\\(ti",
    };

    if (c == '-' && style == ROFF_TYPED)
        fputs("\\-", out);
    else if (escapes[c & 0x7f])
        fputs(escapes[c & 0x7f], out);
    else
        fputc(c, out);
}

/* A dot at the start of a line would be a request. */
static void guard_line(FILE *out, struct span line) {
    if (line.n && line.text[0] == '.')
        fputs("\\&", out);
}

static void put_typed(FILE *out, struct span text) {
    for (size_t i = 0; i < text.n; i++)
        put_character(out, text.text[i], ROFF_TYPED);
}

/* One line of filled text. What stands in backticks is bold; a word that starts with a hyphen
 * is an option, also without them. */
static void put_prose(FILE *out, struct span text) {
    bool in_code = false, is_first = true;
    struct span word;

    guard_line(out, text);
    while (prose_word(&text, &word)) {
        enum roff_style style = word.text[0] == '-' ? ROFF_TYPED : ROFF_PROSE;

        if (!is_first)
            fputc(' ', out);
        is_first = false;
        for (size_t i = 0; i < word.n; i++) {
            if (word.text[i] == '`') {
                in_code = !in_code;
                fputs(in_code ? "\\fB" : "\\fR", out);
            } else {
                put_character(out, word.text[i], in_code ? ROFF_TYPED : style);
            }
        }
    }
    fputs(in_code ? "\\fR\n" : "\n", out);
}

static void put_verbatim(FILE *out, struct span text) {
    const char *end = text.text + text.n;

    fputs(".PP\n.nf\n", out);
    for (const char *line = text.text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        struct span part = { line, (size_t)((stop ? stop : end) - line) };

        guard_line(out, part);
        put_typed(out, part);
        fputc('\n', out);
        line = stop ? stop + 1 : end;
    }
    fputs(".fi\n", out);
}

/* "myelin" or "myelin-run": the name of the page. */
static void put_page_name(FILE *out, const struct command *command) {
    fputs(command_program.name, out);
    if (command != &command_program) {
        fputs("\\-", out);
        put_typed(out, span_of(command->name));
    }
}

static void put_header(FILE *out, const struct command *command) {
    char typed[OPTION_LABEL_MAX];

    fputs(".TH \"", out);
    for (const char *c = command_typed(command, typed); *c; c++)
        fputs(*c == ' ' ? "\\-" : (char[]){ (char)toupper((unsigned char)*c), '\0' }, out);
    fprintf(out, "\" 1 \"\" \"myelin %s\" \"User Commands\"\n", MYELIN_VERSION);

    fputs(".SH NAME\n", out);
    put_page_name(out, command);
    fputs(" \\- ", out);
    put_prose(out, span_of(command->summary));
}

static void put_synopsis(FILE *out, const struct command *command) {
    char typed[OPTION_LABEL_MAX];

    fputs(".SH SYNOPSIS\n\\fB", out);
    put_typed(out, span_of(command_typed(command, typed)));
    fputs("\\fR [\\fIOPTION\\fR...]", out);
    if (command->arguments) {
        fputc(' ', out);
        /* The words in capitals stand for something: they are slanted, the brackets are not. */
        for (const char *c = command->arguments; *c; c++) {
            bool starts = isupper((unsigned char)*c) &&
                          (c == command->arguments || !isupper((unsigned char)c[-1]));
            bool ends = isupper((unsigned char)*c) && !isupper((unsigned char)c[1]);

            fputs(starts ? "\\fI" : "", out);
            put_character(out, *c, ROFF_TYPED);
            fputs(ends ? "\\fR" : "", out);
        }
    }
    fputc('\n', out);
}

static void put_description(FILE *out, const struct command *command) {
    const char *rest = command->description;
    struct span paragraph;
    bool is_first = true;

    fputs(".SH DESCRIPTION\n", out);
    while (prose_paragraph(&rest, &paragraph)) {
        if (prose_is_verbatim(paragraph)) {
            put_verbatim(out, paragraph);
        } else {
            fputs(is_first ? "" : ".PP\n", out);
            put_prose(out, paragraph);
        }
        is_first = false;
    }
}

static void put_options(FILE *out, const struct command *command) {
    char text[OPTION_TEXT_MAX];
    const struct option *option;

    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; (option = command_option(command, i)); i++) {
        fputs(".TP\n", out);
        if (option->letter)
            fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
        fputs("\\fB\\-\\-", out);
        put_typed(out, span_of(option->name));
        fputs("\\fR", out);
        if (option->argument) {
            fputs(" \\fI", out);
            put_typed(out, span_of(option->argument));
            fputs("\\fR", out);
        }
        fputc('\n', out);
        option_text(option, text);
        put_prose(out, span_of(text));
    }
}

static void put_commands(FILE *out) {
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 0; commands[i]; i++) {
        fputs(".TP\n\\fB", out);
        put_typed(out, span_of(commands[i]->name));
        fputs("\\fR\n", out);
        put_prose(out, span_of(commands[i]->summary));
    }
}

static void put_statuses(FILE *out, const struct command *command) {
    fputs(".SH EXIT STATUS\n", out);
    for (const struct status_help *row = command_statuses(command); row->status; row++) {
        fputs(".TP\n", out);
        put_prose(out, span_of(row->status));
        put_prose(out, span_of(row->meaning));
    }
}

static void put_examples(FILE *out, const struct command *command) {
    const char *rest = command->examples;
    struct span line, example, remark;

    if (!rest)
        return;
    fputs(".SH EXAMPLES\n", out);
    while (prose_line(&rest, &line)) {
        prose_example(line, &example, &remark);
        fputs(".TP\n", out);
        guard_line(out, example);
        put_typed(out, example);
        fputc('\n', out);
        put_prose(out, remark);
    }
}

/* The program's page names all others; theirs name it. */
static void put_see_also(FILE *out, const struct command *command) {
    fputs(".SH SEE ALSO\n", out);
    if (command != &command_program) {
        fputs(".BR myelin (1)\n", out);
        return;
    }
    for (size_t i = 0; commands[i]; i++) {
        fputs(".BR ", out);
        put_page_name(out, commands[i]);
        fputs(commands[i + 1] ? " (1),\n" : " (1)\n", out);
    }
}

void manual_page(FILE *out, const struct command *command) {
    fputs(".\\\" Made by 'myelin man' from the rows of the commands.\n", out);
    put_header(out, command);
    put_synopsis(out, command);
    put_description(out, command);
    if (command == &command_program)
        put_commands(out);
    put_options(out, command);
    put_statuses(out, command);
    put_examples(out, command);
    put_see_also(out, command);
}
