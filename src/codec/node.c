/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

uint16_t sources_add(struct sources *sources, const char *name, const char *text, size_t len) {
    assert(sources->list.len < UINT16_MAX && len < UINT32_MAX);
    *VEC_PUSH(&sources->list) = (struct source){
        .name = arena_text(&sources->arena, name, strlen(name)),
        .text = arena_text(&sources->arena, text, len),
        .len = len,
    };
    return (uint16_t)(sources->list.len - 1);
}

uint16_t sources_take(struct sources *sources, const char *name, struct buf *text) {
    uint16_t number = sources_add(sources, name, "", 0);
    struct source *source = &sources->list.items[number];

    assert(text->len < UINT32_MAX);
    source->len = text->len;
    source->owned = buf_take(text);
    source->text = source->owned;
    return number;
}

void sources_release(struct sources *sources) {
    for (size_t i = 0; i < sources->list.len; i++)
        free(sources->list.items[i].owned);
    VEC_RELEASE(&sources->list);
    arena_release(&sources->arena);
}

static bool is_continuation(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

struct position sources_position(const struct sources *sources, struct place place) {
    const struct source *source = &sources->list.items[place.source];
    size_t offset = place.offset < source->len ? place.offset : source->len;
    struct position position = { 1, 1 };
    size_t line_start = 0;

    for (size_t i = 0; i < offset; i++)
        if (source->text[i] == '\n') {
            position.line++;
            line_start = i + 1;
        }
    for (size_t i = line_start; i < offset; i++)
        if (!is_continuation(source->text[i]))
            position.column++;
    return position;
}

static struct node node_at(enum node_kind kind, struct place place) {
    return (struct node){ .kind = (uint8_t)kind,
                          .offset = place.offset,
                          .length = place.length,
                          .source = place.source };
}

struct node node_null(struct place place) {
    return node_at(NODE_NULL, place);
}

struct node node_bool(bool truth, struct place place) {
    struct node node = node_at(NODE_BOOL, place);

    node.truth = truth;
    return node;
}

struct node node_int(int64_t integer, struct place place) {
    struct node node = node_at(NODE_INT, place);

    node.integer = integer;
    return node;
}

struct node node_float(double number, struct place place) {
    struct node node = node_at(NODE_FLOAT, place);

    node.number = number;
    return node;
}

struct node node_text(const char *text, size_t len, struct place place) {
    struct node node = node_at(NODE_TEXT, place);

    assert(len < UINT32_MAX);
    node.text = text;
    node.count = (uint32_t)len;
    return node;
}

struct node node_list(struct node *items, size_t n, struct place place) {
    struct node node = node_at(NODE_LIST, place);

    assert(n < UINT32_MAX);
    node.items = items;
    node.count = (uint32_t)n;
    return node;
}

struct node node_map(struct member *members, size_t n, struct place place) {
    struct node node = node_at(NODE_MAP, place);

    assert(n < UINT32_MAX);
    node.members = members;
    node.count = (uint32_t)n;
    return node;
}

const struct member *node_member(const struct node *map, const char *key) {
    if (!map || map->kind != NODE_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->count; i++)
        if (strcmp(map->members[i].key, key) == 0)
            return &map->members[i];
    return NULL;
}

const struct node *node_get(const struct node *map, const char *key) {
    const struct member *member = node_member(map, key);

    return member ? &member->value : NULL;
}

const char *node_get_text(const struct node *map, const char *key, const char *otherwise) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_TEXT ? node->text : otherwise;
}

const char *node_keep_text(const struct node *map, const char *key, struct arena *arena) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_TEXT ? arena_text(arena, node->text, node->count) : NULL;
}

int64_t node_get_int(const struct node *map, const char *key, int64_t least, int64_t otherwise) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_INT && node->integer >= least ? node->integer : otherwise;
}

uint64_t node_get_count(const struct node *map, const char *key) {
    return (uint64_t)node_get_int(map, key, 0, 0);
}

bool node_get_truth(const struct node *map, const char *key) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_BOOL && node->truth;
}

static const char *const kind_names[] = {
    [NODE_NULL] = "nothing",   [NODE_BOOL] = "a truth value", [NODE_INT] = "a whole number",
    [NODE_FLOAT] = "a number", [NODE_TEXT] = "text",          [NODE_LIST] = "a list",
    [NODE_MAP] = "a mapping",
};
static_assert(sizeof kind_names / sizeof kind_names[0] == NODE_KIND_COUNT, "every kind has a name");

const char *node_kind_name(const struct node *node) {
    return kind_names[node->kind];
}

static int by_key(const void *a, const void *b) {
    const struct member *const *x = a, *const *y = b;

    return strcmp((*x)->key, (*y)->key);
}

struct node_index node_index(struct arena *arena, const struct node *map) {
    struct node_index index = { .count = map->kind == NODE_MAP ? map->count : 0 };

    index.sorted = ARENA_ARRAY(arena, const struct member *, index.count);
    for (uint32_t i = 0; i < index.count; i++)
        index.sorted[i] = &map->members[i];
    if (index.count > 1)
        qsort(index.sorted, index.count, sizeof *index.sorted, by_key);
    return index;
}

const struct member *node_index_find(const struct node_index *index, const char *key) {
    const struct member wanted = { .key = key }, *at = &wanted;
    const struct member **found = NULL;

    if (index->count > 0)
        found = bsearch(&at, index->sorted, index->count, sizeof *index->sorted, by_key);
    return found ? *found : NULL;
}

struct node node_merge(struct arena *arena, const struct node *under, const struct node *over) {
    struct node_index index;
    struct member *members;
    uint32_t n;

    if (under->kind != NODE_MAP || over->kind != NODE_MAP)
        return *over;
    index = node_index(arena, under);
    members = ARENA_ARRAY(arena, struct member, (size_t)under->count + over->count);
    n = under->count;
    if (n)
        memcpy(members, under->members, n * sizeof *members);
    for (uint32_t i = 0; i < over->count; i++) {
        const struct member *from = &over->members[i];
        const struct member *found = node_index_find(&index, from->key);
        struct member *into = found ? &members[found - under->members] : &members[n++];
        struct node value = found ? node_merge(arena, &found->value, &from->value) : from->value;

        *into = *from;
        into->value = value;
    }
    return node_map(members, n, node_place(over));
}

static bool maps_equal(const struct node *a, const struct node *b) {
    for (uint32_t i = 0; i < a->count; i++) {
        const struct node *other = node_get(b, a->members[i].key);

        if (!other || !node_equal(&a->members[i].value, other))
            return false;
    }
    return true;
}

bool node_equal(const struct node *a, const struct node *b) {
    if (a->kind != b->kind)
        return false;
    switch ((enum node_kind)a->kind) {
    case NODE_NULL: return true;
    case NODE_BOOL: return a->truth == b->truth;
    case NODE_INT: return a->integer == b->integer;
    case NODE_FLOAT: return a->number == b->number;
    case NODE_TEXT: return a->count == b->count && memcmp(a->text, b->text, a->count) == 0;
    case NODE_LIST:
        if (a->count != b->count)
            return false;
        for (uint32_t i = 0; i < a->count; i++)
            if (!node_equal(&a->items[i], &b->items[i]))
                return false;
        return true;
    case NODE_MAP: return a->count == b->count && maps_equal(a, b);
    case NODE_KIND_COUNT: break;
    }
    assert(!"a node has a kind");
    return false;
}
