/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree that every document becomes, whatever text it was read from, and the
 * sources that its places point into.
 *
 * A node is a value with the place it came from. Nodes live in the arena of their
 * document and are never freed by themselves. 24 bytes a node: a file with 100,000
 * entries has to stay small, so a place is an offset into its source, and line and
 * column are worked out only for what is shown.
 *
 * Aliases of a YAML document share their node; a tree is therefore only changed
 * through node_* functions that build new nodes.
 */
#ifndef CODEC_NODE_H
#define CODEC_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

/* One text that was read: a file, standard input, or one `-P name=value`. */
struct source {
    const char *name;
    const char *text; /* not NUL-terminated */
    size_t len;
    char *owned; /* text, where it was taken over from a buffer */
};

/* All texts of one compilation; a place names its source by number. */
struct sources {
    VEC(struct source) list;
    struct arena arena; /* names, and texts that are not mapped from a file */
};

/* Each keeps a copy of name and returns the source's number. The first copies the text, the
 * second takes the buffer's. */
uint16_t sources_add(struct sources *sources, const char *name, const char *text, size_t len);
uint16_t sources_take(struct sources *sources, const char *name, struct buf *text);
void sources_release(struct sources *sources);

struct place {
    uint32_t offset, length; /* bytes; length 0 points at a position */
    uint16_t source;
};

/* Where a place is for a person: both count from 1, columns in characters. */
struct position {
    uint32_t line, column;
};
struct position sources_position(const struct sources *sources, struct place place);

enum node_kind {
    NODE_NULL,
    NODE_BOOL,
    NODE_INT,
    NODE_FLOAT,
    NODE_TEXT,
    NODE_LIST,
    NODE_MAP,
    NODE_KIND_COUNT,
};

enum node_flags {
    NODE_QUOTED = 1 << 0,   /* text that stood in quotes: never a number by accident */
    NODE_RENDERED = 1 << 1, /* text that came out of a template: may still become what it spells */
};

struct member;

struct node {
    union {
        bool truth;
        int64_t integer;
        double number;
        const char *text; /* NUL-terminated; count bytes; holds no NUL of its own */
        struct node *items;
        struct member *members; /* keys are unique */
    };
    uint32_t offset, length; /* the place in the source */
    uint16_t source;
    uint8_t kind, flags; /* enum node_kind, enum node_flags */
    uint32_t count;      /* bytes of text, items of a list, members of a map */
};

struct member {
    const char *key; /* NUL-terminated, interned: equal keys of one document are one pointer */
    uint32_t key_offset;
    uint16_t key_source, key_length;
    struct node value;
};

static inline struct place node_place(const struct node *node) {
    return (struct place){ node->offset, node->length, node->source };
}
static inline struct place member_place(const struct member *member) {
    return (struct place){ member->key_offset, member->key_length, member->key_source };
}

/* Values without a source text get the place of what caused them. */
struct node node_null(struct place place);
struct node node_bool(bool truth, struct place place);
struct node node_int(int64_t integer, struct place place);
struct node node_float(double number, struct place place);
struct node node_text(const char *text, size_t len, struct place place); /* does not copy */
struct node node_list(struct node *items, size_t n, struct place place); /* does not copy */
struct node node_map(struct member *members, size_t n, struct place place);

/* The member's value, or NULL. `map` may be NULL or of another kind: there is nothing in it then.
 */
const struct node *node_get(const struct node *map, const char *key);
const struct member *node_member(const struct node *map, const char *key);

/* The value of a member of that kind. What is missing, of another kind, or less than `least` (a
 * count: than 0) is `otherwise`, or 0, or false. The second copies the text; NULL: there is none.
 */
const char *node_get_text(const struct node *map, const char *key, const char *otherwise);
const char *node_keep_text(const struct node *map, const char *key, struct arena *arena);
int64_t node_get_int(const struct node *map, const char *key, int64_t least, int64_t otherwise);
uint64_t node_get_count(const struct node *map, const char *key);
bool node_get_truth(const struct node *map, const char *key);

/* The members of a map by key, for who looks up many: a map may have millions. */
struct node_index {
    const struct member **sorted;
    uint32_t count;
};
struct node_index node_index(struct arena *arena, const struct node *map);
const struct member *node_index_find(const struct node_index *index, const char *key);

/* "a list", "text", "a whole number": for sentences. */
const char *node_kind_name(const struct node *node);

/* Deep merge: members of `over` win, maps merge with maps, everything else is replaced whole. */
struct node node_merge(struct arena *arena, const struct node *under, const struct node *over);

bool node_equal(const struct node *a, const struct node *b);

#endif
