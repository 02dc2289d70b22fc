/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a template's text becomes: tokens, then a tree of statements and expressions.
 *
 * Both live in the scratch arena of one rendering. The parser binds every operator, filter,
 * test and function to its row and every argument to its parameter, so a misspelt one is
 * reported even in a branch that is never taken.
 */
#ifndef TEMPLATE_SYNTAX_H
#define TEMPLATE_SYNTAX_H

#include "template/render.h"

enum { EXPR_HEIGHT_MAX = 400 }; /* bounds the stack that evaluating a long a + b + c… takes */

enum token_kind {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_PRINT_BEGIN,
    TOKEN_PRINT_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_OPERATOR,
    TOKEN_VALUE, /* a number or a text */
};

struct token {
    enum token_kind kind;
    struct span span;
    const char *text;  /* of a name, an operator, or data */
    size_t len;        /* of data */
    struct node value; /* of TOKEN_VALUE */
};

enum expr_kind {
    EXPR_VALUE,
    EXPR_NAME,
    EXPR_LIST,
    EXPR_MAP,       /* parts: key, value, key, value, … */
    EXPR_ATTRIBUTE, /* parts[0].name */
    EXPR_INDEX,     /* parts[0][parts[1]] */
    EXPR_SLICE,     /* parts[0][parts[1]:parts[2]:parts[3]]; the last three may be NULL */
    EXPR_NEGATE,
    EXPR_PLUS,
    EXPR_NOT,
    EXPR_BINARY,
    EXPR_COMPARE, /* parts[0] operators[0] parts[1] operators[1] parts[2] … */
    EXPR_AND,
    EXPR_OR,
    EXPR_CHOICE,  /* parts[0] if parts[1] else parts[2], which may be NULL */
    EXPR_ROUTINE, /* a filter, test, method or function; parts[0] is its input */
    EXPR_KIND_COUNT,
};

struct operator_row;

struct expr {
    enum expr_kind kind;
    struct span span;
    uint32_t height;
    bool tuple;   /* of EXPR_LIST */
    bool negated; /* of EXPR_ROUTINE: `is not` */
    const char *name;
    struct node value;
    const struct routine *routine;
    const struct operator_row **operators;
    struct expr **parts;
    uint32_t count;
};

/* Binds as tightly as `precedence` says; all operators group from the left, as in Jinja2. */
struct operator_row {
    const char *name;
    int precedence;
    enum expr_kind kind;
    int (*apply)(struct render *render, struct span span, const struct node *a,
                 const struct node *b, struct node *out);
};

enum { PRECEDENCE_LOWEST = 1, PRECEDENCE_NOT = 3, PRECEDENCE_COMPARE = 4 };

/* NULL when there is none of this name. */
const struct operator_row *operator_find(const char *name);

enum stmt_kind { STMT_DATA, STMT_PRINT, STMT_IF, STMT_FOR, STMT_SET, STMT_KIND_COUNT };

struct stmt {
    enum stmt_kind kind;
    struct span span;
    struct stmt *next;
    const char *data;
    size_t len;
    struct expr *expr;      /* printed, asked (NULL for else), looped over, or set */
    struct expr *condition; /* of a loop: for x in xs if condition */
    const char **targets;
    size_t n_targets;
    struct stmt *body;
    struct stmt *otherwise; /* of an if: the next branch; of a loop: the branch for no items */
};

struct parser {
    struct render *render;
    const struct token *token; /* the current one; the last is TOKEN_END */
    unsigned depth;
};

/* The whole text as tokens, with whitespace control, comments and raw sections done. */
MUST_CHECK int lex(struct render *render, const char *text, size_t n, struct token **out);

MUST_CHECK int parse_template(struct parser *parser, struct stmt **out);
MUST_CHECK int parse_expression(struct parser *parser, struct expr **out);
/* Also `a, b`, which is a tuple. With PARSE_NO_CHOICE an `if` after it belongs to the caller. */
enum parse_choice { PARSE_CHOICE, PARSE_NO_CHOICE };
MUST_CHECK int parse_expressions(struct parser *parser, enum parse_choice choice,
                                 struct expr **out);

/* Shared by the two parsers. */
bool parser_at(const struct parser *parser, const char *word);
bool parser_skip(struct parser *parser, const char *word);
MUST_CHECK int parser_expect(struct parser *parser, const char *word);
MUST_CHECK int parser_unexpected(struct parser *parser, const char *wanted);
MUST_CHECK int parser_enter(struct parser *parser);
void parser_leave(struct parser *parser);
bool is_keyword(const char *name);

MUST_CHECK int evaluate(struct render *render, const struct expr *expr, struct value *out);
/* As evaluate, but a value that is not there is an error. */
MUST_CHECK int evaluate_known(struct render *render, const struct expr *expr, struct node *out);

MUST_CHECK int execute(struct render *render, const struct stmt *stmt, struct buf *out);

#endif
