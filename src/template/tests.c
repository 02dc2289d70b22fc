/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand after `is`. */
#include <string.h>

#include "template/syntax.h"

#define TEST(name)                                                                                 \
    static int name(struct render *render, const struct call *call, struct value *out)

static int answer(struct render *render, bool truth, struct value *out) {
    *out = known(node_bool(truth, render->place));
    return 0;
}

TEST(is_defined) {
    return answer(render, !call->input.unknown, out);
}

TEST(is_undefined) {
    return answer(render, call->input.unknown != NULL, out);
}

TEST(is_none) {
    return answer(render, call->input.node.kind == NODE_NULL, out);
}

TEST(is_number) {
    return answer(render, value_is_number(&call->input.node), out);
}

TEST(is_string) {
    return answer(render, call->input.node.kind == NODE_TEXT, out);
}

TEST(is_mapping) {
    return answer(render, call->input.node.kind == NODE_MAP, out);
}

TEST(is_sequence) {
    return answer(render, call->input.node.kind >= NODE_TEXT, out);
}

static int remainder_of(struct render *render, const struct call *call, int64_t divisor,
                        int64_t *out) {
    if (!value_is_whole(&call->input.node))
        return fail(render, call->span, "`%s` asks about whole numbers, and this is %s", call->name,
                    node_kind_name(&call->input.node));
    *out = divisor == -1 ? 0 : value_whole(&call->input.node) % divisor;
    return 0;
}

TEST(is_odd) {
    int64_t rest = 0;

    return remainder_of(render, call, 2, &rest) ? -1 : answer(render, rest != 0, out);
}

TEST(is_even) {
    int64_t rest = 0;

    return remainder_of(render, call, 2, &rest) ? -1 : answer(render, rest == 0, out);
}

TEST(is_divisible) {
    int64_t rest = 0;

    if (!value_is_whole(call->args[0]) || value_whole(call->args[0]) == 0)
        return fail(render, call->span, "`%s` takes a whole number other than 0", call->name);
    return remainder_of(render, call, value_whole(call->args[0]), &rest)
               ? -1
               : answer(render, rest == 0, out);
}

static bool has_letter(const struct node *text, char first, char last) {
    for (uint32_t i = 0; i < text->count; i++)
        if (text->text[i] >= first && text->text[i] <= last)
            return true;
    return false;
}

TEST(is_lower) {
    struct node text;

    if (value_text(render, call->span, &call->input.node, &text) ||
        spend_text(render, call->span, text.count))
        return -1;
    return answer(render, has_letter(&text, 'a', 'z') && !has_letter(&text, 'A', 'Z'), out);
}

TEST(is_upper) {
    struct node text;

    if (value_text(render, call->span, &call->input.node, &text) ||
        spend_text(render, call->span, text.count))
        return -1;
    return answer(render, has_letter(&text, 'A', 'Z') && !has_letter(&text, 'a', 'z'), out);
}

/* Tests that are operators under a name. */
static const struct {
    const char *test, *sign;
} named_operators[] = {
    { "equalto", "==" }, { "eq", "==" }, { "ne", "!=" }, { "lt", "<" },
    { "lessthan", "<" }, { "le", "<=" }, { "gt", ">" },  { "greaterthan", ">" },
    { "ge", ">=" },      { "in", "in" },
};

TEST(is_in_relation) {
    for (size_t i = 0; i < ARRAY_LEN(named_operators); i++) {
        if (strcmp(named_operators[i].test, call->name) != 0)
            continue;
        *out = known(node_null(render->place));
        return operator_find(named_operators[i].sign)
            ->apply(render, call->span, &call->input.node, call->args[0], &out->node);
    }
    return -1;
}

static const struct routine rows[] = {
    { "defined", .takes_unknown = true, .run = is_defined },
    { "divisibleby", { "num" }, .required = 1, .run = is_divisible },
    { "eq", { "other" }, .required = 1, .run = is_in_relation },
    { "equalto", { "other" }, .required = 1, .run = is_in_relation },
    { "even", .run = is_even },
    { "ge", { "other" }, .required = 1, .run = is_in_relation },
    { "greaterthan", { "other" }, .required = 1, .run = is_in_relation },
    { "gt", { "other" }, .required = 1, .run = is_in_relation },
    { "in", { "seq" }, .required = 1, .run = is_in_relation },
    { "iterable", .run = is_sequence },
    { "le", { "other" }, .required = 1, .run = is_in_relation },
    { "lessthan", { "other" }, .required = 1, .run = is_in_relation },
    { "lower", .run = is_lower },
    { "lt", { "other" }, .required = 1, .run = is_in_relation },
    { "mapping", .run = is_mapping },
    { "ne", { "other" }, .required = 1, .run = is_in_relation },
    { "none", .run = is_none },
    { "number", .run = is_number },
    { "odd", .run = is_odd },
    { "sequence", .run = is_sequence },
    { "string", .run = is_string },
    { "undefined", .takes_unknown = true, .run = is_undefined },
    { "upper", .run = is_upper },
};
const struct routines tests = { "test", rows, ARRAY_LEN(rows) };
