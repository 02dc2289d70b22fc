/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Templates: `{{ expressions }}`, `{% statements %}` and `{# comments #}` in the texts of a
 * document, rendered over a map of names. The language is the part of Jinja2 2.10 that
 * polyaxonfiles use; docs/templates.md is its reference and names every difference.
 *
 *   struct template_context context = { .names = &params, .arena = &document_arena };
 *   if (!template_is_plain(text->text, text->count) &&
 *       template_render(&context, text, &rendered, diags)) ...
 *
 * Laws:
 *   1. Pure: a result depends on the text and the names alone. No file, clock, locale or
 *      environment is read.
 *   2. Bounded: nesting, steps, memory and output have ceilings; what passes one is an error
 *      in bounded time. No text crashes or hangs the renderer.
 *   3. A name that is not there prints as an empty text, as in Jinja2, with a warning that has the
 *      nearest name as help; everything else that is done with one is an error, but `is defined`,
 *      `is undefined` and `default`.
 *   4. Values print as Python prints them: True, None, [1, 2], 0.01, {'a': 'b'}.
 */
#ifndef TEMPLATE_TEMPLATE_H
#define TEMPLATE_TEMPLATE_H

#include "base/buf.h"
#include "codec/diag.h"
#include "codec/node.h"

enum {
    TEMPLATE_OUTPUT_MAX = 1 << 20, /* bytes of a rendered text, and of every text on the way */
    TEMPLATE_STEPS_MAX = 1000000,  /* values looked at, items gone through, 256 bytes of text */
    TEMPLATE_DEPTH_MAX = 64,       /* brackets and statements inside one another */
    VALUE_DEPTH_MAX = 200,         /* lists and maps inside one another */
};

/* A list that was a tuple. It prints in parentheses, and is like any other list otherwise. */
enum { VALUE_TUPLE = 1 << 7 };

struct template_context {
    const struct node *names; /* a map, or NULL: nothing is defined */
    struct arena *arena;      /* where results live; what rendering needs meanwhile does not */
    size_t output_max;        /* 0: TEMPLATE_OUTPUT_MAX */
    size_t steps_max;         /* 0: TEMPLATE_STEPS_MAX; for each text anew */
};

/* Holds none of {{ {% {#: rendering would give the same text. */
bool template_is_plain(const char *text, size_t n);

/* Renders one node of kind text. On success *out is a text with NODE_RENDERED and the place of
 * `text`. On failure one error is added to `diags`: at the exact piece of the source where the
 * text stands there letter by letter, else at the whole text with the piece in the message. */
MUST_CHECK int template_render(const struct template_context *context, const struct node *text,
                               struct node *out, struct diags *diags);

/* Calls `mention` for each name in the tags of a text, also in branches that are never taken: not
 * for members, which follow a dot, but for filters and the names that a loop sets. A text that is
 * no template, or a broken one, mentions nothing. */
void template_mentions(const char *text, size_t n, void (*mention)(void *context, const char *name),
                       void *context);

/* What Python's ast.literal_eval makes of a text: whole numbers, floats, 'strings',
 * True, False, None, lists, tuples (lists with VALUE_TUPLE) and dicts. Returns -1 when the text
 * is no literal, or one that a node cannot hold: a set, bytes, a complex number, a key that is
 * not text, a whole number beyond 64 bits. */
MUST_CHECK int literal_read(struct arena *arena, const char *text, size_t n, struct place place,
                            struct node *out);

/* Appends str() of a value: a text as it is, all else as repr(). Fails when `out` is full or the
 * value is nested deeper than VALUE_DEPTH_MAX. */
MUST_CHECK int value_print(const struct node *value, struct buf *out, struct error *err);

/* Appends repr(): a text in quotes with escapes. */
MUST_CHECK int value_print_quoted(const struct node *value, struct buf *out, struct error *err);

#endif
