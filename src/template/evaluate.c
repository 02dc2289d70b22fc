/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions to values: one function a kind of expression. */
#include <assert.h>
#include <string.h>

#include "template/syntax.h"

static int evaluate_value(struct render *render, const struct expr *expr, struct value *out) {
    (void)render;
    *out = known(expr->value);
    return 0;
}

static int evaluate_name(struct render *render, const struct expr *expr, struct value *out) {
    const struct node *names = render->context->names, *found;
    size_t steps = names ? names->count / 16 : 0;

    for (const struct scope *scope = render->scope; scope; scope = scope->outer)
        for (const struct binding *b = scope->bindings; b; b = b->next) {
            steps++;
            if (strcmp(b->name, expr->name) == 0) {
                *out = known(b->value);
                return spend(render, expr->span, steps);
            }
        }
    if (spend(render, expr->span, steps))
        return -1;
    found = node_get(names, expr->name);
    if (!found)
        return make_unknown(render, UNKNOWN_NAME, expr->span, expr->name, NULL, out);
    *out = known(*found);
    return 0;
}

static int evaluate_list(struct render *render, const struct expr *expr, struct value *out) {
    struct node list;

    if (make_list(render, expr->span, expr->count, &list))
        return -1;
    for (uint32_t i = 0; i < expr->count; i++)
        if (evaluate_known(render, expr->parts[i], &list.items[i]))
            return -1;
    list.flags = expr->tuple ? VALUE_TUPLE : 0;
    *out = known(list);
    return 0;
}

static int evaluate_map(struct render *render, const struct expr *expr, struct value *out) {
    struct node pairs, map;

    if (make_list(render, expr->span, expr->count, &pairs))
        return -1;
    for (uint32_t i = 0; i < expr->count; i++) {
        if (evaluate_known(render, expr->parts[i], &pairs.items[i]))
            return -1;
        if (i % 2 == 0 && pairs.items[i].kind != NODE_TEXT) {
            fail(render, expr->parts[i]->span, "the key of a mapping is text, and this is %s",
                 node_kind_name(&pairs.items[i]));
            return fail_help(render, "write the key in quotes");
        }
    }
    if (make_map(render, expr->span, pairs.items, expr->count / 2, &map))
        return -1;
    *out = known(map);
    return 0;
}

static int evaluate_attribute(struct render *render, const struct expr *expr, struct value *out) {
    struct node holder;

    if (evaluate_known(render, expr->parts[0], &holder))
        return -1;
    return value_attribute(render, expr->span, &holder, expr->name, out);
}

static int evaluate_index(struct render *render, const struct expr *expr, struct value *out) {
    struct node holder, key;

    if (evaluate_known(render, expr->parts[0], &holder) ||
        evaluate_known(render, expr->parts[1], &key))
        return -1;
    return value_index(render, expr->span, &holder, &key, out);
}

static int evaluate_slice(struct render *render, const struct expr *expr, struct value *out) {
    const struct node *bounds[3] = { 0 };
    struct node holder, values[3], slice;

    if (evaluate_known(render, expr->parts[0], &holder))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        if (!expr->parts[1 + i])
            continue;
        if (evaluate_known(render, expr->parts[1 + i], &values[i]))
            return -1;
        bounds[i] = &values[i];
    }
    if (value_slice(render, expr->span, &holder, bounds, &slice))
        return -1;
    *out = known(slice);
    return 0;
}

static int evaluate_sign(struct render *render, const struct expr *expr, struct value *out) {
    struct node operand;

    if (evaluate_known(render, expr->parts[0], &operand))
        return -1;
    if (!value_is_number(&operand))
        return fail(render, expr->span, "`%c` does not work on %s",
                    expr->kind == EXPR_NEGATE ? '-' : '+', node_kind_name(&operand));
    if (operand.kind == NODE_FLOAT) {
        *out = known(node_float(expr->kind == EXPR_NEGATE ? -operand.number : operand.number,
                                render->place));
        return 0;
    }
    if (expr->kind == EXPR_NEGATE && value_whole(&operand) == INT64_MIN)
        return fail(render, expr->span, "the result is beyond 64 bits");
    *out = known(node_int(
        expr->kind == EXPR_NEGATE ? -value_whole(&operand) : value_whole(&operand), render->place));
    return 0;
}

static int evaluate_not(struct render *render, const struct expr *expr, struct value *out) {
    struct node operand;

    if (evaluate_known(render, expr->parts[0], &operand))
        return -1;
    *out = known(node_bool(!value_truth(&operand), render->place));
    return 0;
}

