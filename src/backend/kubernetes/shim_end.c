/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/shim_end.h"

#include <stdio.h>

#include "codec/json_read.h"

static bool count_of(const struct node *map, const char *key, uint64_t *out) {
    const struct node *node = node_get(map, key);

    if (!node)
        return true;
    if (node->kind != NODE_INT || node->integer < 0)
        return false;
    *out = (uint64_t)node->integer;
    return true;
}

static bool detail_of(const struct node *map, const char *key, int64_t least, int64_t most,
                      int *out) {
    const struct node *node = node_get(map, key);

    if (!node || node->kind != NODE_INT || node->integer < least || node->integer > most)
        return false;
    *out = (int)node->integer;
    return true;
}

static bool why_of(const struct node *map, const char *key, char out[static SHIM_END_WHY]) {
    const struct node *node = node_get(map, key);

    if (!node || node->kind != NODE_TEXT)
        return false;
    snprintf(out, SHIM_END_WHY, "%s", node->text);
    return true;
}

/* A later row is looked at where the former ones are missing: who gave up has a signal too. */
static bool kind_of(const struct node *map, struct shim_end *end) {
    if (why_of(map, "gave_up", end->why))
        end->kind = SHIM_GAVE_UP;
    else if (why_of(map, "error", end->why)) {
        end->kind = SHIM_NOT_STARTED;
        (void)detail_of(map, "errno", 1, 4095, &end->detail);
    } else if (detail_of(map, "signal", 1, 64, &end->detail))
        end->kind = SHIM_SIGNALLED;
    else if (detail_of(map, "exit", 0, 255, &end->detail))
        end->kind = SHIM_EXITED;
    else
        return false;
    return true;
}

bool shim_end_read(const char *bytes, size_t n, struct shim_end *out) {
    struct arena arena = ARENA_INIT;
    struct shim_end end = { 0 };
    struct error err;
    struct node root;
    bool is_good = n > 0 && n <= SHIM_END_MAX && bytes[0] == '{' &&
                   json_read(bytes, n, &arena, &root, &err) == 0 && root.kind == NODE_MAP &&
                   kind_of(&root, &end) && count_of(&root, "log", &end.log) &&
                   count_of(&root, "lost", &end.lost) && count_of(&root, "unsent", &end.unsent) &&
                   end.lost <= end.log;

    if (is_good)
        *out = end;
    arena_release(&arena);
    return is_good;
}
