/* SPDX-License-Identifier: Apache-2.0 */
/* Rendering from end to end, its budgets and its failures. */
#include "template/render.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/nearest.h"
#include "template/syntax.h"

enum { PIECE_SHOWN = 60 };

bool template_is_plain(const char *text, size_t n) {
    const char *end = text + n;

    for (const char *p = text; (p = memchr(p, '{', (size_t)(end - p))); p++) {
        if (end - p < 2)
            return true;
        if (p[1] == '{' || p[1] == '%' || p[1] == '#')
            return false;
    }
    return true;
}

/* Whether the text stands in its source letter by letter, and how far after the node's offset. A
 * text that was rendered before stands nowhere; escapes and folded lines change the length. */
static bool stands_in_source(const struct node *text, uint32_t *shift) {
    if (text->flags & NODE_RENDERED)
        return false;
    *shift = text->flags & NODE_QUOTED ? 1 : 0;
    return text->length == text->count + 2 * *shift;
}

/* The piece as a message shows it: one line, not too long, cut between characters. */
static void quote_piece(const struct render *render, struct span span, char out[PIECE_SHOWN + 8]) {
    const char *from = render->text->text + span.at;
    size_t n = 0, left = span.length;

    while (left > 0) {
        size_t len = character_length(from, left);

        if (n + len > PIECE_SHOWN) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        memcpy(out + n, from, len);
        if (len == 1 && (unsigned char)out[n] < ' ')
            out[n] = ' ';
        n += len;
        from += len;
        left -= len;
    }
    out[n] = '\0';
}

int fail(struct render *render, struct span span, const char *fmt, ...) {
    const struct node *text = render->text;
    char message[400], piece[PIECE_SHOWN + 8];
    struct diag *(*add)(struct diags *, struct place, const char *, ...) =
        render->warns ? diag_warning : diag_error;
    struct place place = node_place(text);
    uint32_t shift;
    va_list args;

    if (render->failure)
        return -1;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);

    if (stands_in_source(text, &shift)) {
        place.offset += shift + span.at;
        place.length = span.length;
        render->failure = add(render->diags, place, "%s", message);
        return -1;
    }
    quote_piece(render, span, piece);
    render->failure = span.length
                          ? add(render->diags, place, "%s, at `%s` in this text", message, piece)
                          : add(render->diags, place, "%s", message);
    return -1;
}

int fail_help(struct render *render, const char *fmt, ...) {
    char message[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    diag_help(render->failure, "%s", message);
    return -1;
}

static int help_names(struct render *render, const char *typed, const char *const *names, size_t n,
                      const char *lead) {
    const char *nearest = nearest_name(typed, names, n);
    char list[300] = "";
    size_t used = 0;

    if (nearest)
        return fail_help(render, "did you mean `%s`?", nearest);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]);

        if (used + len + 8 > sizeof list) {
            strcpy(list + used, ", ...");
            break;
        }
        used += (size_t)sprintf(list + used, "%s%s", i ? ", " : "", names[i]);
    }
    return n ? fail_help(render, "%s: %s", lead, list) : -1;
}

int fail_no_routine(struct render *render, struct span span, const struct routines *routines,
                    const char *name) {
    const char *names[64];
    size_t n = routines->len < ARRAY_LEN(names) ? routines->len : ARRAY_LEN(names);

    for (size_t i = 0; i < n; i++)
        names[i] = routines->rows[i].name;
    fail(render, span, "there is no %s `%s`", routines->noun, name);
    return help_names(render, name, names, n, "there are");
}

static int fail_name(struct render *render, const struct unknown *unknown) {
    const struct node *names = render->context->names;
    size_t n = 0, most = names ? names->count : 0;
    const char **list;

    for (const struct scope *scope = render->scope; scope; scope = scope->outer)
        for (const struct binding *b = scope->bindings; b; b = b->next)
            most++;
    list = ARENA_ARRAY(&render->scratch, const char *, most);
    for (const struct scope *scope = render->scope; scope; scope = scope->outer)
        for (const struct binding *b = scope->bindings; b; b = b->next)
            list[n++] = b->name;
    for (uint32_t i = 0; names && i < names->count; i++)
        list[n++] = names->members[i].key;

    fail(render, unknown->span, "`%s` is not defined", unknown->name);
    if (n == 0)
        return fail_help(render,
                         "no params are given; add `%s` to `params`, or write `%s | default(...)`",
                         unknown->name, unknown->name);
    return help_names(render, unknown->name, list, n, "defined are");
}

