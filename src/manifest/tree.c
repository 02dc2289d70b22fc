/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/tree.h"

#include <string.h>

static const struct place nowhere = { 0 };

struct tree tree_map(struct arena *arena) {
    return (struct tree){ .arena = arena, .kind = NODE_MAP };
}

struct tree tree_list(struct arena *arena) {
    return (struct tree){ .arena = arena, .kind = NODE_LIST };
}

struct node tree_node(const struct tree *tree) {
    return tree->kind == NODE_MAP ? node_map(tree->members, tree->count, nowhere)
                                  : node_list(tree->items, tree->count, nowhere);
}

/* Room for one more; what outgrew its place stays in the arena until the arena goes. */
static void *grow(struct tree *tree, const void *old, size_t size) {
    void *wider;

    if (tree->count < tree->capacity)
        return NULL;
    tree->capacity = tree->capacity ? tree->capacity * 2 : 8;
    wider = arena_alloc(tree->arena, tree->capacity * size);
    if (tree->count)
        memcpy(wider, old, tree->count * size);
    return wider;
}

void tree_put(struct tree *map, const char *key, struct node value) {
    struct member *wider = grow(map, map->members, sizeof *wider);

    if (wider)
        map->members = wider;
    map->members[map->count++] = (struct member){ .key = key, .value = value };
}

void tree_text(struct tree *map, const char *key, const char *text) {
    if (text)
        tree_put(map, key, node_text(text, strlen(text), nowhere));
}

void tree_int(struct tree *map, const char *key, int64_t value) {
    tree_put(map, key, node_int(value, nowhere));
}

void tree_bool(struct tree *map, const char *key, bool value) {
    tree_put(map, key, node_bool(value, nowhere));
}

void tree_filled(struct tree *map, const char *key, const struct tree *value) {
    if (value->count)
        tree_put(map, key, tree_node(value));
}

void tree_add(struct tree *list, struct node item) {
    struct node *wider = grow(list, list->items, sizeof *wider);

    if (wider)
        list->items = wider;
    list->items[list->count++] = item;
}

void tree_add_text(struct tree *list, const char *text) {
    tree_add(list, node_text(text, strlen(text), nowhere));
}
