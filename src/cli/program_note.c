/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program_note.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/program.h"

/* Of POSIX shells and bash: words that are no programs, though one of that name may exist. */
static const char *const shell_words[] = {
    "alias",   "bg",       "break",  "builtin",  "case",    "cd",     "command", "continue",
    "declare", "do",       "done",   "echo",     "eval",    "exec",   "exit",    "export",
    "false",   "fg",       "for",    "function", "getopts", "hash",   "if",      "jobs",
    "kill",    "let",      "local",  "mapfile",  "popd",    "printf", "pushd",   "pwd",
    "read",    "readonly", "return", "select",   "set",     "shift",  "shopt",   "source",
    "test",    "time",     "times",  "trap",     "true",    "type",   "typeset", "ulimit",
    "umask",   "unalias",  "unset",  "until",    "wait",    "while",
};

static bool is_shell_word(const char *word) {
    for (size_t i = 0; i < ARRAY_LEN(shell_words); i++)
        if (strcmp(shell_words[i], word) == 0)
            return true;
    return false;
}

bool program_note(const struct plan *plan, char out[static PROGRAM_NOTE_MOST]) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    const char *command = plan->command ? plan->command : "";
    const size_t n = strspn(command, plain);
    char word[64], found[PATH_MAX], near[NAME_MAX + 1];
    struct error ignored;
    int errnum;

    if (n == 0 || n >= sizeof word || (command[n] && command[n] != ' '))
        return false;
    snprintf(word, sizeof word, "%.*s", (int)n, command);
    if (is_shell_word(word) || program_find(word, environ, NULL, found, &errnum, &ignored) == 0 ||
        !program_nearest(word, environ, near))
        return false;
    snprintf(out, PROGRAM_NOTE_MOST,
             "there is no program `%s` in the PATH here; did you mean `%s`?", word, near);
    return true;
}
