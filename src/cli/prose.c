/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prose.h"

#include <stdio.h>
#include <string.h>

bool prose_paragraph(const char **rest, struct span *paragraph) {
    const char *end;

    if (!*rest)
        return false;
    *rest += strspn(*rest, "\n");
    if (!**rest)
        return false;
    end = strstr(*rest, "\n\n");
    paragraph->text = *rest;
    paragraph->n = end ? (size_t)(end - *rest) : strlen(*rest);
    *rest += paragraph->n;
    if (paragraph->text[paragraph->n - 1] == '\n')
        paragraph->n--;
    return true;
}

bool prose_line(const char **rest, struct span *line) {
    if (!*rest || !**rest)
        return false;
    line->text = *rest;
    line->n = strcspn(*rest, "\n");
    *rest += line->n;
    if (**rest == '\n')
        ++*rest;
    return true;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n';
}

bool prose_word(struct span *rest, struct span *word) {
    while (rest->n && is_blank(*rest->text))
        rest->text++, rest->n--;
    if (!rest->n)
        return false;
    word->text = rest->text;
    word->n = 0;
    while (rest->n && !is_blank(*rest->text))
        rest->text++, rest->n--, word->n++;
    return true;
}

bool prose_is_verbatim(struct span paragraph) {
    return paragraph.n && paragraph.text[0] == ' ';
}

void prose_example(struct span line, struct span *command, struct span *remark) {
    const char *mark = memmem(line.text, line.n, " # ", 3);

    *command = line;
    *remark = (struct span){ line.text + line.n, 0 };
    if (mark) {
        command->n = (size_t)(mark - line.text);
        remark->text = mark + 3;
        remark->n = line.n - command->n - 3;
    }
    while (command->n && command->text[command->n - 1] == ' ')
        command->n--;
}

struct span span_of(const char *text) {
    return (struct span){ text, strlen(text) };
}

void option_label(const struct option *option, char label[static OPTION_LABEL_MAX]) {
    char letter[] = "    ";

    if (option->letter)
        memcpy(letter, (char[]){ '-', option->letter, ',' }, 3);
    snprintf(label, OPTION_LABEL_MAX, "%s--%s%s%s", letter, option->name,
             option->argument ? " " : "", option->argument ? option->argument : "");
}

void option_text(const struct option *option, char text[static OPTION_TEXT_MAX]) {
    size_t len = (size_t)snprintf(text, OPTION_TEXT_MAX, "%s", option->help);

    for (size_t i = 0; option->choices && option->choices[i] && len < OPTION_TEXT_MAX; i++)
        len += (size_t)snprintf(text + len, OPTION_TEXT_MAX - len, "%s%s", i ? ", " : "; one of ",
                                option->choices[i]);
    if (option->repeats && len < OPTION_TEXT_MAX)
        snprintf(text + len, OPTION_TEXT_MAX - len, "; may be given more than once");
}

const char *command_typed(const struct command *command, char typed[static OPTION_LABEL_MAX]) {
    snprintf(typed, OPTION_LABEL_MAX, "%s%s%s", command_program.name,
             command == &command_program ? "" : " ",
             command == &command_program ? "" : command->name);
    return typed;
}

const struct status_help *command_statuses(const struct command *command) {
    static const struct status_help usual[] = {
        { "0", "it did what was asked" },
        { "1", "a file is wrong, or what was asked for does not exist or failed" },
        { "2", "the command line is wrong" },
        { 0 },
    };

    return command->statuses ? command->statuses : usual;
}
