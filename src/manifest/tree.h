/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of Kubernetes as nodes, grown member by member in an arena:
 *
 *   struct tree pod = tree_map(arena);
 *   tree_text(&pod, "kind", "Pod");
 *   tree_put(&pod, "metadata", metadata);
 *   struct node node = tree_node(&pod);
 *
 * Texts and keys are not copied. Nodes of the user's file can be put in as they are.
 */
#ifndef MANIFEST_TREE_H
#define MANIFEST_TREE_H

#include "codec/node.h"

struct tree {
    struct arena *arena;
    enum node_kind kind; /* NODE_MAP or NODE_LIST */
    uint32_t count, capacity;
    struct member *members;
    struct node *items;
};

struct tree tree_map(struct arena *arena);
struct tree tree_list(struct arena *arena);
struct node tree_node(const struct tree *tree);

/* Each of a map; `text` may be NULL: then nothing is put. */
void tree_put(struct tree *map, const char *key, struct node value);
void tree_text(struct tree *map, const char *key, const char *text);
void tree_int(struct tree *map, const char *key, int64_t value);
void tree_bool(struct tree *map, const char *key, bool value);
/* Puts what is not empty. */
void tree_filled(struct tree *map, const char *key, const struct tree *value);

void tree_add(struct tree *list, struct node item);
void tree_add_text(struct tree *list, const char *text);

#endif
