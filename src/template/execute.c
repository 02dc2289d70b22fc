/* SPDX-License-Identifier: Apache-2.0 */
/* Statements to output. */
#include <assert.h>
#include <string.h>

#include "template/syntax.h"

/* The members of `loop`, in the order in which loop_update writes them. */
static const char *const loop_members[] = { "index", "index0", "revindex", "revindex0",
                                            "first", "last",   "length" };

static int append(struct render *render, struct span span, struct buf *out, const char *text,
                  size_t n) {
    struct error err;

    if (spend_text(render, span, n))
        return -1;
    if (buf_append(out, text, n, &err))
        return fail(render, span, "the rendered text is larger than the %zu bytes allowed",
                    render->output_max);
    return 0;
}

static int execute_data(struct render *render, const struct stmt *stmt, struct buf *out) {
    return append(render, stmt->span, out, stmt->data, stmt->len);
}

/* As Jinja2 does, an undefined value prints as an empty text: files rely on it. Everything else
 * that is done with one is an error. */
static int print_unknown(struct render *render, const struct unknown *unknown) {
    switch (unknown->reason) {
    case UNKNOWN_CHOICE: return 0;
    case UNKNOWN_NAME:
    case UNKNOWN_MEMBER:
    case UNKNOWN_ITEM: warn_unknown(render, unknown); return 0;
    case UNKNOWN_EMPTY: break;
    }
    return fail_unknown(render, unknown);
}

static int execute_print(struct render *render, const struct stmt *stmt, struct buf *out) {
    struct value value;
    struct node text;

    if (evaluate(render, stmt->expr, &value))
        return -1;
    if (value.unknown)
        return print_unknown(render, value.unknown);
    if (value_text(render, stmt->expr->span, &value.node, &text))
        return -1;
    return append(render, stmt->expr->span, out, text.text, text.count);
}

static int execute_if(struct render *render, const struct stmt *stmt, struct buf *out) {
    for (; stmt; stmt = stmt->otherwise) {
        struct node condition = node_bool(true, render->place);

        if (stmt->expr && evaluate_known(render, stmt->expr, &condition))
            return -1;
        if (value_truth(&condition))
            return execute(render, stmt->body, out);
    }
    return 0;
}

/* Gives a name of the innermost scope a value. */
static int bind(struct render *render, struct span span, const char *name, struct node value) {
    struct binding *binding;

    for (binding = render->scope->bindings; binding; binding = binding->next) {
        if (spend(render, span, 1))
            return -1;
        if (strcmp(binding->name, name) == 0) {
            binding->value = value;
            return 0;
        }
    }
    if (scratch_array(render, span, 1, sizeof *binding, &binding))
        return -1;
    *binding = (struct binding){ render->scope->bindings, name, value };
    render->scope->bindings = binding;
    return 0;
}

/* One name takes the value whole; several take its items. */
static int bind_targets(struct render *render, const struct stmt *stmt, const struct node *value) {
    struct node items;

    if (stmt->n_targets == 1)
        return bind(render, stmt->span, stmt->targets[0], *value);
    if (value_items(render, stmt->expr->span, value, &items))
        return -1;
    if (items.count != stmt->n_targets)
        return fail(render, stmt->expr->span, "%zu names cannot take %u values", stmt->n_targets,
                    items.count);
    for (size_t i = 0; i < stmt->n_targets; i++)
        if (bind(render, stmt->span, stmt->targets[i], items.items[i]))
            return -1;
    return 0;
}

static int execute_set(struct render *render, const struct stmt *stmt, struct buf *out) {
    struct node value;

    (void)out;
    return evaluate_known(render, stmt->expr, &value) || bind_targets(render, stmt, &value) ? -1
                                                                                            : 0;
}

static void loop_update(struct render *render, struct node *loop, uint32_t i, uint32_t n) {
    const struct node values[] = {
        node_int((int64_t)i + 1, render->place),
        node_int(i, render->place),
        node_int((int64_t)n - i, render->place),
        node_int((int64_t)n - i - 1, render->place),
        node_bool(i == 0, render->place),
        node_bool(i + 1 == n, render->place),
        node_int(n, render->place),
    };

    static_assert(ARRAY_LEN(values) == ARRAY_LEN(loop_members), "every member has its value");
    for (size_t k = 0; k < ARRAY_LEN(values); k++)
        loop->members[k].value = values[k];
}

/* Keeps the items for which the loop's condition holds. */
static int select_items(struct render *render, const struct stmt *stmt, struct node *items) {
    struct scope scope = { .outer = render->scope };
    struct node kept, condition;
    uint32_t n = 0;
    int failed = 0;

    if (make_list(render, stmt->span, items->count, &kept))
        return -1;
    render->scope = &scope;
    for (uint32_t i = 0; i < items->count && !failed; i++) {
        scope.bindings = NULL;
        failed = bind_targets(render, stmt, &items->items[i]) ||
                 evaluate_known(render, stmt->condition, &condition);
        if (!failed && value_truth(&condition))
            kept.items[n++] = items->items[i];
    }
    render->scope = scope.outer;
    kept.count = n;
    *items = kept;
    return failed ? -1 : 0;
}

static int loop_once(struct render *render, const struct stmt *stmt, const struct node *item,
                     struct node loop, struct buf *out) {
    struct scope scope = { .outer = render->scope };
    int failed;

    render->scope = &scope;
    failed = spend(render, stmt->span, 1) || bind(render, stmt->span, "loop", loop) ||
             bind_targets(render, stmt, item) || execute(render, stmt->body, out);
    render->scope = scope.outer;
    return failed ? -1 : 0;
}

static int execute_for(struct render *render, const struct stmt *stmt, struct buf *out) {
    struct node iterated, items, loop = node_map(NULL, ARRAY_LEN(loop_members), render->place);
    int failed = 0;

    if (evaluate_known(render, stmt->expr, &iterated) ||
        value_items(render, stmt->expr->span, &iterated, &items) ||
        (stmt->condition && select_items(render, stmt, &items)))
        return -1;
    if (items.count == 0)
        return execute(render, stmt->otherwise, out);
    if (scratch_array(render, stmt->span, loop.count, sizeof *loop.members, &loop.members))
        return -1;
    for (size_t k = 0; k < ARRAY_LEN(loop_members); k++)
        loop.members[k].key = loop_members[k];

    for (uint32_t i = 0; i < items.count && !failed; i++) {
        loop_update(render, &loop, i, items.count);
        failed = loop_once(render, stmt, &items.items[i], loop, out);
    }
    return failed;
}

static int (*const executors[])(struct render *, const struct stmt *, struct buf *) = {
    [STMT_DATA] = execute_data, [STMT_PRINT] = execute_print, [STMT_IF] = execute_if,
    [STMT_FOR] = execute_for,   [STMT_SET] = execute_set,
};
static_assert(ARRAY_LEN(executors) == STMT_KIND_COUNT, "every kind of statement is executed");

int execute(struct render *render, const struct stmt *stmt, struct buf *out) {
    for (; stmt; stmt = stmt->next)
        if (spend(render, stmt->span, 1) || executors[stmt->kind](render, stmt, out))
            return -1;
    return 0;
}
