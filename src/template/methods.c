/* SPDX-License-Identifier: Apache-2.0 */
/* What can be called: `value.method(…)` and `function(…)`. */
#include <string.h>

#include "template/filters.h"

#define METHOD(name)                                                                               \
    static int name(struct render *render, const struct call *call, struct value *out)

METHOD(map_keys) {
    struct node keys;

    if (value_items(render, call->span, &call->input.node, &keys))
        return -1;
    *out = known(keys);
    return 0;
}

METHOD(map_values) {
    const struct node *map = &call->input.node;
    struct node values;

    if (make_list(render, call->span, map->count, &values))
        return -1;
    for (uint32_t i = 0; i < map->count; i++)
        values.items[i] = map->members[i].value;
    *out = known(values);
    return 0;
}

METHOD(map_items) {
    const struct node *map = &call->input.node;
    struct node keys, items;

    if (value_items(render, call->span, map, &keys) ||
        make_list(render, call->span, map->count, &items))
        return -1;
    for (uint32_t i = 0; i < map->count; i++) {
        struct node *pair = &items.items[i];

        if (make_list(render, call->span, 2, pair))
            return -1;
        pair->flags = VALUE_TUPLE;
        pair->items[0] = keys.items[i];
        pair->items[1] = map->members[i].value;
    }
    *out = known(items);
    return 0;
}

METHOD(map_get) {
    struct value found = { 0 };

    if (value_index(render, call->span, &call->input.node, call->args[0], &found))
        return -1;
    if (found.unknown)
        found = known(call->args[1] ? *call->args[1] : node_null(render->place));
    *out = found;
    return 0;
}

static int affix(struct render *render, const struct call *call, struct node *piece) {
    if (call->args[0]->kind != NODE_TEXT)
        return fail(render, call->span, "`%s` takes text, not %s", call->name,
                    node_kind_name(call->args[0]));
    *piece = *call->args[0];
    return spend_text(render, call->span, piece->count);
}

METHOD(text_startswith) {
    const struct node *text = &call->input.node;
    struct node piece;

    if (affix(render, call, &piece))
        return -1;
    *out = known(
        node_bool(piece.count <= text->count && memcmp(text->text, piece.text, piece.count) == 0,
                  render->place));
    return 0;
}

METHOD(text_endswith) {
    const struct node *text = &call->input.node;
    struct node piece;

    if (affix(render, call, &piece))
        return -1;
    *out =
        known(node_bool(piece.count <= text->count && memcmp(text->text + text->count - piece.count,
                                                             piece.text, piece.count) == 0,
                        render->place));
    return 0;
}

/* ', '.join(items): the filter, with the two the other way round. */
METHOD(text_join) {
    struct call turned = *call;

    turned.input = known(*call->args[0]);
    turned.args[0] = &call->input.node;
    return filter_join(render, &turned, out);
}

static const struct routine method_rows[] = {
    { "endswith", { "suffix" }, .required = 1, .receiver = NODE_TEXT, .run = text_endswith },
    { "get", { "key", "default" }, .required = 1, .receiver = NODE_MAP, .run = map_get },
    { "items", .receiver = NODE_MAP, .run = map_items },
    { "join", { "iterable" }, .required = 1, .receiver = NODE_TEXT, .run = text_join },
    { "keys", .receiver = NODE_MAP, .run = map_keys },
    { "lower", .receiver = NODE_TEXT, .run = filter_lower },
    { "replace",
      { "old", "new", "count" },
      .required = 2,
      .receiver = NODE_TEXT,
      .run = filter_replace },
    { "split", { "sep", "maxsplit" }, .receiver = NODE_TEXT, .run = filter_split },
    { "startswith", { "prefix" }, .required = 1, .receiver = NODE_TEXT, .run = text_startswith },
    { "strip", .receiver = NODE_TEXT, .run = filter_trim },
    { "upper", .receiver = NODE_TEXT, .run = filter_upper },
    { "values", .receiver = NODE_MAP, .run = map_values },
};
const struct routines methods = { "method", method_rows, ARRAY_LEN(method_rows) };

/* How many numbers a range has; computed without sign, so no bounds overflow. */
static uint64_t range_length(int64_t start, int64_t stop, int64_t step) {
    if (step > 0)
        return start < stop ? ((uint64_t)stop - (uint64_t)start - 1) / (uint64_t)step + 1 : 0;
    return start > stop ? ((uint64_t)start - (uint64_t)stop - 1) / (0 - (uint64_t)step) + 1 : 0;
}

METHOD(range) {
    int64_t start, stop, step;
    struct node list;

    if (argument_whole(render, call, 0, 0, &start) || argument_whole(render, call, 1, 0, &stop) ||
        argument_whole(render, call, 2, 1, &step))
        return -1;
    if (!call->args[1]) {
        stop = start;
        start = 0;
    }
    if (step == 0)
        return fail(render, call->span, "the step of `range` is not 0");
    if (make_list(render, call->span, range_length(start, stop, step), &list))
        return -1;
    for (uint32_t i = 0; i < list.count; i++)
        list.items[i] =
            node_int((int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)step), render->place);
    *out = known(list);
    return 0;
}

static const struct routine function_rows[] = {
    { "range", { "start", "stop", "step" }, .required = 1, .run = range },
};
const struct routines functions = { "function", function_rows, ARRAY_LEN(function_rows) };
