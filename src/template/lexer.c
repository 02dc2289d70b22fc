/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to tokens. Outside of tags all is data; `-` at a tag's border takes the blanks there away,
 * and one newline at the very end of the text is dropped, as Jinja2 does by default.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "template/syntax.h"

struct lexer {
    struct render *render;
    const char *text;
    size_t n, at;
    struct token *tokens;
    size_t len, capacity;
};

/* Longer ones first: the first that matches is taken. */
static const char *const operator_signs[] = { "**", "//", "==", "!=", "<=", ">=", "+", "-", "*",
                                              "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                              "]",  "{",  "}",  ".",  ",",  ":",  "|" };

static const struct tag {
    char sign; /* after the opening brace */
    enum token_kind begin, end;
    const char *closer;
} tags[] = {
    { '{', TOKEN_PRINT_BEGIN, TOKEN_PRINT_END, "}}" },
    { '%', TOKEN_BLOCK_BEGIN, TOKEN_BLOCK_END, "%}" },
};

static struct span span_of(size_t at, size_t end) {
    return (struct span){ (uint32_t)at, (uint32_t)(end - at) };
}

static int push(struct lexer *lexer, enum token_kind kind, size_t at, struct token **out) {
    struct token *grown, *token;

    if (lexer->len == lexer->capacity) {
        size_t capacity = lexer->capacity ? lexer->capacity * 2 : 32;

        if (scratch_array(lexer->render, span_of(at, at), capacity, sizeof *grown, &grown))
            return -1;
        if (lexer->len)
            memcpy(grown, lexer->tokens, lexer->len * sizeof *grown);
        lexer->tokens = grown;
        lexer->capacity = capacity;
    }
    token = &lexer->tokens[lexer->len++];
    *token = (struct token){ .kind = kind, .span = span_of(at, lexer->at) };
    if (out)
        *out = token;
    return 0;
}

static bool starts_with(const struct lexer *lexer, size_t at, const char *word) {
    size_t len = strlen(word);

    return lexer->n - at >= len && memcmp(lexer->text + at, word, len) == 0;
}

static size_t skip_blanks(const struct lexer *lexer, size_t at) {
    while (at < lexer->n && is_blank(lexer->text[at]))
        at++;
    return at;
}

/* Data in [from, to), with \r\n and \r as \n. */
static int push_data(struct lexer *lexer, size_t from, size_t to) {
    struct token *token;
    size_t len = 0;
    char *data;

    if (from >= to)
        return 0;
    if (scratch_array(lexer->render, span_of(from, to), to - from, 1, &data))
        return -1;
    for (size_t i = from; i < to; i++) {
        if (lexer->text[i] == '\r' && i + 1 < to && lexer->text[i + 1] == '\n')
            continue;
        data[len++] = lexer->text[i] == '\r' ? '\n' : lexer->text[i];
    }
    if (push(lexer, TOKEN_DATA, from, &token))
        return -1;
    token->text = data;
    token->len = len;
    return 0;
}

/* A closer, with or without `-`, at `at`: the offset behind it and the blanks it takes, else 0. */
static size_t closed(const struct lexer *lexer, size_t at, const char *closer) {
    if (starts_with(lexer, at, closer))
        return at + 2;
    if (at < lexer->n && lexer->text[at] == '-' && starts_with(lexer, at + 1, closer))
        return skip_blanks(lexer, at + 3);
    return 0;
}

/* `{% raw %}` and `{% endraw %}` with their variations of blanks and `-`; the offset behind, else
 * 0. */
static size_t raw_tag(const struct lexer *lexer, size_t at, const char *word) {
    if (!starts_with(lexer, at, "{%"))
        return 0;
    at += 2;
    if (at < lexer->n && lexer->text[at] == '-')
        at++;
    at = skip_blanks(lexer, at);
    if (!starts_with(lexer, at, word))
        return 0;
    return closed(lexer, skip_blanks(lexer, at + strlen(word)), "%}");
}

/* Where data ends that runs from `from` to a tag at `tag`: before the blanks, if the tag has `-`.
 */
static size_t data_end(const struct lexer *lexer, size_t from, size_t tag) {
    size_t end = tag;

    if (tag + 2 < lexer->n && lexer->text[tag + 2] == '-')
        while (end > from && is_blank(lexer->text[end - 1]))
            end--;
    return end;
}

