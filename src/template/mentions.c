/* SPDX-License-Identifier: Apache-2.0 */
/* Which names a template uses, without rendering it. */
#include <string.h>

#include "template/syntax.h"

static bool is_dot(const struct token *token) {
    return token->kind == TOKEN_OPERATOR && strcmp(token->text, ".") == 0;
}

void template_mentions(const char *text, size_t n, void (*mention)(void *context, const char *name),
                       void *context) {
    const struct node node = node_text(text, n, (struct place){ 0 });
    struct diag unheard = { 0 }; /* the rendering reports what is wrong with the text */
    struct render render = { .text = &node, .failure = &unheard };
    struct token *tokens;

    if (template_is_plain(text, n))
        return;
    if (lex(&render, text, n, &tokens) == 0)
        for (const struct token *token = tokens; token->kind != TOKEN_END; token++)
            if (token->kind == TOKEN_NAME && (token == tokens || !is_dot(token - 1)))
                mention(context, token->text);
    arena_release(&render.scratch);
}
