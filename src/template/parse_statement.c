/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to statements. Each statement is a row; a new one is a row and its parser. */
#include <string.h>

#include "codec/nearest.h"
#include "template/syntax.h"

enum { TARGETS_MAX = 8 };

static int parse_body(struct parser *parser, const char *const *ends, struct span opener,
                      struct stmt **out);

static int new_stmt(struct parser *parser, enum stmt_kind kind, struct span span,
                    struct stmt **out) {
    if (scratch_array(parser->render, span, 1, sizeof **out, out))
        return -1;
    (*out)->kind = kind;
    (*out)->span = span;
    return 0;
}

/* The word of a `{% word`, where the parser stands before it, or NULL. */
static const char *block_word(const struct parser *parser) {
    return parser->token->kind == TOKEN_BLOCK_BEGIN && parser->token[1].kind == TOKEN_NAME
               ? parser->token[1].text
               : NULL;
}

static bool at_block(const struct parser *parser, const char *word) {
    const char *found = block_word(parser);

    return found && strcmp(found, word) == 0;
}

static int end_block(struct parser *parser) {
    if (parser->token->kind != TOKEN_BLOCK_END)
        return parser_unexpected(parser, "`%}`");
    parser->token++;
    return 0;
}

/* `{% word %}` as a whole. */
static int take_block(struct parser *parser) {
    parser->token += 2;
    return end_block(parser);
}

/* a, b or (a, b): the names that a loop or a set gives values to. */
static int parse_targets(struct parser *parser, struct stmt *stmt) {
    bool bracket = parser_skip(parser, "(");
    const char *names[TARGETS_MAX];
    size_t n = 0;

    do {
        const struct token *token = parser->token;

        if (token->kind != TOKEN_NAME || is_keyword(token->text))
            return parser_unexpected(parser, "a name");
        if (n == TARGETS_MAX)
            return fail(parser->render, token->span, "more than %d names", TARGETS_MAX);
        names[n++] = token->text;
        parser->token++;
    } while (parser_skip(parser, ","));
    if (bracket && parser_expect(parser, ")"))
        return -1;
    if (scratch_array(parser->render, stmt->span, n, sizeof *names, &stmt->targets))
        return -1;
    memcpy(stmt->targets, names, n * sizeof *names);
    stmt->n_targets = n;
    return 0;
}

static int parse_if(struct parser *parser, struct stmt *stmt) {
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    static const char *const last[] = { "endif", NULL };
    struct span opener = stmt->span;

    for (;;) {
        if (parse_expressions(parser, PARSE_CHOICE, &stmt->expr) || end_block(parser) ||
            parse_body(parser, ends, opener, &stmt->body))
            return -1;
        if (!at_block(parser, "elif"))
            break;
        if (new_stmt(parser, STMT_IF, parser->token[1].span, &stmt->otherwise))
            return -1;
        parser->token += 2;
        stmt = stmt->otherwise;
    }
    if (at_block(parser, "else"))
        if (new_stmt(parser, STMT_IF, parser->token[1].span, &stmt->otherwise) ||
            take_block(parser) || parse_body(parser, last, opener, &stmt->otherwise->body))
            return -1;
    return take_block(parser);
}

static int parse_for(struct parser *parser, struct stmt *stmt) {
    static const char *const ends[] = { "else", "endfor", NULL };
    static const char *const last[] = { "endfor", NULL };

    if (parse_targets(parser, stmt) || parser_expect(parser, "in") ||
        parse_expressions(parser, PARSE_NO_CHOICE, &stmt->expr) ||
        (parser_skip(parser, "if") && parse_expression(parser, &stmt->condition)))
        return -1;
    if (parser_at(parser, "recursive"))
        return fail(parser->render, parser->token->span, "recursive loops are not supported");
    if (end_block(parser) || parse_body(parser, ends, stmt->span, &stmt->body))
        return -1;
    if (at_block(parser, "else"))
        if (take_block(parser) || parse_body(parser, last, stmt->span, &stmt->otherwise))
            return -1;
    return take_block(parser);
}

