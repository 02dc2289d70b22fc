/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/cgroup_map.h"

#include <stdlib.h>
#include <string.h>

/* A stretch of one of the texts. */
struct span {
    const char *at;
    size_t n;
};

static bool span_is(struct span span, const char *text) {
    return span.n == strlen(text) && memcmp(span.at, text, span.n) == 0;
}

/* Takes the first line off the text. */
static bool next_line(const char **text, struct span *line) {
    if (**text == '\0')
        return false;
    *line = (struct span){ *text, strcspn(*text, "\n") };
    *text += line->n + ((*text)[line->n] == '\n');
    return true;
}

/* Takes what stands before the separator off the line; all of it where there is none. */
static struct span next_field(struct span *line, char separator) {
    const char *end = line->n ? memchr(line->at, separator, line->n) : NULL;
    const struct span field = { line->at, end ? (size_t)(end - line->at) : line->n };
    const size_t used = field.n + (end != NULL);

    *line = (struct span){ line->at + used, line->n - used };
    return field;
}

bool cgroup_map_lists(const char *list, size_t n, const char *word, char separator) {
    struct span rest = { list, n };

    while (rest.n && rest.at[rest.n - 1] == '\n')
        rest.n--;
    while (rest.n)
        if (span_is(next_field(&rest, separator), word))
            return true;
    return false;
}

long long cgroup_map_value(const char *text, const char *key) {
    struct span line;

    while (next_line(&text, &line)) {
        const struct span name = next_field(&line, ' ');

        if (span_is(name, key) && line.n && line.at[0] >= '0' && line.at[0] <= '9')
            return strtoll(line.at, NULL, 10); /* ends at the newline or the NUL behind it */
    }
    return -1;
}

/* The process's own group in the tree: "4:memory:/user/7". */
static bool own_group(const char *self, const char *controller, struct span *out) {
    struct span line;

    while (next_line(&self, &line)) {
        const struct span number = next_field(&line, ':');
        const struct span names = next_field(&line, ':');
        const bool is_it = controller ? cgroup_map_lists(names.at, names.n, controller, ',')
                                      : span_is(number, "0") && names.n == 0;

        if (is_it && line.n && line.at[0] == '/') {
            *out = line;
            return true;
        }
    }
    return false;
}

struct mount {
    struct span root; /* which group of the tree is seen at the mount */
    struct span point;
};

/* "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory" */
static bool read_mount(struct span line, const char *controller, struct mount *out) {
    struct span type, options;

    for (int i = 0; i < 3; i++)
        next_field(&line, ' ');
    out->root = next_field(&line, ' ');
    out->point = next_field(&line, ' ');
    while (line.n && !span_is(next_field(&line, ' '), "-"))
        continue; /* options of the mount, and any number of tags */
    type = next_field(&line, ' ');
    next_field(&line, ' ');
    options = next_field(&line, ' ');
    if (!controller)
        return span_is(type, "cgroup2");
    return span_is(type, "cgroup") && cgroup_map_lists(options.at, options.n, controller, ',');
}

static bool is_octal(char c) {
    return c >= '0' && c <= '7';
}

/* Appends; spaces and the like are written \040 in mountinfo. False: it does not fit. */
static bool append(struct cgroup_spot *spot, size_t *len, struct span text, bool is_escaped) {
    for (size_t i = 0; i < text.n; i++) {
        char c = text.at[i];

        if (is_escaped && c == '\\' && text.n - i > 3 && is_octal(text.at[i + 1]) &&
            is_octal(text.at[i + 2]) && is_octal(text.at[i + 3])) {
            c = (char)((text.at[i + 1] - '0') << 6 | (text.at[i + 2] - '0') << 3 |
                       (text.at[i + 3] - '0'));
            i += 3;
        }
        if (*len + 1 >= sizeof spot->path || c == '\0')
            return false;
        spot->path[(*len)++] = c;
    }
    spot->path[*len] = '\0';
    return true;
}

/* A way up is no way that is seen from here: the process was moved out of its namespace. */
static bool leads_up(struct span path) {
    while (path.n)
        if (span_is(next_field(&path, '/'), ".."))
            return true;
    return false;
}

/* The own group as it is seen at the mount. */
static bool resolve(const struct mount *mount, struct span own, struct cgroup_spot *out) {
    const struct span root = span_is(mount->root, "/") ? (struct span){ "", 0 } : mount->root;
    size_t len = 0;

    if (own.n < root.n || memcmp(own.at, root.at, root.n) != 0)
        return false;
    own = (struct span){ own.at + root.n, own.n - root.n };
    if ((own.n && own.at[0] != '/') || leads_up(own) || mount->point.n == 0)
        return false;
    if (own.n == 1)
        own.n = 0; /* the mount itself */
    if (!append(out, &len, mount->point, true))
        return false;
    out->mount_len = len;
    return append(out, &len, own, false);
}

enum cgroup_found cgroup_map_find(const char *mountinfo, const char *self, const char *controller,
                                  struct cgroup_spot *out) {
    enum cgroup_found found = CGROUP_NOT_MOUNTED;
    struct span line, own = { 0 };
    struct mount mount;
    bool is_known = own_group(self, controller, &own);

    while (next_line(&mountinfo, &line)) {
        struct cgroup_spot spot;

        if (!read_mount(line, controller, &mount))
            continue;
        found = CGROUP_OUTSIDE;
        if (is_known && resolve(&mount, own, &spot)) {
            *out = spot;
            return CGROUP_FOUND;
        }
    }
    return found;
}
