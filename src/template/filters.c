/* SPDX-License-Identifier: Apache-2.0 */
/* The table of filters, and what all of them share. */
#include "template/filters.h"

#include <string.h>

static FILTER(filter_default) {
    bool missing =
        call->input.unknown || (argument_truth(call, 1) && !value_truth(&call->input.node));
    struct node value;

    if (!missing) {
        *out = call->input;
        return 0;
    }
    if (call->args[0]) {
        *out = known(*call->args[0]);
        return 0;
    }
    if (make_text(render, call->span, "", 0, &value))
        return -1;
    *out = known(value);
    return 0;
}

static const struct routine rows[] = {
    { "abs", .run = filter_abs },
    { "basename", .run = filter_basename },
    { "count", .run = filter_length },
    { "d", { "default_value", "boolean" }, .takes_unknown = true, .run = filter_default },
    { "default", { "default_value", "boolean" }, .takes_unknown = true, .run = filter_default },
    { "first", .run = filter_first },
    { "float", { "default" }, .run = filter_float },
    { "format", .variadic = true, .run = filter_format },
    { "int", { "default", "base" }, .run = filter_int },
    { "join", { "d", "attribute" }, .run = filter_join },
    { "last", .run = filter_last },
    { "length", .run = filter_length },
    { "list", .run = filter_list },
    { "lower", .run = filter_lower },
    { "max", { "case_sensitive", "attribute" }, .run = filter_max },
    { "min", { "case_sensitive", "attribute" }, .run = filter_min },
    { "replace", { "old", "new", "count" }, .required = 2, .run = filter_replace },
    { "round", { "precision", "method" }, .run = filter_round },
    { "sort", { "reverse", "case_sensitive", "attribute" }, .run = filter_sort },
    { "split", { "sep", "maxsplit" }, .run = filter_split },
    { "string", .run = filter_string },
    { "sum", { "attribute", "start" }, .run = filter_sum },
    { "title", .run = filter_title },
    { "tojson", .run = filter_tojson },
    { "trim", .run = filter_trim },
    { "unique", { "case_sensitive", "attribute" }, .run = filter_unique },
    { "upper", .run = filter_upper },
};
const struct routines filters = { "filter", rows, ARRAY_LEN(rows) };

const struct routine *routine_find(const struct routines *routines, const char *name) {
    for (size_t i = 0; i < routines->len; i++)
        if (strcmp(routines->rows[i].name, name) == 0)
            return &routines->rows[i];
    return NULL;
}

int argument_whole(struct render *render, const struct call *call, size_t i, int64_t missing,
                   int64_t *out) {
    *out = missing;
    if (!call->args[i] || call->args[i]->kind == NODE_NULL)
        return 0;
    if (!value_is_whole(call->args[i]))
        return fail(render, call->span, "`%s` takes a whole number here, not %s", call->name,
                    node_kind_name(call->args[i]));
    *out = value_whole(call->args[i]);
    return 0;
}

bool argument_truth(const struct call *call, size_t i) {
    return call->args[i] && value_truth(call->args[i]);
}

int argument_text(struct render *render, const struct call *call, size_t i, const char *missing,
                  struct node *out) {
    if (call->args[i])
        return value_text(render, call->span, call->args[i], out);
    *out = node_text(missing, strlen(missing), render->place);
    return 0;
}

/* 'a.b.0': names and numbers between dots. */
static int pick_path(struct render *render, const struct call *call, const struct node *path,
                     struct node *item) {
    const char *from = path->text;
    struct value found;

    for (;;) {
        const char *end = strchrnul(from, '.');
        struct node key;
        int64_t number;

        if (make_text(render, call->span, from, (size_t)(end - from), &key))
            return -1;
        if (item->kind != NODE_MAP && text_to_whole(key.text, key.count, 10, &number) == 0)
            key = node_int(number, render->place);
        if (spend(render, call->span, 1) || value_index(render, call->span, item, &key, &found))
            return -1;
        if (found.unknown)
            return fail_unknown(render, found.unknown);
        *item = found.node;
        if (!*end)
            return 0;
        from = end + 1;
    }
}

int pick_attribute(struct render *render, const struct call *call, const struct node *items,
                   const struct node *attribute, struct node *out) {
    struct node path;

    *out = *items;
    if (!attribute || attribute->kind == NODE_NULL)
        return 0;
    if (value_text(render, call->span, attribute, &path) ||
        make_list(render, call->span, items->count, out))
        return -1;
    for (uint32_t i = 0; i < items->count; i++) {
        out->items[i] = items->items[i];
        if (pick_path(render, call, &path, &out->items[i]))
            return -1;
    }
    return 0;
}