static int fail_member(struct render *render, const struct unknown *unknown) {
    const struct node *holder = &unknown->holder;
    const char **list;

    if (holder->kind != NODE_MAP) {
        fail(render, unknown->span, "%s has no member `%s`", node_kind_name(holder), unknown->name);
        if (routine_find(&methods, unknown->name))
            return fail_help(render, "a method is called: `.%s()`", unknown->name);
        return -1;
    }
    list = ARENA_ARRAY(&render->scratch, const char *, holder->count);
    for (uint32_t i = 0; i < holder->count; i++)
        list[i] = holder->members[i].key;
    fail(render, unknown->span, "there is no `%s` in this mapping", unknown->name);
    return help_names(render, unknown->name, list, holder->count, "it has");
}

int fail_unknown(struct render *render, const struct unknown *unknown) {
    switch (unknown->reason) {
    case UNKNOWN_NAME: return fail_name(render, unknown);
    case UNKNOWN_MEMBER: return fail_member(render, unknown);
    case UNKNOWN_ITEM:
        if (unknown->holder.kind < NODE_TEXT)
            return fail(render, unknown->span, "%s has no items", node_kind_name(&unknown->holder));
        return fail(render, unknown->span, "there is no item [%s] in %s of %u", unknown->name,
                    node_kind_name(&unknown->holder), unknown->holder.count);
    case UNKNOWN_EMPTY:
        return fail(render, unknown->span, "`%s` of nothing is not defined", unknown->name);
    case UNKNOWN_CHOICE:
        fail(render, unknown->span, "the condition is false and there is no `else`");
        return fail_help(render, "give the other value: `... if ... else ...`");
    }
    return -1;
}

void warn_unknown(struct render *render, const struct unknown *unknown) {
    render->warns = true;
    if (fail_unknown(render, unknown) && render->failure)
        diag_append(render->failure, ": it becomes an empty text");
    render->warns = false;
    render->failure = NULL;
}

int spend(struct render *render, struct span span, size_t steps) {
    if (steps <= render->steps_left) {
        render->steps_left -= steps;
        return 0;
    }
    render->steps_left = 0;
    return fail(render, span, "the template takes more steps than the limit allows");
}

int spend_text(struct render *render, struct span span, size_t bytes) {
    return spend(render, span, bytes / TEXT_PER_STEP);
}

int scratch_array(struct render *render, struct span span, size_t n, size_t size, void *out) {
    size_t used = render->scratch.allocated;
    void *memory;

    if (used >= SCRATCH_MAX || n > (SCRATCH_MAX - used) / size)
        return fail(render, span, "the template needs more memory than the %d MiB allowed",
                    SCRATCH_MAX >> 20);
    memory = arena_alloc(&render->scratch, n * size);
    memcpy(out, &memory, sizeof memory);
    return 0;
}

static int render_whole(struct render *render, struct buf *out) {
    struct parser parser = { .render = render };
    struct token *tokens;
    struct stmt *body;

    if (lex(render, render->text->text, render->text->count, &tokens))
        return -1;
    parser.token = tokens;
    if (parse_template(&parser, &body))
        return -1;
    return execute(render, body, out);
}

int template_render(const struct template_context *context, const struct node *text,
                    struct node *out, struct diags *diags) {
    struct scope outermost = { 0 };
    struct render render = {
        .context = context,
        .text = text,
        .place = node_place(text),
        .diags = diags,
        .scope = &outermost,
        .steps_left = context->steps_max ? context->steps_max : TEMPLATE_STEPS_MAX,
        .output_max = context->output_max ? context->output_max : TEMPLATE_OUTPUT_MAX,
    };
    AUTO(buf) rendered = BUF_INIT(render.output_max);
    int failed = render_whole(&render, &rendered);

    arena_release(&render.scratch);
    if (failed)
        return -1;
    *out = node_text(arena_text(context->arena, rendered.data, rendered.len), rendered.len,
                     node_place(text));
    out->flags = NODE_RENDERED;
    return 0;
}
