/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders any text over a few params, and reads any text as a literal. Beyond "no crash" it holds
 * the laws of template.h: a failure tells exactly one error inside the text's place, a result is a
 * rendered text within its ceiling, and a printed literal reads back as the same text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, OUTPUT_MAX = 1 << 16, STEPS_MAX = 20000 };

static const char params[] =
    "{'lr': 0.01, 'n': 3, 'name': 'resnet', 'flag': True, 'nothing': None, 'xs': [3, 1, 2],"
    " 'words': ['b', 'A', 'c'], 'opt': {'name': 'adam', 'beta': [0.9, 0.999]},"
    " 'rows': [{'k': 'x', 'v': 2}, {'k': 'w', 'v': 1}], 'uni': 'h\xc3\xa9llo', 'big': "
    "9007199254740993}";

static void require(bool law) {
    if (!law)
        abort();
}

static void check_render(struct arena *arena, const struct node *names, const char *text,
                         size_t n) {
    const struct template_context context = {
        .names = names, .arena = arena, .output_max = OUTPUT_MAX, .steps_max = STEPS_MAX
    };
    struct node input = node_text(text, n, (struct place){ 7, (uint32_t)n, 0 }), out;
    AUTO_PTR(diags) diags = diags_new();

    if (template_render(&context, &input, &out, diags) == 0) {
        require(out.kind == NODE_TEXT && out.flags == NODE_RENDERED && diags->errors == 0);
        require(out.count <= OUTPUT_MAX && strlen(out.text) == out.count);
        require(out.offset == 7 && out.length == n);
        return;
    }
    require(diags->errors == 1 && diags->list[0].message[0] != '\0');
    require(diags->list[0].place.offset >= 7);
    require(diags->list[0].place.offset + diags->list[0].place.length <= 7 + n);
}

static void check_literal(struct arena *arena, const char *text, size_t n) {
    AUTO(buf) once = BUF_INIT(1 << 20);
    AUTO(buf) again = BUF_INIT(1 << 20);
    struct node value, reread;
    struct error err;

    if (literal_read(arena, text, n, (struct place){ 0 }, &value) ||
        value_print_quoted(&value, &once, &err))
        return;
    if (strstr(once.data, "inf") || strstr(once.data, "nan"))
        return; /* Python has no literal for them either */
    require(literal_read(arena, once.data, once.len, (struct place){ 0 }, &reread) == 0);
    require(value_print_quoted(&reread, &again, &err) == 0);
    require(strcmp(once.data, again.data) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_INIT;
    struct node names;
    char *text;

    if (size > INPUT_MAX || memchr(data, '\0', size))
        return 0; /* a node's text holds no NUL */
    require(literal_read(&arena, params, sizeof params - 1, (struct place){ 0 }, &names) == 0);
    text = arena_text(&arena, (const char *)data, size);
    check_render(&arena, &names, text, size);
    check_literal(&arena, text, size);
    arena_release(&arena);
    return 0;
}
