/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as rules of what is ignored, and any path, which stands behind the last newline.
 * Beyond "no crash, no endless search": the last rule has the last word, so a rule that names the
 * path makes it ignored, its negation keeps it, and neither says anything of another path. The
 * same bytes are also an address that may hold a password.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "code/ignore.h"
#include "code/remote.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool law) {
    if (!law)
        abort();
}

/* A path as who walks a tree has it. */
static bool is_path(const char *path) {
    for (const char *p = path;; p++) {
        const size_t n = strcspn(p, "/");

        if (n == 0 || strchr(path, '\r'))
            return false;
        if (!p[n])
            return true;
        p += n;
    }
}

/* A rule for this path alone, whatever is in it. */
static const char *rule_for(const char *path, const char *sign, struct arena *arena) {
    char *rule = arena_alloc(arena, 2 * strlen(path) + 4), *end = rule;

    end = stpcpy(end, sign);
    *end++ = '/';
    for (; *path; path++) {
        if (*path != '/')
            *end++ = '\\';
        *end++ = *path;
    }
    return rule;
}

static enum ignore_answer ask_with(struct ignore_rules *rules, const char *rule, const char *path,
                                   struct arena *arena) {
    enum ignore_answer answer;

    ignore_parse(rules, rule, strlen(rule), arena);
    answer = ignore_ask(rules, path, IGNORE_FILE);
    rules->list.len--;
    return answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    AUTO(arena) arena = ARENA_INIT;
    struct ignore_rules rules = { 0 };
    const char *newline, *path;

    if (size > 4096)
        return 0;
    newline = memrchr(data, '\n', size);
    ignore_parse(&rules, (const char *)data, newline ? (size_t)(newline - (const char *)data) : 0,
                 &arena);
    path = newline ? newline + 1 : (const char *)data;
    path = arena_text(&arena, path, size - (size_t)(path - (const char *)data));
    if (is_path(path) && strlen(path) < IGNORE_LINE_MOST / 2 - 4) {
        const enum ignore_answer before = ignore_ask(&rules, path, IGNORE_FILE);

        ignore_ask(&rules, path, IGNORE_FOLDER);
        require(ask_with(&rules, rule_for(path, "", &arena), path, &arena) == IGNORE_IGNORED);
        require(ask_with(&rules, rule_for(path, "!", &arena), path, &arena) == IGNORE_KEPT);
        require(ask_with(&rules, rule_for(arena_printf(&arena, "%sx", path), "", &arena), path,
                         &arena) == before);
    }
    ignore_release(&rules);
    require(strlen(remote_clean(path, &arena)) <= strlen(path));
    return 0;
}
