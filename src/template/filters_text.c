/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that make texts. The input is taken as str() of whatever it is; letters beyond ASCII keep
 * their case. */
#include <string.h>

#include "template/filters.h"

static int give_text(struct render *render, const struct call *call, const char *text, size_t n,
                     struct value *out) {
    struct node node;

    if (make_text(render, call->span, text, n, &node))
        return -1;
    *out = known(node);
    return 0;
}

static int input_text(struct render *render, const struct call *call, struct node *out) {
    return value_text(render, call->span, &call->input.node, out);
}

static int fail_grown(struct render *render, const struct call *call) {
    return fail(render, call->span, "the text grows beyond the %zu bytes allowed",
                render->output_max);
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* A copy of the input whose letters may be changed in place. */
static int copy_input(struct render *render, const struct call *call, struct node *text,
                      char **letters) {
    if (input_text(render, call, text) || spend_text(render, call->span, text->count) ||
        scratch_array(render, call->span, (size_t)text->count + 1, 1, letters))
        return -1;
    memcpy(*letters, text->text, text->count);
    *text = node_text(*letters, text->count, render->place);
    return 0;
}

FILTER(filter_lower) {
    struct node text;
    char *letters;

    if (copy_input(render, call, &text, &letters))
        return -1;
    for (uint32_t i = 0; i < text.count; i++)
        letters[i] = lower(letters[i]);
    *out = known(text);
    return 0;
}

FILTER(filter_upper) {
    struct node text;
    char *letters;

    if (copy_input(render, call, &text, &letters))
        return -1;
    for (uint32_t i = 0; i < text.count; i++)
        letters[i] = upper(letters[i]);
    *out = known(text);
    return 0;
}

FILTER(filter_title) {
    struct node text;
    char *letters;
    bool begins = true;

    if (copy_input(render, call, &text, &letters))
        return -1;
    for (uint32_t i = 0; i < text.count; i++) {
        letters[i] = begins ? upper(letters[i]) : lower(letters[i]);
        begins = is_blank(letters[i]) || strchr("-({[<", letters[i]);
    }
    *out = known(text);
    return 0;
}

FILTER(filter_trim) {
    struct node text;
    size_t from = 0, to;

    if (input_text(render, call, &text))
        return -1;
    to = text.count;
    while (from < to && is_blank(text.text[from]))
        from++;
    while (to > from && is_blank(text.text[to - 1]))
        to--;
    return give_text(render, call, text.text + from, to - from, out);
}

FILTER(filter_replace) {
    AUTO(buf) replaced = BUF_INIT(render->output_max);
    struct node text, old, new;
    int64_t left;
    size_t at = 0;
    struct error err;

    if (input_text(render, call, &text) || argument_text(render, call, 0, "", &old) ||
        argument_text(render, call, 1, "", &new) || argument_whole(render, call, 2, -1, &left))
        return -1;
    for (; left != 0; left--) {
        const char *from = text.text + at;
        const char *found = memmem(from, text.count - at, old.text, old.count);
        size_t rest = found ? (size_t)(found - from) + old.count : 0;

        if (!found)
            break;
        if (spend(render, call->span, 1))
            return -1;
        /* nothing is found before every character and at the end */
        if (old.count == 0)
            rest = at < text.count ? character_length(from, text.count - at) : 0;
        if (buf_append(&replaced, from, old.count ? rest - old.count : 0, &err) ||
            buf_append(&replaced, new.text, new.count, &err) ||
            (old.count == 0 && buf_append(&replaced, from, rest, &err)))
            return fail_grown(render, call);
        at += rest;
        if (old.count == 0 && rest == 0)
            break;
    }
    if (buf_append(&replaced, text.text + at, text.count - at, &err))
        return fail_grown(render, call);
    return give_text(render, call, replaced.data, replaced.len, out);
}

/* Where the next piece of [at, n) ends, and in *next where the one after it begins; n + 1 is none.
 */
static size_t split_once(const struct node *text, size_t at, const struct node *separator,
                         size_t *next) {
    const char *found;
    size_t end = at;

    if (separator) {
        found = memmem(text->text + at, text->count - at, separator->text, separator->count);
        end = found ? (size_t)(found - text->text) : text->count;
        *next = found ? end + separator->count : (size_t)text->count + 1;
        return end;
    }
    while (end < text->count && !is_blank(text->text[end]))
        end++;
    for (*next = end; *next < text->count && is_blank(text->text[*next]);)
        (*next)++;
    if (*next == text->count)
        *next = (size_t)text->count + 1;
    return end;
}

FILTER(filter_split) {
    struct node text, separator, list;
    const struct node *by = call->args[0] && call->args[0]->kind != NODE_NULL ? &separator : NULL;
    size_t first = 0, n = 0, next;
    int64_t most;

    if (input_text(render, call, &text) || argument_text(render, call, 0, "", &separator) ||
        argument_whole(render, call, 1, -1, &most))
        return -1;
    if (by && separator.count == 0)
        return fail(render, call->span, "`split` takes no empty separator");
    while (!by && first < text.count && is_blank(text.text[first]))
        first++;
    if (!by && first == text.count)
        first++;
    for (size_t at = first; at <= text.count; at = next, n++)
        split_once(&text, at, by, &next);
    if (make_list(render, call->span, n, &list))
        return -1;
    n = 0;
    for (size_t at = first; at <= text.count; at = next, n++) {
        size_t end = split_once(&text, at, by, &next);

        if (most >= 0 && n == (size_t)most) {
            end = text.count;
            next = end + 1;
        }
        if (make_text(render, call->span, text.text + at, end - at, &list.items[n]))
            return -1;
    }
    list.count = (uint32_t)n;
    *out = known(list);
    return 0;
}

FILTER(filter_basename) {
    const char *slash;
    struct node text;

    if (input_text(render, call, &text))
        return -1;
    slash = strrchr(text.text, '/');
    slash = slash ? slash + 1 : text.text;
    return give_text(render, call, slash, strlen(slash), out);
}

FILTER(filter_format) {
    struct node text, args[ARGUMENTS_MAX], formatted;

    if (input_text(render, call, &text))
        return -1;
    for (size_t i = 0; i < call->count; i++)
        args[i] = *call->args[i];
    if (text_format(render, call->span, &text, args, call->count, &formatted))
        return -1;
    *out = known(formatted);
    return 0;
}

FILTER(filter_string) {
    struct node text;

    if (input_text(render, call, &text))
        return -1;
    *out = known(text);
    return 0;
}

FILTER(filter_join) {
    AUTO(buf) joined = BUF_INIT(render->output_max);
    struct node items, picked, separator, text;
    struct error err;

    if (value_items(render, call->span, &call->input.node, &items) ||
        pick_attribute(render, call, &items, call->args[1], &picked) ||
        argument_text(render, call, 0, "", &separator))
        return -1;
    for (uint32_t i = 0; i < picked.count; i++) {
        if (spend(render, call->span, 1) || value_text(render, call->span, &picked.items[i], &text))
            return -1;
        if ((i && buf_append(&joined, separator.text, separator.count, &err)) ||
            buf_append(&joined, text.text, text.count, &err))
            return fail_grown(render, call);
    }
    return give_text(render, call, joined.data, joined.len, out);
}
