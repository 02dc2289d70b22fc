/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/contents.h"

#include <string.h>

#include "codec/json.h"
#include "codec/json_read.h"
#include "model/uuid.h"
#include "store/models.h"

void contents_release(struct contents *contents) {
    for (size_t i = 0; i < contents->runs.len; i++)
        VEC_RELEASE(&contents->runs.items[i].models);
    VEC_RELEASE(&contents->runs);
    arena_release(&contents->arena);
}

/* ---- writing ---- */

static void write_int(struct json *json, const char *key, int64_t value) {
    json_key(json, key);
    json_int(json, value);
}

static void write_model(struct json *json, const struct contents_model *model) {
    json_object(json);
    json_key(json, "name");
    json_text(json, model->name);
    write_int(json, "version", model->version);
    json_key(json, "aliases");
    json_array(json);
    for (size_t i = 0; i < model->n_aliases; i++)
        json_text(json, model->aliases[i]);
    json_end(json);
    json_end(json);
}

static void write_run(struct json *json, const struct contents_run *run) {
    json_object(json);
    json_key(json, "uuid");
    json_text(json, run->uuid);
    write_int(json, "id", run->id);
    write_int(json, "files", (int64_t)run->files);
    write_int(json, "bytes", (int64_t)run->bytes);
    json_key(json, "models");
    json_array(json);
    for (size_t i = 0; i < run->models.len; i++)
        write_model(json, &run->models.items[i]);
    json_end(json);
    json_end(json);
}

int contents_format(const struct contents *contents, struct buf *out, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_buf, out);
    json_object(&json);
    write_int(&json, "format", CONTENTS_FORMAT);
    json_key(&json, "runs");
    json_array(&json);
    for (size_t i = 0; i < contents->runs.len; i++)
        write_run(&json, &contents->runs.items[i]);
    json_end(&json);
    json_end(&json);
    return json_finish(&json, err);
}

/* ---- reading ---- */

static const char *keep(struct arena *arena, const char *text) {
    return arena_text(arena, text, strlen(text));
}

static int read_aliases(struct arena *arena, const struct node *list, struct contents_model *out,
                        struct error *err) {
    if (!list || list->kind != NODE_LIST)
        return error_set(err, ERROR_INVALID, "a model has no list 'aliases'");
    out->aliases = ARENA_ARRAY(arena, const char *, list->count);
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].kind != NODE_TEXT)
            return error_set(err, ERROR_INVALID, "an alias is no text");
        if (model_alias_check(list->items[i].text, err))
            return -1;
        out->aliases[out->n_aliases++] = keep(arena, list->items[i].text);
    }
    return 0;
}

static int read_model(struct arena *arena, const struct node *node, struct contents_model *out,
                      struct error *err) {
    const char *name = node_get_text(node, "name", NULL);

    out->version = node_get_int(node, "version", 1, -1);
    if (!name || out->version < 1 || out->version > INT32_MAX)
        return error_set(err, ERROR_INVALID, "an entry of 'models' is no model");
    if (model_name_check(name, err))
        return -1;
    out->name = keep(arena, name);
    return read_aliases(arena, node_get(node, "aliases"), out, err);
}

static int read_run(struct contents *contents, const struct node *node, struct error *err) {
    const struct node *models = node_get(node, "models");
    const char *uuid = node_get_text(node, "uuid", NULL);
    const int64_t id = node_get_int(node, "id", 1, -1), files = node_get_int(node, "files", 0, -1);
    const int64_t bytes = node_get_int(node, "bytes", 0, -1);
    struct contents_run *run;

    if (!uuid_is_valid(uuid) || id < 1 || files < 0 || bytes < 0 || !models ||
        models->kind != NODE_LIST)
        return error_set(err, ERROR_INVALID, "an entry of 'runs' is no run");
    for (size_t i = 0; i < contents->runs.len; i++)
        if (strcmp(contents->runs.items[i].uuid, uuid) == 0)
            return error_set(err, ERROR_INVALID, "the run %s is there twice", uuid);
    run = VEC_PUSH(&contents->runs);
    *run = (struct contents_run){ .uuid = keep(&contents->arena, uuid),
                                  .id = id,
                                  .files = (uint64_t)files,
                                  .bytes = (uint64_t)bytes };
    for (size_t i = 0; i < models->count; i++)
        if (read_model(&contents->arena, &models->items[i], VEC_PUSH(&run->models), err))
            return -1;
    return 0;
}

static int read_all(struct contents *contents, const struct node *root, struct error *err) {
    const int64_t format = node_get_int(root, "format", 1, -1);
    const struct node *runs = node_get(root, "runs");

    if (format < 1)
        return error_set(err, ERROR_INVALID, "it does not say its 'format'");
    if (format > CONTENTS_FORMAT)
        return error_set(err, ERROR_INVALID,
                         "it was written by a newer myelin (format %lld, this one knows %d): use "
                         "that one",
                         (long long)format, CONTENTS_FORMAT);
    if (!runs || runs->kind != NODE_LIST || runs->count == 0)
        return error_set(err, ERROR_INVALID, "it lists no 'runs'");
    for (size_t i = 0; i < runs->count; i++)
        if (read_run(contents, &runs->items[i], err))
            return -1;
    return 0;
}

int contents_parse(const char *text, size_t n, struct contents *out, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct contents contents = { 0 };
    struct node root;

    if (json_read(text, n, &arena, &root, err)) {
        err->code = ERROR_INVALID;
        return -1;
    }
    if (read_all(&contents, &root, err)) {
        contents_release(&contents);
        return -1;
    }
    *out = contents;
    return 0;
}