static int parse_set(struct parser *parser, struct stmt *stmt) {
    if (parse_targets(parser, stmt) || parser_expect(parser, "=") ||
        parse_expressions(parser, PARSE_CHOICE, &stmt->expr))
        return -1;
    return end_block(parser);
}

static const struct statement {
    const char *name;
    enum stmt_kind kind;
    int (*parse)(struct parser *parser, struct stmt *stmt);
} statements[] = {
    { "if", STMT_IF, parse_if },
    { "for", STMT_FOR, parse_for },
    { "set", STMT_SET, parse_set },
};

/* Words that only stand inside of a statement: which one. */
static const struct {
    const char *word, *inside;
} inner_words[] = {
    { "elif", "if" },    { "else", "if` or `for" }, { "endif", "if" },
    { "endfor", "for" }, { "endraw", "raw" },
};

static int fail_statement(struct parser *parser, const struct token *token) {
    const char *names[ARRAY_LEN(statements)], *nearest;

    for (size_t i = 0; i < ARRAY_LEN(inner_words); i++)
        if (strcmp(inner_words[i].word, token->text) == 0)
            return fail(parser->render, token->span, "`%s` without `%s` before it", token->text,
                        inner_words[i].inside);
    for (size_t i = 0; i < ARRAY_LEN(statements); i++)
        names[i] = statements[i].name;
    nearest = nearest_name(token->text, names, ARRAY_LEN(names));
    fail(parser->render, token->span, "there is no statement `%s`", token->text);
    if (nearest)
        return fail_help(parser->render, "did you mean `%s`?", nearest);
    return fail_help(parser->render, "there are: if, for, set, raw");
}

static int parse_block(struct parser *parser, struct stmt **out) {
    const struct token *token = ++parser->token;

    if (token->kind != TOKEN_NAME)
        return parser_unexpected(parser, "a statement");
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        if (strcmp(statements[i].name, token->text) != 0)
            continue;
        parser->token++;
        if (parser_enter(parser) || new_stmt(parser, statements[i].kind, token->span, out) ||
            statements[i].parse(parser, *out))
            return -1;
        parser_leave(parser);
        return 0;
    }
    return fail_statement(parser, token);
}

static int parse_print(struct parser *parser, struct stmt **out) {
    struct span begin = parser->token++->span;

    if (new_stmt(parser, STMT_PRINT, begin, out) ||
        parse_expressions(parser, PARSE_CHOICE, &(*out)->expr))
        return -1;
    if (parser->token->kind != TOKEN_PRINT_END)
        return parser_unexpected(parser, "an operator or `}}`");
    parser->token++;
    return 0;
}

static int parse_data(struct parser *parser, struct stmt **out) {
    const struct token *token = parser->token++;

    if (new_stmt(parser, STMT_DATA, token->span, out))
        return -1;
    (*out)->data = token->text;
    (*out)->len = token->len;
    return 0;
}

static bool at_end(const struct parser *parser, const char *const *ends) {
    for (; *ends; ends++)
        if (at_block(parser, *ends))
            return true;
    return false;
}

/* Statements up to one of `ends`, before which it stops; or, without any, to the end of the text.
 */
static int parse_body(struct parser *parser, const char *const *ends, struct span opener,
                      struct stmt **out) {
    *out = NULL;
    while (!(ends && at_end(parser, ends))) {
        int failed;

        if (parser->token->kind == TOKEN_END) {
            const char *const *last = ends;

            if (!ends)
                return 0;
            while (last[1])
                last++;
            return fail(parser->render, opener, "this is never closed by `{%% %s %%}`", *last);
        }
        failed = parser->token->kind == TOKEN_DATA          ? parse_data(parser, out)
                 : parser->token->kind == TOKEN_PRINT_BEGIN ? parse_print(parser, out)
                                                            : parse_block(parser, out);
        if (failed)
            return -1;
        out = &(*out)->next;
    }
    return 0;
}

int parse_template(struct parser *parser, struct stmt **out) {
    return parse_body(parser, NULL, (struct span){ 0 }, out);
}
