/* SPDX-License-Identifier: Apache-2.0 */
/* Values: made, compared, looked into. Numbers, truth and equality are Python's. */
#include <math.h>
#include <string.h>

#include "template/render.h"

struct value known(struct node node) {
    return (struct value){ .node = node };
}

int make_unknown(struct render *render, enum unknown_reason reason, struct span span,
                 const char *name, const struct node *holder, struct value *out) {
    struct unknown *unknown;

    if (scratch_array(render, span, 1, sizeof *unknown, &unknown))
        return -1;
    *unknown = (struct unknown){ .reason = reason, .span = span, .name = name };
    if (holder)
        unknown->holder = *holder;
    *out = (struct value){ .unknown = unknown };
    return 0;
}

int make_text(struct render *render, struct span span, const char *text, size_t n,
              struct node *out) {
    char *copy;

    if (n > render->output_max)
        return fail(render, span, "the text grows beyond the %zu bytes allowed",
                    render->output_max);
    if (spend_text(render, span, n) || scratch_array(render, span, n + 1, 1, &copy))
        return -1;
    if (n)
        memcpy(copy, text, n);
    *out = node_text(copy, n, render->place);
    return 0;
}

int make_list(struct render *render, struct span span, size_t n, struct node *out) {
    struct node *items;

    if (spend(render, span, n) || scratch_array(render, span, n, sizeof *items, &items))
        return -1;
    *out = node_list(items, n, render->place);
    return 0;
}

int make_map(struct render *render, struct span span, const struct node *pairs, size_t n,
             struct node *out) {
    struct member *members;
    size_t count = 0, k;

    if (scratch_array(render, span, n, sizeof *members, &members))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (spend(render, span, 1 + count / 16))
            return -1;
        for (k = 0; k < count; k++)
            if (strcmp(members[k].key, pairs[2 * i].text) == 0)
                break;
        members[k].key = pairs[2 * i].text;
        members[k].value = pairs[2 * i + 1];
        count += k == count;
    }
    *out = node_map(members, count, render->place);
    return 0;
}

bool value_truth(const struct node *value) {
    switch (value->kind) {
    case NODE_NULL: return false;
    case NODE_BOOL: return value->truth;
    case NODE_INT: return value->integer != 0;
    case NODE_FLOAT: return value->number < 0 || value->number > 0 || isnan(value->number);
    default: return value->count > 0;
    }
}

bool value_is_whole(const struct node *value) {
    return value->kind == NODE_INT || value->kind == NODE_BOOL;
}

bool value_is_number(const struct node *value) {
    return value_is_whole(value) || value->kind == NODE_FLOAT;
}

int64_t value_whole(const struct node *value) {
    return value->kind == NODE_BOOL ? value->truth : value->integer;
}

double value_double(const struct node *value) {
    return value->kind == NODE_FLOAT ? value->number : (double)value_whole(value);
}

/* Exact, where a conversion of the whole number would round. */
static int order_mixed(int64_t whole, double number) {
    int64_t truncated;
    double fraction;

    if (isnan(number))
        return UNORDERED;
    if (number >= 0x1p63)
        return -1;
    if (number < -0x1p63)
        return 1;
    truncated = (int64_t)number;
    fraction = number - (double)truncated;
    if (whole != truncated)
        return whole < truncated ? -1 : 1;
    return fraction > 0 ? -1 : fraction < 0;
}

