/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to expressions, with the precedence of Jinja2 2.10: see the operators' table. */
#include <string.h>

#include "template/syntax.h"

static const struct {
    const char *word;
    enum node_kind kind;
    bool truth;
} constants[] = {
    { "true", NODE_BOOL, true },   { "True", NODE_BOOL, true },  { "false", NODE_BOOL, false },
    { "False", NODE_BOOL, false }, { "none", NODE_NULL, false }, { "None", NODE_NULL, false },
};

static struct span span_join(struct span from, struct span to) {
    return (struct span){ from.at, to.at + to.length - from.at };
}

/* Everything from `from` to the token before the current one. */
static struct span span_since(const struct parser *parser, struct span from) {
    return span_join(from, parser->token[-1].span);
}

static int new_expr(struct parser *parser, enum expr_kind kind, struct span span, uint32_t count,
                    struct expr **out) {
    struct expr *expr;

    if (scratch_array(parser->render, span, 1, sizeof *expr, &expr) ||
        scratch_array(parser->render, span, count, sizeof *expr->parts, &expr->parts))
        return -1;
    expr->kind = kind;
    expr->span = span;
    expr->height = 1;
    expr->count = count;
    *out = expr;
    return 0;
}

static int set_part(struct parser *parser, struct expr *expr, uint32_t i, struct expr *part) {
    expr->parts[i] = part;
    if (part && part->height >= expr->height)
        expr->height = part->height + 1;
    if (expr->height > EXPR_HEIGHT_MAX)
        return fail(parser->render, expr->span, "an expression of more than %d operations in a row",
                    EXPR_HEIGHT_MAX);
    return 0;
}

static int new_expr_of(struct parser *parser, enum expr_kind kind, struct span span,
                       struct expr *const *parts, uint32_t count, struct expr **out) {
    struct expr *expr;

    if (new_expr(parser, kind, span, count, &expr))
        return -1;
    for (uint32_t i = 0; i < count; i++)
        if (set_part(parser, expr, i, parts[i]))
            return -1;
    *out = expr;
    return 0;
}

/* Expressions that are gathered before their number is known. */
struct gathered {
    struct expr **items;
    uint32_t len, capacity;
};

static int gather(struct parser *parser, struct gathered *gathered, struct expr *expr) {
    struct expr **grown;

    if (gathered->len == gathered->capacity) {
        uint32_t capacity = gathered->capacity ? gathered->capacity * 2 : 4;

        if (scratch_array(parser->render, expr->span, capacity, sizeof(struct expr *), &grown))
            return -1;
        if (gathered->len)
            memcpy(grown, gathered->items, gathered->len * sizeof *grown);
        gathered->items = grown;
        gathered->capacity = capacity;
    }
    gathered->items[gathered->len++] = expr;
    return 0;
}

static int parse_list(struct parser *parser, struct expr **out) {
    struct span begin = parser->token++->span;
    struct gathered items = { 0 };

    while (!parser_at(parser, "]")) {
        struct expr *item;

        if (items.len && parser_expect(parser, ","))
            return -1;
        if (parser_at(parser, "]"))
            break;
        if (parse_expression(parser, &item) || gather(parser, &items, item))
            return -1;
    }
    parser->token++;
    return new_expr_of(parser, EXPR_LIST, span_since(parser, begin), items.items, items.len, out);
}

static int parse_map(struct parser *parser, struct expr **out) {
    struct span begin = parser->token++->span;
    struct gathered pairs = { 0 };

    while (!parser_at(parser, "}")) {
        struct expr *key, *value;

        if (pairs.len && parser_expect(parser, ","))
            return -1;
        if (parser_at(parser, "}"))
            break;
        if (parse_expression(parser, &key) || parser_expect(parser, ":") ||
            parse_expression(parser, &value) || gather(parser, &pairs, key) ||
            gather(parser, &pairs, value))
            return -1;
    }
    parser->token++;
    return new_expr_of(parser, EXPR_MAP, span_since(parser, begin), pairs.items, pairs.len, out);
}