static int evaluate_binary(struct render *render, const struct expr *expr, struct value *out) {
    struct node a, b, result;

    if (evaluate_known(render, expr->parts[0], &a) || evaluate_known(render, expr->parts[1], &b) ||
        expr->operators[0]->apply(render, expr->span, &a, &b, &result))
        return -1;
    *out = known(result);
    return 0;
}

static int evaluate_compare(struct render *render, const struct expr *expr, struct value *out) {
    struct node a, b, result = node_bool(true, render->place);

    if (evaluate_known(render, expr->parts[0], &a))
        return -1;
    for (uint32_t i = 0; i + 1 < expr->count && result.truth; i++, a = b)
        if (evaluate_known(render, expr->parts[i + 1], &b) ||
            expr->operators[i]->apply(render, expr->span, &a, &b, &result))
            return -1;
    *out = known(result);
    return 0;
}

/* The operand that decides is the value, as in Python. */
static int evaluate_logic(struct render *render, const struct expr *expr, struct value *out) {
    struct node left;

    if (evaluate_known(render, expr->parts[0], &left))
        return -1;
    if (value_truth(&left) != (expr->kind == EXPR_AND)) {
        *out = known(left);
        return 0;
    }
    return evaluate(render, expr->parts[1], out);
}

static int evaluate_choice(struct render *render, const struct expr *expr, struct value *out) {
    struct node condition;

    if (evaluate_known(render, expr->parts[1], &condition))
        return -1;
    if (value_truth(&condition))
        return evaluate(render, expr->parts[0], out);
    if (expr->parts[2])
        return evaluate(render, expr->parts[2], out);
    return make_unknown(render, UNKNOWN_CHOICE, expr->span, "", NULL, out);
}

static int check_receiver(struct render *render, const struct expr *expr,
                          const struct node *input) {
    if (expr->routine->receiver == NODE_NULL || expr->routine->receiver == input->kind)
        return 0;
    return fail(render, expr->span, "%s has no method `%s`", node_kind_name(input), expr->name);
}

static int evaluate_routine(struct render *render, const struct expr *expr, struct value *out) {
    const struct routine *routine = expr->routine;
    struct call call = { .span = expr->span, .name = expr->name };
    struct node args[ARGUMENTS_MAX];

    if (expr->parts[0]) {
        if (evaluate(render, expr->parts[0], &call.input))
            return -1;
        if (call.input.unknown && !routine->takes_unknown)
            return fail_unknown(render, call.input.unknown);
        if (!call.input.unknown && check_receiver(render, expr, &call.input.node))
            return -1;
    }
    for (uint32_t i = 0; i < ARGUMENTS_MAX; i++) {
        if (!expr->parts[1 + i])
            continue;
        if (evaluate_known(render, expr->parts[1 + i], &args[i]))
            return -1;
        call.args[i] = &args[i];
        call.count = i + 1;
    }
    if (routine->run(render, &call, out))
        return -1;
    if (expr->negated)
        out->node.truth = !out->node.truth;
    return 0;
}

static int (*const evaluators[])(struct render *, const struct expr *, struct value *) = {
    [EXPR_VALUE] = evaluate_value,         [EXPR_NAME] = evaluate_name,
    [EXPR_LIST] = evaluate_list,           [EXPR_MAP] = evaluate_map,
    [EXPR_ATTRIBUTE] = evaluate_attribute, [EXPR_INDEX] = evaluate_index,
    [EXPR_SLICE] = evaluate_slice,         [EXPR_NEGATE] = evaluate_sign,
    [EXPR_PLUS] = evaluate_sign,           [EXPR_NOT] = evaluate_not,
    [EXPR_BINARY] = evaluate_binary,       [EXPR_COMPARE] = evaluate_compare,
    [EXPR_AND] = evaluate_logic,           [EXPR_OR] = evaluate_logic,
    [EXPR_CHOICE] = evaluate_choice,       [EXPR_ROUTINE] = evaluate_routine,
};
static_assert(ARRAY_LEN(evaluators) == EXPR_KIND_COUNT, "every kind of expression is evaluated");

int evaluate(struct render *render, const struct expr *expr, struct value *out) {
    if (spend(render, expr->span, 1))
        return -1;
    return evaluators[expr->kind](render, expr, out);
}

int evaluate_known(struct render *render, const struct expr *expr, struct node *out) {
    struct value value;

    if (evaluate(render, expr, &value))
        return -1;
    if (value.unknown)
        return fail_unknown(render, value.unknown);
    *out = value.node;
    return 0;
}