static int order_numbers(const struct node *a, const struct node *b) {
    int sign;

    if (value_is_whole(a) && value_is_whole(b))
        return value_whole(a) < value_whole(b) ? -1 : value_whole(a) > value_whole(b);
    if (value_is_whole(a))
        return order_mixed(value_whole(a), b->number);
    if (value_is_whole(b)) {
        sign = order_mixed(value_whole(b), a->number);
        return sign == UNORDERED ? sign : -sign;
    }
    if (isnan(a->number) || isnan(b->number))
        return UNORDERED;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int order_texts(const struct node *a, const struct node *b) {
    size_t n = a->count < b->count ? a->count : b->count;
    int sign = memcmp(a->text, b->text, n); /* UTF-8 sorts as its code points do */

    return sign ? (sign < 0 ? -1 : 1) : a->count < b->count ? -1 : a->count > b->count;
}

static int equal_within(struct render *render, struct span span, const struct node *a,
                        const struct node *b, unsigned depth, bool *out);

static int equal_members(struct render *render, struct span span, const struct node *a,
                         const struct node *b, unsigned depth, bool *out) {
    for (uint32_t i = 0; i < a->count && *out; i++) {
        const struct node *other = node_get(b, a->members[i].key);

        if (spend(render, span, b->count / 16))
            return -1;
        if (!other)
            *out = false;
        else if (equal_within(render, span, &a->members[i].value, other, depth + 1, out))
            return -1;
    }
    return 0;
}

static int equal_within(struct render *render, struct span span, const struct node *a,
                        const struct node *b, unsigned depth, bool *out) {
    *out = false;
    if (depth > VALUE_DEPTH_MAX)
        return fail(render, span, "a value nested deeper than %d levels", VALUE_DEPTH_MAX);
    if (spend(render, span, 1))
        return -1;
    if (value_is_number(a) && value_is_number(b)) {
        *out = order_numbers(a, b) == 0;
        return 0;
    }
    if (a->kind != b->kind || (a->kind != NODE_NULL && a->count != b->count))
        return 0;
    *out = true;
    if (a->kind == NODE_TEXT) {
        *out = memcmp(a->text, b->text, a->count) == 0;
        return spend_text(render, span, a->count);
    }
    if (a->kind == NODE_MAP)
        return equal_members(render, span, a, b, depth, out);
    if (a->kind != NODE_LIST)
        return 0;
    *out = !((a->flags ^ b->flags) & VALUE_TUPLE);
    for (uint32_t i = 0; i < a->count && *out; i++)
        if (equal_within(render, span, &a->items[i], &b->items[i], depth + 1, out))
            return -1;
    return 0;
}

int value_equal(struct render *render, struct span span, const struct node *a, const struct node *b,
                bool *out) {
    return equal_within(render, span, a, b, 0, out);
}

static int order_within(struct render *render, struct span span, const struct node *a,
                        const struct node *b, unsigned depth, int *sign) {
    uint32_t n = a->count < b->count ? a->count : b->count;

    if (depth > VALUE_DEPTH_MAX)
        return fail(render, span, "a value nested deeper than %d levels", VALUE_DEPTH_MAX);
    if (spend(render, span, 1))
        return -1;
    if (value_is_number(a) && value_is_number(b)) {
        *sign = order_numbers(a, b);
        return 0;
    }
    if (a->kind == NODE_TEXT && b->kind == NODE_TEXT) {
        *sign = order_texts(a, b);
        return spend_text(render, span, n);
    }
    if (a->kind != NODE_LIST || b->kind != NODE_LIST) {
        fail(render, span, "%s and %s have no order", node_kind_name(a), node_kind_name(b));
        if (a->kind == NODE_TEXT || b->kind == NODE_TEXT)
            return fail_help(render, "make a number of a text with `| int` or `| float`");
        return -1;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool equal;

        if (value_equal(render, span, &a->items[i], &b->items[i], &equal))
            return -1;
        if (!equal)
            return order_within(render, span, &a->items[i], &b->items[i], depth + 1, sign);
    }
    *sign = a->count < b->count ? -1 : a->count > b->count;
    return 0;
}

int value_order(struct render *render, struct span span, const struct node *a, const struct node *b,
                int *sign) {
    return order_within(render, span, a, b, 0, sign);
}

int value_contains(struct render *render, struct span span, const struct node *holder,
                   const struct node *item, bool *out) {
    *out = false;
    if (holder->kind == NODE_LIST) {
        for (uint32_t i = 0; i < holder->count && !*out; i++)
            if (value_equal(render, span, &holder->items[i], item, out))
                return -1;
        return 0;
    }
    if (holder->kind == NODE_MAP) {
        *out = item->kind == NODE_TEXT && node_get(holder, item->text);
        return spend(render, span, holder->count / 16);
    }
    if (holder->kind != NODE_TEXT)
        return fail(render, span, "nothing can be in %s", node_kind_name(holder));
    if (item->kind != NODE_TEXT)
        return fail(render, span, "only text can be in text, and this is %s", node_kind_name(item));
    *out = memmem(holder->text, holder->count, item->text, item->count) != NULL;
    return spend_text(render, span, holder->count);
}

static int text_items(struct render *render, struct span span, const struct node *text,
                      struct node *list) {
    const char *from = text->text;
    size_t left = text->count;

    if (make_list(render, span, value_characters(text), list))
        return -1;
    for (uint32_t i = 0; i < list->count; i++) {
        size_t len = character_length(from, left);

        if (make_text(render, span, from, len, &list->items[i]))
            return -1;
        from += len;
        left -= len;
    }
    return 0;
}

int value_items(struct render *render, struct span span, const struct node *value,
                struct node *list) {
    if (value->kind == NODE_LIST) {
        *list = *value;
        return 0;
    }
    if (value->kind == NODE_TEXT)
        return text_items(render, span, value, list);
    if (value->kind != NODE_MAP) {
        fail(render, span, "%s has no items to go through", node_kind_name(value));
        return value_is_whole(value) ? fail_help(render, "range(n) counts from 0 to n - 1") : -1;
    }
    if (make_list(render, span, value->count, list))
        return -1;
    for (uint32_t i = 0; i < value->count; i++)
        list->items[i] =
            node_text(value->members[i].key, strlen(value->members[i].key), render->place);
    return 0;
}

int value_text(struct render *render, struct span span, const struct node *value,
               struct node *out) {
    AUTO(buf) printed = BUF_INIT(render->output_max);
    struct error err;

    if (value->kind == NODE_TEXT) {
        *out = *value;
        return 0;
    }
    if (value_print(value, &printed, &err))
        return fail(render, span, "this value cannot be printed: %s", err.message);
    return make_text(render, span, printed.data, printed.len, out);
}

int value_attribute(struct render *render, struct span span, const struct node *holder,
                    const char *name, struct value *out) {
    const struct node *found = node_get(holder, name);

    if (holder->kind == NODE_MAP && spend(render, span, holder->count / 16))
        return -1;
    if (!found)
        return make_unknown(render, UNKNOWN_MEMBER, span, name, holder, out);
    *out = known(*found);
    return 0;
}

static int unknown_item(struct render *render, struct span span, const struct node *holder,
                        const struct node *key, struct value *out) {
    struct node text;

    if (value_text(render, span, key, &text))
        return -1;
    return make_unknown(render, holder->kind == NODE_MAP ? UNKNOWN_MEMBER : UNKNOWN_ITEM, span,
                        text.text, holder, out);
}

int value_index(struct render *render, struct span span, const struct node *holder,
                const struct node *key, struct value *out) {
    const struct node *bounds[3] = { 0 };
    struct node next, character;
    int64_t length, at;

    if (holder->kind == NODE_MAP)
        return key->kind == NODE_TEXT ? value_attribute(render, span, holder, key->text, out)
                                      : unknown_item(render, span, holder, key, out);
    if ((holder->kind != NODE_LIST && holder->kind != NODE_TEXT) || !value_is_whole(key))
        return unknown_item(render, span, holder, key, out);
    length = holder->kind == NODE_LIST ? (int64_t)holder->count : (int64_t)value_characters(holder);
    at = value_whole(key) < 0 ? value_whole(key) + length : value_whole(key);
    if (at < 0 || at >= length)
        return unknown_item(render, span, holder, key, out);
    if (holder->kind == NODE_LIST) {
        *out = known(holder->items[at]);
        return 0;
    }
    next = node_int(at + 1, render->place);
    character = node_int(at, render->place);
    bounds[0] = &character;
    bounds[1] = &next;
    if (value_slice(render, span, holder, bounds, &character))
        return -1;
    *out = known(character);
    return 0;
}

/* Python's slice.indices: where a slice begins and ends, for any bounds. */
static int slice_bound(struct render *render, struct span span, const struct node *bound,
                       int64_t length, int64_t step, int64_t missing, int64_t *out) {
    int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? length - 1 : length;

    *out = missing;
    if (!bound || bound->kind == NODE_NULL)
        return 0;
    if (!value_is_whole(bound))
        return fail(render, span, "the bounds of a slice are whole numbers, not %s",
                    node_kind_name(bound));
    *out = value_whole(bound);
    if (*out < 0)
        *out += length;
    *out = *out < lowest ? lowest : *out > highest ? highest : *out;
    return 0;
}

/* The characters of a text as a list of its pieces, or a list itself; a slice picks from it. */
int value_slice(struct render *render, struct span span, const struct node *holder,
                const struct node *const bounds[3], struct node *out) {
    AUTO(buf) joined = BUF_INIT(render->output_max);
    int64_t step = 1, from, to, n = 0;
    struct node items, slice;
    struct error err;

    if (holder->kind != NODE_LIST && holder->kind != NODE_TEXT)
        return fail(render, span, "%s cannot be sliced", node_kind_name(holder));
    if (bounds[2] && bounds[2]->kind != NODE_NULL) {
        if (!value_is_whole(bounds[2]) || value_whole(bounds[2]) == 0)
            return fail(render, span, "the step of a slice is a whole number other than 0");
        step = value_whole(bounds[2]);
    }
    if (value_items(render, span, holder, &items) ||
        slice_bound(render, span, bounds[0], items.count, step,
                    step < 0 ? (int64_t)items.count - 1 : 0, &from) ||
        slice_bound(render, span, bounds[1], items.count, step,
                    step < 0 ? -1 : (int64_t)items.count, &to) ||
        make_list(render, span, items.count, &slice))
        return -1;
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        slice.items[n++] = items.items[i];
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    slice.count = (uint32_t)n;
    slice.flags = holder->flags & VALUE_TUPLE;
    if (holder->kind == NODE_LIST) {
        *out = slice;
        return 0;
    }
    for (uint32_t i = 0; i < slice.count; i++)
        if (buf_append(&joined, slice.items[i].text, slice.items[i].count, &err))
            return fail(render, span, "%s", err.message);
    return make_text(render, span, joined.data, joined.len, out);
}