static int parse_parentheses(struct parser *parser, struct expr **out) {
    struct span begin = parser->token++->span;

    if (parser_skip(parser, ")")) {
        if (new_expr(parser, EXPR_LIST, span_since(parser, begin), 0, out))
            return -1;
        (*out)->tuple = true;
        return 0;
    }
    return parse_expressions(parser, PARSE_CHOICE, out) || parser_expect(parser, ")") ? -1 : 0;
}

static int parse_literal(struct parser *parser, struct expr **out) {
    const struct token *token = parser->token++;
    struct node value = token->value;
    size_t len = value.count;

    /* texts side by side are one text */
    while (value.kind == NODE_TEXT && parser->token->kind == TOKEN_VALUE &&
           parser->token->value.kind == NODE_TEXT) {
        const struct node *more = &parser->token++->value;
        char *joined;

        if (spend_text(parser->render, token->span, len) ||
            scratch_array(parser->render, token->span, len + more->count + 1, 1, &joined))
            return -1;
        memcpy(joined, value.text, len);
        memcpy(joined + len, more->text, more->count);
        len += more->count;
        value = node_text(joined, len, parser->render->place);
    }
    if (new_expr(parser, EXPR_VALUE, span_since(parser, token->span), 0, out))
        return -1;
    (*out)->value = value;
    return 0;
}

static int parse_name(struct parser *parser, struct expr **out) {
    const struct token *token = parser->token;

    if (is_keyword(token->text))
        return parser_unexpected(parser, "a value");
    parser->token++;
    if (new_expr(parser, EXPR_NAME, token->span, 0, out))
        return -1;
    (*out)->name = token->text;
    for (size_t i = 0; i < ARRAY_LEN(constants); i++)
        if (strcmp(constants[i].word, token->text) == 0) {
            (*out)->kind = EXPR_VALUE;
            (*out)->value = constants[i].kind == NODE_NULL
                                ? node_null(parser->render->place)
                                : node_bool(constants[i].truth, parser->render->place);
        }
    return 0;
}

static int parse_primary(struct parser *parser, struct expr **out) {
    if (parser->token->kind == TOKEN_NAME)
        return parse_name(parser, out);
    if (parser->token->kind == TOKEN_VALUE)
        return parse_literal(parser, out);
    if (parser_at(parser, "("))
        return parse_parentheses(parser, out);
    if (parser_at(parser, "["))
        return parse_list(parser, out);
    if (parser_at(parser, "{"))
        return parse_map(parser, out);
    return parser_unexpected(parser, "a value");
}

/* The slot for an argument: by its name, or the next in order. */
static int argument_slot(struct parser *parser, const struct routine *routine, const char *keyword,
                         struct span span, uint32_t given, uint32_t *slot) {
    uint32_t n = 0;

    while (n < ARRAY_LEN(routine->parameters) && routine->parameters[n])
        n++;
    if (keyword) {
        for (*slot = 0; *slot < n; (*slot)++)
            if (strcmp(routine->parameters[*slot], keyword) == 0)
                return 0;
        fail(parser->render, span, "`%s` has no argument `%s`", routine->name, keyword);
        return n ? fail_help(parser->render, "its first argument is `%s`", routine->parameters[0])
                 : -1;
    }
    *slot = given;
    if (given < (routine->variadic ? ARGUMENTS_MAX : n))
        return 0;
    return fail(parser->render, span, "`%s` takes at most %u argument%s", routine->name,
                routine->variadic ? ARGUMENTS_MAX : n, n == 1 ? "" : "s");
}