static int lex_raw(struct lexer *lexer, size_t tag, size_t body) {
    for (size_t i = body; i < lexer->n; i++) {
        size_t behind = raw_tag(lexer, i, "endraw");

        if (behind) {
            lexer->at = behind;
            return push_data(lexer, body, data_end(lexer, body, i));
        }
    }
    return fail(lexer->render, span_of(tag, body), "`raw` is never closed by `{%% endraw %%}`");
}

static int lex_comment(struct lexer *lexer, size_t tag) {
    size_t i = tag + 2;

    if (i < lexer->n && lexer->text[i] == '-')
        i++;
    for (; i < lexer->n; i++) {
        size_t behind = closed(lexer, i, "#}");

        if (behind) {
            lexer->at = behind;
            return 0;
        }
    }
    return fail(lexer->render, span_of(tag, tag + 2), "the comment is never closed by `#}`");
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static size_t skip_digits(const struct lexer *lexer, size_t at) {
    while (at < lexer->n && is_digit(lexer->text[at]))
        at++;
    return at;
}

/* The digits after a dot are an index, so `xs.0.1` is not a fraction. */
static bool after_dot(const struct lexer *lexer) {
    return lexer->len && lexer->tokens[lexer->len - 1].kind == TOKEN_OPERATOR &&
           strcmp(lexer->tokens[lexer->len - 1].text, ".") == 0;
}

static int lex_number(struct lexer *lexer) {
    size_t at = lexer->at, end = skip_digits(lexer, at);
    struct node value = node_int(0, lexer->render->place);
    struct token *token;
    bool whole = true;

    if (!after_dot(lexer)) {
        size_t digits;

        if (end + 1 < lexer->n && lexer->text[end] == '.' && is_digit(lexer->text[end + 1])) {
            end = skip_digits(lexer, end + 1);
            whole = false;
        }
        digits = end + 1;
        if (end < lexer->n && (lexer->text[end] | ' ') == 'e') {
            if (digits < lexer->n && (lexer->text[digits] == '+' || lexer->text[digits] == '-'))
                digits++;
            if (digits < lexer->n && is_digit(lexer->text[digits])) {
                end = skip_digits(lexer, digits);
                whole = false;
            }
        }
    }
    lexer->at = end;
    if (end < lexer->n && is_name(lexer->text[end]))
        return fail(lexer->render, span_of(at, end + 1), "this is not a number");
    if (whole && text_to_whole(lexer->text + at, end - at, 10, &value.integer))
        return fail(lexer->render, span_of(at, end), "this whole number is beyond 64 bits");
    if (!whole) {
        value = node_float(0, lexer->render->place);
        if (text_to_double(lexer->text + at, end - at, &value.number))
            return fail(lexer->render, span_of(at, end), "this number is too long");
    }
    if (push(lexer, TOKEN_VALUE, at, &token))
        return -1;
    token->value = value;
    return 0;
}

static int lex_text(struct lexer *lexer) {
    size_t at = lexer->at, end = at + 1, len = 0, bad = 0, n = 0;
    char quote = lexer->text[at];
    struct token *token;
    char *raw, *text;

    while (end < lexer->n && lexer->text[end] != quote)
        end += lexer->text[end] == '\\' ? 2 : 1;
    if (end >= lexer->n)
        return fail(lexer->render, span_of(at, at + 1),
                    "the text that begins here is never closed");
    if (scratch_array(lexer->render, span_of(at, end), end - at, 1, &raw) ||
        scratch_array(lexer->render, span_of(at, end), end - at, 1, &text))
        return -1;
    for (size_t i = at + 1; i < end; i++)
        if (lexer->text[i] != '\r')
            raw[n++] = lexer->text[i];
        else if (i + 1 == end || lexer->text[i + 1] != '\n')
            raw[n++] = '\n';
    lexer->at = end + 1;
    if (text_unescape(raw, n, text, &len, &bad))
        return fail(lexer->render, span_of(at, end + 1),
                    "this text holds an escape that is no character: `%.*s`",
                    n - bad < 4 ? (int)(n - bad) : 4, raw + bad);
    if (push(lexer, TOKEN_VALUE, at, &token))
        return -1;
    token->value = node_text(text, len, lexer->render->place);
    return 0;
}

static int lex_name(struct lexer *lexer) {
    size_t at = lexer->at;
    struct token *token;
    char *name;

    while (lexer->at < lexer->n && is_name(lexer->text[lexer->at]))
        lexer->at++;
    if (scratch_array(lexer->render, span_of(at, lexer->at), lexer->at - at + 1, 1, &name) ||
        push(lexer, TOKEN_NAME, at, &token))
        return -1;
    memcpy(name, lexer->text + at, lexer->at - at);
    token->text = name;
    return 0;
}

/* Keeps the brackets that are open, since `}}` inside of them is no end of a tag. */
struct brackets {
    char expected[TEMPLATE_DEPTH_MAX];
    unsigned len;
};

static int balance(struct lexer *lexer, struct brackets *open, size_t at) {
    static const char openers[] = "([{", closers[] = ")]}";
    char c = lexer->text[at];
    const char *opener = strchr(openers, c);

    if (opener) {
        if (open->len == TEMPLATE_DEPTH_MAX)
            return fail(lexer->render, span_of(at, at + 1),
                        "more than %d brackets inside one another", TEMPLATE_DEPTH_MAX);
        open->expected[open->len++] = closers[opener - openers];
        return 0;
    }
    if (!strchr(closers, c))
        return 0;
    if (open->len == 0)
        return fail(lexer->render, span_of(at, at + 1), "`%c` closes nothing", c);
    if (open->expected[--open->len] != c)
        return fail(lexer->render, span_of(at, at + 1), "`%c` stands where `%c` is expected", c,
                    open->expected[open->len]);
    return 0;
}

static int lex_operator(struct lexer *lexer, struct brackets *open) {
    size_t at = lexer->at;
    struct token *token;

    for (size_t i = 0; i < ARRAY_LEN(operator_signs); i++) {
        if (!starts_with(lexer, at, operator_signs[i]))
            continue;
        lexer->at += strlen(operator_signs[i]);
        if ((lexer->at == at + 1 && balance(lexer, open, at)) ||
            push(lexer, TOKEN_OPERATOR, at, &token))
            return -1;
        token->text = operator_signs[i];
        return 0;
    }
    return fail(lexer->render, span_of(at, at + 1), "this sign has no meaning in a template");
}

static int lex_tag(struct lexer *lexer, const struct tag *tag) {
    struct brackets open = { .len = 0 };
    size_t begin = lexer->at;

    lexer->at += 2;
    if (lexer->at < lexer->n && lexer->text[lexer->at] == '-')
        lexer->at++;
    if (push(lexer, tag->begin, begin, NULL))
        return -1;
    while ((lexer->at = skip_blanks(lexer, lexer->at)) < lexer->n) {
        size_t at = lexer->at, behind = open.len ? 0 : closed(lexer, at, tag->closer);
        char c = lexer->text[at];
        int failed;

        if (behind) {
            lexer->at = at + (lexer->text[at] == '-' ? 3 : 2);
            if (push(lexer, tag->end, at, NULL))
                return -1;
            lexer->at = behind;
            return 0;
        }
        failed = is_digit(c)             ? lex_number(lexer)
                 : is_name(c)            ? lex_name(lexer)
                 : c == '"' || c == '\'' ? lex_text(lexer)
                                         : lex_operator(lexer, &open);
        if (failed)
            return -1;
    }
    return fail(lexer->render, span_of(begin, begin + 2), "`{%c` is never closed by `%s`",
                tag->sign, tag->closer);
}

/* The next `{{`, `{%` or `{#` from `at` on, or the end of the text. */
static size_t find_tag(const struct lexer *lexer, size_t at) {
    for (; at + 1 < lexer->n; at++)
        if (lexer->text[at] == '{' && strchr("{%#", lexer->text[at + 1]))
            return at;
    return lexer->n;
}

static size_t without_last_newline(const char *text, size_t n) {
    if (n && text[n - 1] == '\n')
        n--;
    else if (n && text[n - 1] == '\r')
        return n - 1;
    else
        return n;
    return n && text[n - 1] == '\r' ? n - 1 : n;
}

int lex(struct render *render, const char *text, size_t n, struct token **out) {
    struct lexer lexer = { .render = render, .text = text, .n = without_last_newline(text, n) };

    while (lexer.at < lexer.n) {
        size_t from = lexer.at, tag = find_tag(&lexer, from), raw;
        int failed;

        lexer.at = tag;
        if (push_data(&lexer, from, data_end(&lexer, from, tag)))
            return -1;
        if (tag == lexer.n)
            break;
        raw = raw_tag(&lexer, tag, "raw");
        failed = raw                    ? lex_raw(&lexer, tag, raw)
                 : text[tag + 1] == '#' ? lex_comment(&lexer, tag)
                                        : lex_tag(&lexer, &tags[text[tag + 1] == '%']);
        if (failed)
            return -1;
    }
    lexer.at = lexer.n;
    if (push(&lexer, TOKEN_END, lexer.n, NULL))
        return -1;
    *out = lexer.tokens;
    return 0;
}
