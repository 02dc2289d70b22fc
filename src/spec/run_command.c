/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/run_command.h"

#include <string.h>

static const char blanks[] = " \t\r\n\f\v";

/* ---- one line ---- */

/* Lines are joined by one blank; other blanks stay, as they may be quoted. */
static int append_gap(const char *gap, size_t n, struct buf *line, struct error *err) {
    return memchr(gap, '\n', n) ? buf_append(line, " ", 1, err) : buf_append(line, gap, n, err);
}

int run_command_append(const char *text, struct buf *line, struct error *err) {
    bool is_first = true;

    for (const char *p = text; *p;) {
        const char *gap = p, *word = gap + strspn(gap, blanks);
        const size_t n_gap = (size_t)(word - gap);
        size_t n = strcspn(word, blanks);

        p = word + n;
        while (n > 0 && *word == '\\')
            word++, n--;
        while (n > 0 && word[n - 1] == '\\')
            n--;
        if (n == 0)
            continue; /* a lone backslash goes with the blanks before it */
        if (is_first ? line->len > 0 && buf_append(line, " && ", 4, err)
                     : append_gap(gap, n_gap, line, err))
            return -1;
        if (buf_append(line, word, n, err))
            return -1;
        is_first = false;
    }
    return 0;
}

/* ---- several commands ---- */

/* Whether a command goes on behind this line, by how it ends. */
static bool is_open_ended(const char *line, size_t n) {
    return n == 0 || strchr("\\;&|({,[", line[n - 1]) != NULL;
}

/* Whether the line goes on with the one before it, by how it begins. */
static bool is_continuation(const char *line) {
    return strchr("-&|;)}]<>\"'", line[0]) != NULL;
}

static bool leaves_quotes_open(const char *line, size_t n, char *quote) {
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else if (*quote && line[i] == *quote)
            *quote = '\0';
        else if (!*quote && (line[i] == '"' || line[i] == '\''))
            *quote = line[i];
    }
    return *quote != '\0';
}

bool run_command_joins_commands(const char *text, const char **line, size_t *n) {
    bool is_complete = false; /* what came before could be a command of its own */
    char quote = '\0';

    while (*text) {
        const char *start = text + strspn(text, blanks), *end = start + strcspn(start, "\n");

        text = end;
        while (end > start && strchr(blanks, end[-1]))
            end--;
        if (end == start)
            continue;
        if (is_complete && !is_continuation(start)) {
            *line = start;
            *n = (size_t)(end - start);
            return true;
        }
        is_complete = !leaves_quotes_open(start, (size_t)(end - start), &quote) &&
                      !is_open_ended(start, (size_t)(end - start));
    }
    return false;
}