/* Arguments in parentheses, bound to the parameters of the row: parts[1] is the first. */
static int parse_arguments(struct parser *parser, struct expr *call) {
    const struct routine *routine = call->routine;
    uint32_t given = 0, slot;

    for (bool first = true; !parser_skip(parser, ")"); first = false) {
        struct span span = parser->token->span;
        const char *keyword = NULL;
        struct expr *value;

        if (!first && parser_expect(parser, ","))
            return -1;
        if (!first && parser_skip(parser, ")"))
            break;
        if (parser->token->kind == TOKEN_NAME && parser->token[1].kind == TOKEN_OPERATOR &&
            strcmp(parser->token[1].text, "=") == 0) {
            keyword = parser->token->text;
            parser->token += 2;
        }
        if (parse_expression(parser, &value) ||
            argument_slot(parser, routine, keyword, keyword ? span : value->span, given, &slot))
            return -1;
        if (call->parts[1 + slot])
            return fail(parser->render, span, "this argument of `%s` is given twice",
                        routine->name);
        if (set_part(parser, call, 1 + slot, value))
            return -1;
        given += !keyword;
    }
    return 0;
}

static int check_required(struct parser *parser, const struct expr *call) {
    const struct routine *routine = call->routine;

    for (uint32_t i = 0; i < routine->required; i++)
        if (!call->parts[1 + i])
            return fail(parser->render, call->span, "`%s` needs the argument `%s`", routine->name,
                        routine->parameters[i]);
    return 0;
}

static int new_call(struct parser *parser, struct span span, const struct routines *routines,
                    const char *name, struct expr *input, struct expr **out) {
    const struct routine *routine = routine_find(routines, name);

    if (!routine)
        return fail_no_routine(parser->render, span, routines, name);
    if (new_expr(parser, EXPR_ROUTINE, span, 1 + ARGUMENTS_MAX, out))
        return -1;
    (*out)->routine = routine;
    (*out)->name = name;
    return set_part(parser, *out, 0, input);
}

/* `name(…)` is a function, `value.name(…)` a method; nothing else can be called. */
static int parse_call(struct parser *parser, struct span begin, struct expr *callee,
                      struct expr **out) {
    const struct routines *routines = callee->kind == EXPR_NAME ? &functions : &methods;
    struct expr *input = callee->kind == EXPR_ATTRIBUTE ? callee->parts[0] : NULL;

    if (callee->kind != EXPR_NAME && callee->kind != EXPR_ATTRIBUTE)
        return fail(parser->render, callee->span, "this is not a function");
    if (new_call(parser, callee->span, routines, callee->name, input, out))
        return -1;
    parser->token++;
    if (parse_arguments(parser, *out))
        return -1;
    (*out)->span = span_since(parser, begin);
    return check_required(parser, *out);
}

static int parse_attribute(struct parser *parser, struct span begin, struct expr *holder,
                           struct expr **out) {
    const struct token *token = parser->token;
    struct expr *index, *parts[2] = { holder };

    if (token->kind == TOKEN_VALUE && token->value.kind == NODE_INT) {
        if (parse_literal(parser, &index))
            return -1;
        parts[1] = index;
        return new_expr_of(parser, EXPR_INDEX, span_since(parser, begin), parts, 2, out);
    }
    if (token->kind != TOKEN_NAME)
        return parser_unexpected(parser, "a name");
    parser->token++;
    if (new_expr_of(parser, EXPR_ATTRIBUTE, span_since(parser, begin), parts, 1, out))
        return -1;
    (*out)->name = token->text;
    return 0;
}

/* [index] or [from:to:step], each of the three left out at will. */
static int parse_subscript(struct parser *parser, struct span begin, struct expr *holder,
                           struct expr **out) {
    struct expr *parts[4] = { holder };
    uint32_t n = 1;

    if (parser_at(parser, "]"))
        return parser_unexpected(parser, "an index");
    while (!parser_at(parser, "]")) {
        if (parser_skip(parser, ":")) {
            if (++n > 3)
                return parser_unexpected(parser, "`]`");
            continue;
        }
        if (parts[n])
            return parser_unexpected(parser, "`]`");
        if (parse_expression(parser, &parts[n]))
            return -1;
    }
    parser->token++;
    if (n == 1)
        return new_expr_of(parser, EXPR_INDEX, span_since(parser, begin), parts, 2, out);
    return new_expr_of(parser, EXPR_SLICE, span_since(parser, begin), parts, 4, out);
}

