/* SPDX-License-Identifier: Apache-2.0 */
/* Filters over the items of a list, the keys of a map or the characters of a text. */
#include <string.h>

#include "template/filters.h"

static int input_items(struct render *render, const struct call *call, struct node *items) {
    return value_items(render, call->span, &call->input.node, items);
}

static int unknown_of_nothing(struct render *render, const struct call *call, struct value *out) {
    return make_unknown(render, UNKNOWN_EMPTY, call->span, call->name, NULL, out);
}

FILTER(filter_first) {
    struct node items;

    if (input_items(render, call, &items))
        return -1;
    if (items.count == 0)
        return unknown_of_nothing(render, call, out);
    *out = known(items.items[0]);
    return 0;
}

FILTER(filter_last) {
    struct node items;

    if (input_items(render, call, &items))
        return -1;
    if (items.count == 0)
        return unknown_of_nothing(render, call, out);
    *out = known(items.items[items.count - 1]);
    return 0;
}

/* What items are compared by: their attribute, and without regard to case unless asked. */
static int comparison_keys(struct render *render, const struct call *call, const struct node *items,
                           size_t case_argument, size_t attribute_argument, struct node *keys) {
    struct node picked;

    if (pick_attribute(render, call, items, call->args[attribute_argument], &picked) ||
        make_list(render, call->span, picked.count, keys))
        return -1;
    for (uint32_t i = 0; i < picked.count; i++) {
        struct call lowering = { .span = call->span, .input = known(picked.items[i]) };
        struct value lowered = lowering.input;

        if (lowered.node.kind == NODE_TEXT && !argument_truth(call, case_argument) &&
            filter_lower(render, &lowering, &lowered))
            return -1;
        keys->items[i] = lowered.node;
    }
    return 0;
}

/* The first of the items that no other comes before, in the order that `sign` gives. */
static int extreme(struct render *render, const struct call *call, int sign, struct value *out) {
    struct node items, keys;
    uint32_t best = 0;

    if (input_items(render, call, &items) || comparison_keys(render, call, &items, 0, 1, &keys))
        return -1;
    if (items.count == 0)
        return unknown_of_nothing(render, call, out);
    for (uint32_t i = 1; i < items.count; i++) {
        int order;

        if (value_order(render, call->span, &keys.items[i], &keys.items[best], &order))
            return -1;
        if (order == sign)
            best = i;
    }
    *out = known(items.items[best]);
    return 0;
}

FILTER(filter_min) {
    return extreme(render, call, -1, out);
}

FILTER(filter_max) {
    return extreme(render, call, 1, out);
}

FILTER(filter_sum) {
    struct node items, picked, sum = call->args[1] ? *call->args[1] : node_int(0, render->place);

    if (input_items(render, call, &items) ||
        pick_attribute(render, call, &items, call->args[0], &picked))
        return -1;
    for (uint32_t i = 0; i < picked.count; i++)
        if (spend(render, call->span, 1) ||
            operator_add(render, call->span, &sum, &picked.items[i], &sum))
            return -1;
    *out = known(sum);
    return 0;
}

/* A stable merge sort of indexes, since comparing may fail. */
struct sorting {
    struct render *render;
    const struct call *call;
    const struct node *keys;
    int after; /* the order of two keys that puts the first one behind */
    uint32_t *spare;
};

static int merge(struct sorting *s, uint32_t *order, uint32_t middle, uint32_t n) {
    uint32_t left = 0, right = middle;

    for (uint32_t i = 0; i < n; i++) {
        int sign = 0;

        if (left < middle && right < n &&
            value_order(s->render, s->call->span, &s->keys[order[left]], &s->keys[order[right]],
                        &sign))
            return -1;
        s->spare[i] =
            right == n || (left < middle && sign != s->after) ? order[left++] : order[right++];
    }
    memcpy(order, s->spare, n * sizeof *order);
    return 0;
}

static int merge_sort(struct sorting *s, uint32_t *order, uint32_t n) {
    uint32_t middle = n / 2;

    if (n < 2)
        return 0;
    return merge_sort(s, order, middle) || merge_sort(s, order + middle, n - middle) ||
                   merge(s, order, middle, n)
               ? -1
               : 0;
}

FILTER(filter_sort) {
    struct sorting sorting = { .render = render,
                               .call = call,
                               .after = argument_truth(call, 0) ? -1 : 1 };
    struct node items, keys, sorted;
    uint32_t *order;

    if (input_items(render, call, &items) || comparison_keys(render, call, &items, 1, 2, &keys) ||
        make_list(render, call->span, items.count, &sorted) ||
        scratch_array(render, call->span, items.count, sizeof *order, &order) ||
        scratch_array(render, call->span, items.count, sizeof *order, &sorting.spare))
        return -1;
    for (uint32_t i = 0; i < items.count; i++)
        order[i] = i;
    sorting.keys = keys.items;
    if (merge_sort(&sorting, order, items.count))
        return -1;
    for (uint32_t i = 0; i < items.count; i++)
        sorted.items[i] = items.items[order[i]];
    *out = known(sorted);
    return 0;
}

FILTER(filter_unique) {
    struct node items, keys, kept, kept_keys;
    uint32_t n = 0;

    if (input_items(render, call, &items) || comparison_keys(render, call, &items, 0, 1, &keys) ||
        make_list(render, call->span, items.count, &kept) ||
        make_list(render, call->span, items.count, &kept_keys))
        return -1;
    for (uint32_t i = 0; i < items.count; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < n && !seen; k++)
            if (value_equal(render, call->span, &keys.items[i], &kept_keys.items[k], &seen))
                return -1;
        if (!seen) {
            kept_keys.items[n] = keys.items[i];
            kept.items[n++] = items.items[i];
        }
    }
    kept.count = n;
    *out = known(kept);
    return 0;
}

FILTER(filter_list) {
    struct node items;

    if (input_items(render, call, &items))
        return -1;
    items.flags = 0;
    *out = known(items);
    return 0;
}

FILTER(filter_length) {
    const struct node *input = &call->input.node;

    if (input->kind != NODE_TEXT && input->kind != NODE_LIST && input->kind != NODE_MAP)
        return fail(render, call->span, "%s has no length", node_kind_name(input));
    if (input->kind == NODE_TEXT && spend_text(render, call->span, input->count))
        return -1;
    *out = known(node_int(input->kind == NODE_TEXT ? (int64_t)value_characters(input)
                                                   : (int64_t)input->count,
                          render->place));
    return 0;
}
