/* SPDX-License-Identifier: Apache-2.0 */
/* What the parsers of expressions and of statements share. */
#include <stdio.h>
#include <string.h>

#include "template/syntax.h"

/* Words that cannot be names. */
static const char *const keywords[] = { "and", "or", "not", "in", "is", "if", "else" };

bool is_keyword(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        if (strcmp(keywords[i], name) == 0)
            return true;
    return false;
}

bool parser_at(const struct parser *parser, const char *word) {
    const struct token *token = parser->token;

    return (token->kind == TOKEN_NAME || token->kind == TOKEN_OPERATOR) &&
           strcmp(token->text, word) == 0;
}

bool parser_skip(struct parser *parser, const char *word) {
    if (!parser_at(parser, word))
        return false;
    parser->token++;
    return true;
}

int parser_unexpected(struct parser *parser, const char *wanted) {
    const struct token *token = parser->token;
    bool at_end = token->kind == TOKEN_END || token->kind == TOKEN_PRINT_END ||
                  token->kind == TOKEN_BLOCK_END;

    return fail(parser->render, token->span, "%s stands where %s is expected",
                at_end ? "the end" : "this", wanted);
}

int parser_expect(struct parser *parser, const char *word) {
    char wanted[16];

    if (parser_skip(parser, word))
        return 0;
    snprintf(wanted, sizeof wanted, "`%s`", word);
    return parser_unexpected(parser, wanted);
}

int parser_enter(struct parser *parser) {
    if (++parser->depth > TEMPLATE_DEPTH_MAX)
        return fail(parser->render, parser->token->span, "nested deeper than %d levels",
                    TEMPLATE_DEPTH_MAX);
    return 0;
}

void parser_leave(struct parser *parser) {
    parser->depth--;
}