static int parse_postfix(struct parser *parser, struct span begin, struct expr **expr) {
    for (;;) {
        int failed;

        if (parser_skip(parser, "."))
            failed = parse_attribute(parser, begin, *expr, expr);
        else if (parser_skip(parser, "["))
            failed = parse_subscript(parser, begin, *expr, expr);
        else if (parser_at(parser, "("))
            failed = parse_call(parser, begin, *expr, expr);
        else
            return 0;
        if (failed)
            return -1;
    }
}

static int parse_filter(struct parser *parser, struct expr **expr) {
    const struct token *token = parser->token;

    if (token->kind != TOKEN_NAME)
        return parser_unexpected(parser, "the name of a filter");
    parser->token++;
    if (new_call(parser, token->span, &filters, token->text, *expr, expr) ||
        (parser_skip(parser, "(") && parse_arguments(parser, *expr)))
        return -1;
    return check_required(parser, *expr);
}

/* `is odd`, `is not none`, `is divisibleby(3)`, `is divisibleby 3`. */
static int parse_test(struct parser *parser, struct expr **expr) {
    bool negated = parser_skip(parser, "not");
    const struct token *token = parser->token;
    struct expr *argument;
    struct span begin;

    if (token->kind != TOKEN_NAME)
        return parser_unexpected(parser, "the name of a test");
    parser->token++;
    if (new_call(parser, token->span, &tests, token->text, *expr, expr))
        return -1;
    (*expr)->negated = negated;
    if (parser_skip(parser, "(")) {
        if (parse_arguments(parser, *expr))
            return -1;
    } else if ((*expr)->routine->required &&
               (parser->token->kind == TOKEN_VALUE || parser->token->kind == TOKEN_NAME ||
                parser_at(parser, "[") || parser_at(parser, "{"))) {
        begin = parser->token->span;
        if (parser_enter(parser) || parse_primary(parser, &argument) ||
            parse_postfix(parser, begin, &argument) || set_part(parser, *expr, 1, argument))
            return -1;
        parser_leave(parser);
    }
    return check_required(parser, *expr);
}

static int parse_filters(struct parser *parser, struct expr **expr) {
    for (;;) {
        int failed;

        if (parser_skip(parser, "|"))
            failed = parse_filter(parser, expr);
        else if (parser_skip(parser, "is"))
            failed = parse_test(parser, expr);
        else
            return 0;
        if (failed)
            return -1;
    }
}

enum with_filters { WITHOUT_FILTERS, WITH_FILTERS };

static int parse_unary(struct parser *parser, enum with_filters with, struct expr **out) {
    struct span begin = parser->token->span;
    bool negate = parser_at(parser, "-");

    if (parser_enter(parser))
        return -1;
    if (negate || parser_at(parser, "+")) {
        struct expr *operand;

        parser->token++;
        if (parse_unary(parser, WITHOUT_FILTERS, &operand) ||
            new_expr_of(parser, negate ? EXPR_NEGATE : EXPR_PLUS, span_since(parser, begin),
                        &operand, 1, out))
            return -1;
    } else if (parse_primary(parser, out)) {
        return -1;
    }
    if (parse_postfix(parser, begin, out))
        return -1;
    if (with == WITH_FILTERS && parse_filters(parser, out))
        return -1;
    parser_leave(parser);
    return 0;
}

/* The operator at the current token, which it does not pass. */
static const struct operator_row *operator_at(const struct parser *parser) {
    const struct token *token = parser->token;

    if (token->kind != TOKEN_NAME && token->kind != TOKEN_OPERATOR)
        return NULL;
    if (parser_at(parser, "not"))
        return token[1].kind == TOKEN_NAME && strcmp(token[1].text, "in") == 0
                   ? operator_find("not in")
                   : NULL;
    return operator_find(token->text);
}

static int parse_binary(struct parser *parser, int lowest, struct expr **out);

