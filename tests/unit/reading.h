/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of reading share: a text compiled or read, and what was said of it. A case lives
 * on the stack of its test:
 *
 *   AUTO(reading) r = reading_of("version: 1\n");
 *   assert_diag(&r, 0, 1, 1, "does not say its `kind`", "kind: experiment");
 */
#ifndef TESTS_READING_H
#define TESTS_READING_H

#include <stdlib.h>
#include <string.h>

#include "codec/diag.h"
#include "codec/yaml.h"
#include "spec/spec.h"

struct reading {
    struct sources sources;
    struct arena arena;
    struct diags *diags;
    struct node root; /* of reading_tree */
    int status;
    struct spec *spec; /* of reading_of and its like */
};

static inline void reading_release(struct reading *reading) {
    spec_free(reading->spec);
    diags_free(reading->diags);
    arena_release(&reading->arena);
    sources_release(&reading->sources);
}

/* A text as a tree. */
static inline struct reading reading_tree_n(const char *text, size_t n) {
    struct reading reading = { .diags = diags_new() };

    sources_add(&reading.sources, "f.yml", text, n);
    reading.status = yaml_read(&reading.sources, 0, &reading.arena, reading.diags, &reading.root);
    return reading;
}
static inline struct reading reading_tree(const char *text) {
    return reading_tree_n(text, strlen(text));
}

/* Files, and params behind them, both ended by NULL, as a spec. */
static inline struct reading reading_all(const char *const *files, const char *const *params) {
    struct reading reading = { .diags = diags_new() };
    uint16_t file_numbers[8], param_numbers[8];
    struct spec_input input = { .files = file_numbers, .params = param_numbers };

    for (; *files; files++)
        file_numbers[input.n_files++] =
            sources_add(&reading.sources, "f.yml", *files, strlen(*files));
    for (; *params; params++)
        param_numbers[input.n_params++] =
            sources_add(&reading.sources, "-P", *params, strlen(*params));
    input.sources = &reading.sources;
    reading.spec = spec_compile(&input, reading.diags);
    return reading;
}
static inline struct reading reading_of(const char *text) {
    return reading_all((const char *const[]){ text, NULL }, (const char *const[]){ NULL });
}

/* All that was said, for the message of a failing test. */
static inline char *reading_said(const struct reading *reading) {
    static char text[4096];
    AUTO(buf) out = BUF_INIT(1 << 20);
    struct error err;

    if (diags_format(reading->diags, &reading->sources, DIAG_PLAIN, &out, &err))
        return err.message[0] ? strcpy(text, err.message) : text;
    strncpy(text, out.data, sizeof text - 1);
    return text;
}

/* Whether one diagnostic is not as expected: its place, and parts of its message and of its help
 * (NULL: there is none). Says how it differs, so that a table can be gone through to its end. */
static inline bool reading_differs(const struct reading *reading, size_t number, uint32_t line,
                                   uint32_t column, const char *message, const char *help) {
    const struct diag *diag = &reading->diags->list[number];
    struct position at = { 0 };

    if (number < reading->diags->len) {
        at = sources_position(&reading->sources, diag->place);
        if (at.line == line && at.column == column && strstr(diag->message, message) &&
            !help == !diag->help && (!help || strstr(diag->help, help)))
            return false;
    }
    print_error("expected %u:%u `%s` (help: %s), and this was said:\n%s\n", line, column, message,
                help ? help : "none", reading_said(reading));
    return true;
}

static inline bool reading_note_differs(const struct reading *reading, size_t number, uint32_t line,
                                        uint32_t column, const char *note) {
    const struct diag *diag = &reading->diags->list[number];
    struct position at = { 0 };

    if (number < reading->diags->len && diag->note) {
        at = sources_position(&reading->sources, diag->note_place);
        if (at.line == line && at.column == column && strstr(diag->note, note))
            return false;
    }
    print_error("expected the note %u:%u `%s`, and this was said:\n%s\n", line, column, note,
                reading_said(reading));
    return true;
}

#define assert_diag(r, number, line, column, message, help)                                        \
    assert_false(reading_differs(r, number, line, column, message, help))
#define assert_note(r, number, line, column, note)                                                 \
    assert_false(reading_note_differs(r, number, line, column, note))

#endif
