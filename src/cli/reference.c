/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of the commands as one page of Markdown: docs/cli.md. */
#include <string.h>

#include "cli/pages.h"
#include "cli/prose.h"

void markdown_prose(FILE *out, struct span text) {
    bool in_code = false;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.text[i];

        if (c == '`')
            in_code = !in_code;
        else if (c == '|' || (!in_code && strchr("\\*_<>[]", c)))
            fputc('\\', out);
        fputc(c == '\n' ? ' ' : c, out);
    }
}

static void put_description(FILE *out, const char *rest) {
    struct span paragraph;

    while (prose_paragraph(&rest, &paragraph)) {
        fputc('\n', out);
        if (prose_is_verbatim(paragraph))
            fprintf(out, "```\n%.*s\n```", (int)paragraph.n, paragraph.text);
        else
            markdown_prose(out, paragraph);
        fputc('\n', out);
    }
}

static void put_commands(FILE *out) {
    fputs("\n| command | what it does |\n|---|---|\n", out);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(out, "| [`%s`](#myelin-%s) | ", commands[i]->name, commands[i]->name);
        markdown_prose(out, span_of(commands[i]->summary));
        fputs(" |\n", out);
    }
}

/* The common options stand once, in the program's section. */
static void put_options(FILE *out, const struct command *command) {
    char text[OPTION_TEXT_MAX];
    const struct option *option;
    bool is_first = true;

    for (size_t i = 0; (option = command_option(command, i)); i++) {
        if (option == common_options && command != &command_program)
            break;
        fputs(is_first ? "\n| option | meaning |\n|---|---|\n" : "", out);
        is_first = false;
        fputs("| ", out);
        if (option->letter)
            fprintf(out, "`-%c`, ", option->letter);
        fprintf(out, "`--%s%s%s` | ", option->name, option->argument ? " " : "",
                option->argument ? option->argument : "");
        option_text(option, text);
        markdown_prose(out, span_of(text));
        fputs(" |\n", out);
    }
}

static void put_statuses(FILE *out, const struct command *command) {
    if (!command->statuses && command != &command_program)
        return;
    fputs("\n| exit status | meaning |\n|---|---|\n", out);
    for (const struct status_help *row = command_statuses(command); row->status; row++) {
        fputs("| ", out);
        markdown_prose(out, span_of(row->status));
        fputs(" | ", out);
        markdown_prose(out, span_of(row->meaning));
        fputs(" |\n", out);
    }
}

void reference_section(FILE *out, const struct command *command) {
    char typed[OPTION_LABEL_MAX];

    command_typed(command, typed);
    fprintf(out, "## %s\n\n", typed);
    markdown_prose(out, span_of(command->summary));
    fprintf(out, "\n\n```\n%s [OPTION...]%s%s\n```\n", typed, command->arguments ? " " : "",
            command->arguments ? command->arguments : "");
    put_description(out, command->description);
    if (command == &command_program)
        put_commands(out);
    put_options(out, command);
    put_statuses(out, command);
    if (command->examples)
        fprintf(out, "\n```sh\n%s%s```\n", command->examples,
                command->examples[strlen(command->examples) - 1] == '\n' ? "" : "\n");
}

void reference_page(FILE *out) {
    fputs("<!-- Made by 'myelin man --markdown > docs/cli.md'; edit the rows in src/cli. -->\n"
          "# The command line\n\n",
          out);
    reference_section(out, &command_program);
    for (size_t i = 0; commands[i]; i++) {
        fputc('\n', out);
        reference_section(out, commands[i]);
    }
}
