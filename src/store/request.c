/* SPDX-License-Identifier: Apache-2.0 */
#include "store/request.h"

#include <string.h>

#include "base/file.h"
#include "codec/json.h"
#include "codec/json_read.h"

/* Which programs and modules are found depends on these. */
static const char *const variables[] = { "PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH",
                                         "LD_LIBRARY_PATH" };

const char *request_variable(size_t i) {
    return i < ARRAY_LEN(variables) ? variables[i] : NULL;
}

void request_release(struct request *request) {
    VEC_RELEASE(&request->options);
    VEC_RELEASE(&request->environment);
    arena_release(&request->arena);
}

int request_format(const struct request *request, struct buf *out, struct error *err) {
    struct json json;

    json_init(&json, JSON_PRETTY, json_to_buf, out);
    json_object(&json);
    json_key(&json, "options");
    json_array(&json);
    for (size_t i = 0; i < request->options.len; i++) {
        const struct request_pair *option = &request->options.items[i];

        json_object(&json);
        json_key(&json, "name");
        json_text(&json, option->name);
        json_key(&json, "value");
        json_text(&json, option->value);
        json_end(&json);
    }
    json_end(&json);
    json_key(&json, "environment");
    json_object(&json);
    for (size_t i = 0; i < request->environment.len; i++) {
        json_key(&json, request->environment.items[i].name);
        json_text(&json, request->environment.items[i].value);
    }
    json_end(&json);
    json_end(&json);
    return json_finish(&json, err);
}

static bool is_text_or_null(const struct node *node) {
    return node && (node->kind == NODE_TEXT || node->kind == NODE_NULL);
}

/* Files lie beside the request: their names lead nowhere else. */
static bool is_file_name(const struct node *node) {
    return node->kind == NODE_TEXT && node->text[0] && node->text[0] != '.' &&
           !strchr(node->text, '/');
}

static const char *copied(struct request *request, const struct node *node) {
    return node->kind == NODE_TEXT ? arena_text(&request->arena, node->text, strlen(node->text))
                                   : NULL;
}

static int not_ours(struct error *err, const char *what) {
    return error_set(err, ERROR_INVALID, "%s is not as myelin writes it: %s", REQUEST_FILE, what);
}

static int read_options(struct request *request, const struct node *list, struct error *err) {
    if (!list || list->kind != NODE_LIST)
        return not_ours(err, "`options` is missing");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *name = node_get(&list->items[i], "name");
        const struct node *value = node_get(&list->items[i], "value");

        if (!name || name->kind != NODE_TEXT || !is_text_or_null(value))
            return not_ours(err, "an option is no name and value");
        if (strcmp(name->text, "file") == 0 && !is_file_name(value))
            return not_ours(err, "a file is not one of those beside it");
        *VEC_PUSH(&request->options) =
            (struct request_pair){ copied(request, name), copied(request, value) };
    }
    return 0;
}

static int read_environment(struct request *request, const struct node *map, struct error *err) {
    if (!map || map->kind != NODE_MAP)
        return not_ours(err, "`environment` is missing");
    for (uint32_t i = 0; i < map->count; i++) {
        const struct member *member = &map->members[i];

        if (!is_text_or_null(&member->value))
            return not_ours(err, "a variable is no text");
        *VEC_PUSH(&request->environment) =
            (struct request_pair){ arena_text(&request->arena, member->key, strlen(member->key)),
                                   copied(request, &member->value) };
    }
    return 0;
}

int request_parse(const char *text, size_t n, struct request *out, struct error *err) {
    AUTO(arena) scratch = ARENA_INIT;
    struct request request = { 0 };
    struct node root;

    if (json_read(text, n, &scratch, &root, err))
        return error_wrap(err, "%s", REQUEST_FILE);
    if (read_options(&request, node_get(&root, "options"), err) ||
        read_environment(&request, node_get(&root, "environment"), err)) {
        request_release(&request);
        return -1;
    }
    *out = request;
    return 0;
}

int request_read(const struct rundir *rundir, struct request *out, struct error *err) {
    AUTO(buf) text = BUF_INIT(REQUEST_MAX);
    AUTO(arena) arena = ARENA_INIT;

    if (file_read_linkless(arena_printf(&arena, "%s/" REQUEST_FILE, rundir->path), &text, err)) {
        if (err->code == ERROR_NOT_FOUND)
            return error_set(err, ERROR_NOT_FOUND,
                             "run %s did not keep what it was started with (%s is missing): start "
                             "its file with 'myelin run'",
                             rundir->id, REQUEST_FILE);
        return -1;
    }
    return request_parse(text.data, text.len, out, err)
               ? error_wrap(err, "run %s cannot be started again", rundir->id)
               : 0;
}
