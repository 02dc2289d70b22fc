/* SPDX-License-Identifier: Apache-2.0 */
#include "code/ignore.h"

#include <ctype.h>
#include <string.h>

void ignore_release(struct ignore_rules *rules) {
    VEC_RELEASE(&rules->list);
}

/* ---- lines ---- */

/* Blanks at the end do not count, unless a backslash stands before them. */
static size_t without_blanks(const char *line, size_t n) {
    size_t end = n;
    bool is_blank = false;

    for (size_t i = 0; i < n; i++) {
        if (line[i] == ' ' && !is_blank)
            end = i;
        is_blank = line[i] == ' ';
        if (line[i] == '\\' && ++i == n)
            return n; /* it stands for itself, which no path matches */
    }
    return is_blank ? end : n;
}

static void add_line(struct ignore_rules *rules, const char *line, size_t n, struct arena *arena) {
    struct ignore_rule rule = { 0 };
    const char *slash;

    if (n > 0 && line[n - 1] == '\r')
        n--;
    if (n == 0 || line[0] == '#' || n > IGNORE_LINE_MOST || memchr(line, '\0', n))
        return;
    n = without_blanks(line, n);
    if (n > 0 && line[0] == '!') {
        rule.is_negated = true;
        line++, n--;
    }
    if (n > 0 && line[n - 1] == '/') {
        rule.is_for_folders = true;
        n--;
    }
    slash = memchr(line, '/', n);
    rule.is_anchored = slash != NULL;
    if (slash == line)
        line++, n--;
    if (n == 0)
        return;
    rule.pattern = arena_text(arena, line, n);
    rule.literal = strcspn(rule.pattern, "*?[\\");
    *VEC_PUSH(&rules->list) = rule;
}

void ignore_parse(struct ignore_rules *rules, const char *text, size_t n, struct arena *arena) {
    static const char mark[] = "\xef\xbb\xbf";
    const char *end = text + n;

    if (n >= 3 && memcmp(text, mark, 3) == 0)
        text += 3;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;

        add_line(rules, text, (size_t)(stop - text), arena);
        text = stop + 1;
    }
}

/* ---- patterns ---- */

static const struct {
    const char *name;
    int (*holds)(int c);
} classes[] = {
    { "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
    { "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
    { "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
};

/* Of "[:name:]", which begins at p; *after is behind it. False where it is none that is known. */
static bool in_class(const char *p, unsigned char c, const char **after, bool *out) {
    const char *end = strstr(p + 2, ":]");

    for (size_t i = 0; end && i < ARRAY_LEN(classes); i++)
        if (strncmp(p + 2, classes[i].name, (size_t)(end - p - 2)) == 0 &&
            classes[i].name[end - p - 2] == '\0') {
            *out = classes[i].holds(c) != 0;
            *after = end + 2;
            return true;
        }
    return false;
}

/* One character of a set; *p is moved behind it. 0: the pattern ends. */
static unsigned char set_character(const char **p) {
    if (**p == '\\')
        (*p)++;
    return **p ? (unsigned char)*(*p)++ : 0;
}

/* A set "[...]", whose bracket is at p. NULL: it is never closed, and matches nothing. */
static const char *match_set(const char *p, unsigned char c, bool *out) {
    const bool is_negated = p[1] == '!' || p[1] == '^';
    bool found = false, holds;

    p += is_negated ? 2 : 1;
    for (bool is_first = true; is_first || *p != ']'; is_first = false) {
        unsigned char low, high;

        if (p[0] == '[' && p[1] == ':') {
            if (in_class(p, c, &p, &holds)) {
                found |= holds;
                continue;
            }
            if (strstr(p + 2, ":]"))
                return NULL; /* a class that nobody knows */
        }
        low = high = set_character(&p);
        if (p[0] == '-' && p[1] != ']' && p[1] != '\0') {
            p++;
            high = set_character(&p);
        }
        if (low == 0 || high == 0)
            return NULL;
        found |= low <= c && c <= high;
    }
    *out = found != is_negated;
    return p + 1;
}

/* One character of the pattern that is no star; the end of what it takes, or NULL: it is another
 * one. */
static const char *match_one(const char *p, char c) {
    bool holds;

    if (c == '\0' || *p == '\0')
        return NULL;
    switch (*p) {
    case '?': return c == '/' ? NULL : p + 1;
    case '[': p = match_set(p, (unsigned char)c, &holds); return p && holds && c != '/' ? p : NULL;
    case '\\': return p[1] == c ? p + 2 : NULL;
    default: return *p == c ? p + 1 : NULL;
    }
}

/* A place to go back to: this pattern, with the text from here on. */
struct choice {
    const char *p, *text;
};

/* Takes the last choice differently. A star grows by one character of its part of the path, "**"
 * by one part. To change an earlier choice of the same kind would not help: whatever the later
 * one can be, it can be from there too. */
static bool choose_again(struct choice *star, struct choice *folders, struct choice *now) {
    if (star->p && *star->text != '\0' && *star->text != '/') {
        star->text++;
        *now = *star;
        return true;
    }
    star->p = NULL;
    if (!folders->p || !strchr(folders->text, '/'))
        return false;
    folders->text = strchr(folders->text, '/') + 1;
    *now = *folders;
    return true;
}

static bool match(const char *pattern, const char *text) {
    struct choice star = { 0 }, folders = { 0 }, now = { pattern, text };

    for (;;) {
        const char *next = now.p + strspn(now.p, "*");
        const bool is_part = next - now.p > 1 && (now.p == pattern || now.p[-1] == '/');

        if (is_part && *next == '\0')
            return true;
        if (is_part && *next == '/') {
            now.p = next + 1;
            folders = now;
            star.p = NULL;
        } else if (next > now.p) {
            now.p = next;
            star = now;
        } else if (*now.p == '\0' && *now.text == '\0') {
            return true;
        } else if ((next = match_one(now.p, *now.text))) {
            now.p = next;
            now.text++;
        } else if (!choose_again(&star, &folders, &now)) {
            return false;
        }
    }
}

/* ---- the answer ---- */

static bool rule_matches(const struct ignore_rule *rule, const char *path, const char *name,
                         enum ignore_kind kind) {
    const char *text = rule->is_anchored ? path : name;

    if (rule->is_for_folders && kind != IGNORE_FOLDER)
        return false;
    if (strncmp(rule->pattern, text, rule->literal) != 0)
        return false;
    return match(rule->pattern + rule->literal, text + rule->literal);
}

enum ignore_answer ignore_ask(const struct ignore_rules *rules, const char *path,
                              enum ignore_kind kind) {
    const char *slash = strrchr(path, '/');

    for (size_t i = rules->list.len; i-- > 0;) {
        const struct ignore_rule *rule = &rules->list.items[i];

        if (rule_matches(rule, path, slash ? slash + 1 : path, kind))
            return rule->is_negated ? IGNORE_KEPT : IGNORE_IGNORED;
    }
    return IGNORE_UNDECIDED;
}