/* a < b <= c: each operand once, the operators in between. */
static int parse_comparison(struct parser *parser, struct span begin, struct expr *first,
                            struct expr **out) {
    const struct operator_row *rows[TEMPLATE_DEPTH_MAX], *row;
    struct gathered parts = { 0 };
    uint32_t n = 0;

    if (gather(parser, &parts, first))
        return -1;
    while ((row = operator_at(parser)) && row->kind == EXPR_COMPARE) {
        struct expr *operand;

        if (n == TEMPLATE_DEPTH_MAX)
            return fail(parser->render, parser->token->span, "more than %d comparisons in a row",
                        TEMPLATE_DEPTH_MAX);
        rows[n++] = row;
        parser->token += strchr(row->name, ' ') ? 2 : 1;
        if (parse_binary(parser, PRECEDENCE_COMPARE + 1, &operand) ||
            gather(parser, &parts, operand))
            return -1;
    }
    if (new_expr_of(parser, EXPR_COMPARE, span_since(parser, begin), parts.items, parts.len, out) ||
        scratch_array(parser->render, first->span, n, sizeof *rows, &(*out)->operators))
        return -1;
    memcpy((*out)->operators, rows, n * sizeof *rows);
    return 0;
}

static int parse_operand(struct parser *parser, int lowest, struct expr **out) {
    struct span begin = parser->token->span;
    struct expr *operand;

    if (lowest > PRECEDENCE_NOT || !parser_skip(parser, "not"))
        return parse_unary(parser, WITH_FILTERS, out);
    if (parser_enter(parser) || parse_binary(parser, PRECEDENCE_NOT, &operand))
        return -1;
    parser_leave(parser);
    return new_expr_of(parser, EXPR_NOT, span_since(parser, begin), &operand, 1, out);
}

static int parse_binary(struct parser *parser, int lowest, struct expr **out) {
    struct span begin = parser->token->span;
    const struct operator_row *row;

    if (parse_operand(parser, lowest, out))
        return -1;
    while ((row = operator_at(parser)) && row->precedence >= lowest) {
        struct expr *parts[2] = { *out };

        if (row->kind == EXPR_COMPARE) {
            if (parse_comparison(parser, begin, *out, out))
                return -1;
            continue;
        }
        parser->token++;
        if (parse_binary(parser, row->precedence + 1, &parts[1]) ||
            new_expr_of(parser, row->kind, span_since(parser, begin), parts, 2, out) ||
            scratch_array(parser->render, (*out)->span, 1, sizeof row, &(*out)->operators))
            return -1;
        (*out)->operators[0] = row;
    }
    return 0;
}

int parse_expression(struct parser *parser, struct expr **out) {
    struct span begin = parser->token->span;

    if (parser_enter(parser) || parse_binary(parser, PRECEDENCE_LOWEST, out))
        return -1;
    while (parser_skip(parser, "if")) {
        struct expr *parts[3] = { *out };

        if (parse_binary(parser, PRECEDENCE_LOWEST, &parts[1]) ||
            (parser_skip(parser, "else") && parse_expression(parser, &parts[2])) ||
            new_expr_of(parser, EXPR_CHOICE, span_since(parser, begin), parts, 3, out))
            return -1;
    }
    parser_leave(parser);
    return 0;
}

int parse_expressions(struct parser *parser, enum parse_choice choice, struct expr **out) {
    struct span begin = parser->token->span;
    struct gathered items = { 0 };
    struct expr *item;
    bool tuple = false;

    do {
        const struct token *token = parser->token;

        if (items.len && (token->kind == TOKEN_PRINT_END || token->kind == TOKEN_BLOCK_END ||
                          parser_at(parser, ")")))
            break;
        if ((choice == PARSE_CHOICE ? parse_expression(parser, &item)
                                    : parse_binary(parser, PRECEDENCE_LOWEST, &item)) ||
            gather(parser, &items, item))
            return -1;
        tuple = tuple || parser_at(parser, ",");
    } while (parser_skip(parser, ","));
    if (!tuple) {
        *out = items.items[0];
        return 0;
    }
    if (new_expr_of(parser, EXPR_LIST, span_since(parser, begin), items.items, items.len, out))
        return -1;
    (*out)->tuple = true;
    return 0;
}
