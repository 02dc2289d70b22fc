/* SPDX-License-Identifier: Apache-2.0 */
#include "store/code_facts.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"

/* The members that are texts. */
static const struct {
    const char *key;
    size_t at;
} texts[] = {
    { "place", offsetof(struct code_facts, place) },
    { "repository", offsetof(struct code_facts, repository) },
    { "commit", offsetof(struct code_facts, commit) },
    { "branch", offsetof(struct code_facts, branch) },
    { "remote", offsetof(struct code_facts, remote) },
    { "trouble", offsetof(struct code_facts, trouble) },
};

void code_names_add(struct code_names *names, const char *name) {
    names->all++;
    if (names->n < CODE_NAMES_MOST)
        names->list[names->n++] = name;
}

/* ---- writing ---- */

static const char *const *text_at(const struct code_facts *facts, size_t i) {
    return (const char *const *)((const char *)facts + texts[i].at);
}

static void write_diff(struct json *json, const struct code_facts *facts) {
    json_key(json, "diff");
    if (!facts->diff_bytes && !facts->is_diff_cut) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key(json, "bytes");
    json_int(json, (int64_t)facts->diff_bytes);
    json_key(json, "cut");
    json_bool(json, facts->is_diff_cut);
    json_key(json, "sha256");
    json_text(json, facts->diff_sha256);
    json_end(json);
}

static void write_untracked(struct json *json, const struct code_names *names) {
    json_key(json, "untracked");
    json_object(json);
    json_key(json, "count");
    json_int(json, (int64_t)names->all);
    json_key(json, "names");
    json_array(json);
    for (uint32_t i = 0; i < names->n; i++)
        json_text(json, names->list[i]);
    json_end(json);
    json_end(json);
}

static void write_snapshot(struct json *json, const struct code_facts *facts) {
    json_key(json, "snapshot");
    if (!facts->snapshot_root) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key(json, "root");
    json_text(json, facts->snapshot_root);
    json_key(json, "files");
    json_int(json, (int64_t)facts->snapshot_files);
    json_key(json, "bytes");
    json_int(json, (int64_t)facts->snapshot_bytes);
    json_key(json, "links_out");
    json_object(json);
    for (uint32_t i = 0; i < facts->links.n; i++) {
        json_key(json, facts->links.names[i]);
        json_text(json, facts->links.targets[i]);
    }
    json_end(json);
    json_end(json);
}

void code_facts_write(struct json *json, const struct code_facts *facts) {
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(json, texts[i].key);
        json_text(json, *text_at(facts, i));
    }
    json_key(json, "dirty");
    if (facts->is_read)
        json_bool(json, facts->is_dirty);
    else
        json_null(json);
    json_key(json, "late");
    json_bool(json, facts->is_late);
    json_key(json, "submodules");
    json_bool(json, facts->has_submodules);
    write_diff(json, facts);
    write_untracked(json, &facts->untracked);
    write_snapshot(json, facts);
}

/* ---- reading ---- */

static void read_untracked(const struct node *node, struct arena *arena, struct code_names *out) {
    const struct node *names = node_get(node, "names");

    for (uint32_t i = 0; names && names->kind == NODE_LIST && i < names->count; i++)
        if (names->items[i].kind == NODE_TEXT)
            code_names_add(out,
                           arena_text(arena, names->items[i].text, strlen(names->items[i].text)));
    if (node_get_count(node, "count") > out->all)
        out->all = node_get_count(node, "count");
}

static void read_snapshot(const struct node *node, struct arena *arena, struct code_facts *out) {
    const struct node *links = node_get(node, "links_out");
    struct code_links *to = &out->links;

    out->snapshot_root = node_keep_text(node, "root", arena);
    out->snapshot_files = node_get_count(node, "files");
    out->snapshot_bytes = node_get_count(node, "bytes");
    for (uint32_t i = 0; links && links->kind == NODE_MAP && i < links->count; i++) {
        const struct member *link = &links->members[i];

        if (link->value.kind != NODE_TEXT || to->n == CODE_NAMES_MOST)
            continue;
        to->names[to->n] = arena_text(arena, link->key, strlen(link->key));
        to->targets[to->n++] = arena_text(arena, link->value.text, strlen(link->value.text));
    }
}

void code_facts_read(const struct node *node, struct arena *arena, struct code_facts *out) {
    const struct node *dirty = node_get(node, "dirty"), *diff = node_get(node, "diff");
    const struct node *untracked = node_get(node, "untracked");
    const struct node *snapshot = node_get(node, "snapshot");
    struct code_facts facts = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = node_keep_text(node, texts[i].key, arena);

        memcpy((char *)&facts + texts[i].at, &text, sizeof text);
    }
    facts.is_read = dirty && dirty->kind == NODE_BOOL;
    facts.is_dirty = node_get_truth(node, "dirty");
    facts.is_late = node_get_truth(node, "late");
    facts.has_submodules = node_get_truth(node, "submodules");
    if (diff && diff->kind == NODE_MAP) {
        facts.diff_bytes = node_get_count(diff, "bytes");
        facts.is_diff_cut = node_get_truth(diff, "cut");
        facts.diff_sha256 = node_keep_text(diff, "sha256", arena);
    }
    if (untracked && untracked->kind == NODE_MAP)
        read_untracked(untracked, arena, &facts.untracked);
    if (snapshot && snapshot->kind == NODE_MAP)
        read_snapshot(snapshot, arena, &facts);
    *out = facts;
}

static const char *copied(const char *text, struct arena *arena) {
    return text ? arena_text(arena, text, strlen(text)) : NULL;
}

struct code_facts code_facts_copy(const struct code_facts *facts, struct arena *arena) {
    struct code_facts copy = *facts;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = copied(*text_at(facts, i), arena);

        memcpy((char *)&copy + texts[i].at, &text, sizeof text);
    }
    copy.diff_sha256 = copied(facts->diff_sha256, arena);
    copy.snapshot_root = copied(facts->snapshot_root, arena);
    for (uint32_t i = 0; i < copy.untracked.n; i++)
        copy.untracked.list[i] = copied(facts->untracked.list[i], arena);
    for (uint32_t i = 0; i < copy.links.n; i++) {
        copy.links.names[i] = copied(facts->links.names[i], arena);
        copy.links.targets[i] = copied(facts->links.targets[i], arena);
    }
    return copy;
}
