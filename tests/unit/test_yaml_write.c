/* SPDX-License-Identifier: Apache-2.0 */
/* What is written reads back as what it was. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/attr.h"
#include "codec/yaml.h"
#include "codec/yaml_write.h"

enum { ROUNDS = 2000, WRITTEN_MAX = 8 << 20, TEXT_MAX = 24, DEEPEST = 5 };

static uint64_t state;

static uint32_t pick(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* ---- reading back ---- */

static void check_round_trip(const struct node *node) {
    struct sources sources = { 0 };
    struct arena arena = ARENA_INIT;
    struct diags *diags = diags_new();
    AUTO(buf) text = BUF_INIT(WRITTEN_MAX);
    struct node again;
    struct error err;
    uint16_t source;

    assert_int_equal(yaml_write(node, &text, &err), 0);
    source = sources_add(&sources, "written", text.data, text.len);
    if (yaml_read(&sources, source, &arena, diags, &again) || diags->len > 0)
        fail_msg("cannot be read: %s\n%s", diags->list[0].message, text.data);
    if (!node_equal(node, &again))
        fail_msg("reads back as something else:\n%s", text.data);
    arena_release(&arena);
    diags_free(diags);
    sources_release(&sources);
}

static const struct place nowhere = { 0 };

static struct node text_node(const char *text) {
    return node_text(text, strlen(text), nowhere);
}

/* ---- texts ---- */

/* What some reader of YAML takes for something else than the text that it is. */
static const char *const hard_texts[] = {
    "",
    " ",
    "  x",
    "x ",
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "n",
    "true",
    "False",
    "null",
    "Null",
    "~",
    "1",
    "-1",
    "+1",
    "0x1",
    "0o7",
    "017",
    "0b1",
    "1e3",
    "1.5",
    ".5",
    "1.",
    "1e+3",
    "1_000",
    "1:30",
    "190:20:30.15",
    "2001-01-01",
    "2001-12-14t21:59:43.10-05:00",
    ".inf",
    "-.INF",
    ".nan",
    "inf",
    "NaN",
    "-",
    "- x",
    "--",
    "---",
    "...",
    "?",
    "? x",
    ":",
    "a:",
    "a: b",
    "a:b",
    ": x",
    "#",
    "# x",
    "x # y",
    "x#y",
    "[",
    "]",
    "{",
    "}",
    "[]",
    "{}",
    ",",
    "a, b",
    "&a",
    "*a",
    "!a",
    "!!str x",
    "|",
    ">",
    "|\n  x",
    "'",
    "\"",
    "''",
    "it's",
    "\"x\"",
    "\\",
    "\\n",
    "a\\b",
    "%",
    "@",
    "`",
    "<<",
    "=",
    "a\nb",
    "a\n",
    "\na",
    "\n",
    "a\n\nb\n",
    "a\r\nb",
    "\r",
    "\t",
    "a\tb",
    "\ta",
    "\x01",
    "\x1b[0m",
    "\x7f",
    "\xc2\x85",
    "\xc3\xa9",
    "\xe2\x80\xa8",
    "\xe2\x80\xa9",
    "\xef\xbb\xbfx",
    "\xf0\x9f\x90\x8d",
    "\xef\xbf\xbd",
    "$(X)",
    "{{ a }}",
    "python3 train.py --lr=0.1",
    "{\"a\": [1, \"b\"]}",
    "/bin/sh",
    "a/b:c",
    "nvidia.com/gpu",
    "-c",
    "1Gi",
    "500m",
    "metadata.labels['x']",
};

static void every_text_reads_back_as_that_text(void **unused) {
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(hard_texts); i++) {
        struct node item = text_node(hard_texts[i]);
        struct node list = node_list(&item, 1, nowhere);
        struct member member = { .key = hard_texts[i], .value = item };
        struct node map = node_map(&member, 1, nowhere);

        check_round_trip(&item);
        check_round_trip(&list);
        /* A key without quotes that means nothing is no text to the reader. */
        check_round_trip(&map);
    }
}

/* Kubernetes refuses a number where it wants text: what could be read as one has quotes. */
static void nothing_but_words_stands_without_quotes(void **unused) {
    static const struct {
        const char *text, *written;
    } rows[] = {
        { "worker", "worker\n" },
        { "/bin/sh", "/bin/sh\n" },
        { "kubeflow.org/v1", "kubeflow.org/v1\n" },
        { "train:2", "train:2\n" },
        { "0f8b", "\"0f8b\"\n" },
        { "1e3", "\"1e3\"\n" },
        { "yes", "\"yes\"\n" },
        { "Y", "\"Y\"\n" },
        { "NULL", "\"NULL\"\n" },
        { "2001-01-01", "\"2001-01-01\"\n" },
        { "a b", "\"a b\"\n" },
        { "a:", "\"a:\"\n" },
        { "{\"a\": 1}", "'{\"a\": 1}'\n" },
        { "a\nb", "\"a\\nb\"\n" },
        { "\xc3\xa9", "\"\\u00E9\"\n" },
        { "\xff", "\"\\uFFFD\"\n" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf) text = BUF_INIT(WRITTEN_MAX);
        struct node node = text_node(rows[i].text);
        struct error err;

        assert_int_equal(yaml_write(&node, &text, &err), 0);
        assert_string_equal(text.data, rows[i].written);
    }
}

/* ---- numbers ---- */

static void numbers_keep_their_kind_and_value(void **unused) {
    static const double floats[] = { 0.0,      -0.0,      1.0,         0.1,    1e16,
                                     1e22,     1e-7,      5e-324,      1e300,  DBL_MAX,
                                     INFINITY, -INFINITY, 123456789.0, 1.5e-10 };
    static const int64_t ints[] = { 0, 1, -1, 8, 10, 1000000, INT64_MAX, INT64_MIN };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(floats); i++) {
        struct node node = node_float(floats[i], nowhere);

        check_round_trip(&node);
    }
    for (size_t i = 0; i < ARRAY_LEN(ints); i++) {
        struct node node = node_int(ints[i], nowhere);

        check_round_trip(&node);
    }
}

/* ---- trees ---- */

static const char *random_text(struct arena *arena) {
    static const char *const pieces[] = { "a",
                                          "Z",
                                          "0",
                                          "9",
                                          " ",
                                          "\n",
                                          "\t",
                                          "'",
                                          "\"",
                                          "\\",
                                          ":",
                                          "#",
                                          "-",
                                          "?",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          "&",
                                          "*",
                                          "!",
                                          "|",
                                          ">",
                                          "%",
                                          "@",
                                          "$",
                                          "(",
                                          ")",
                                          ".",
                                          "\r",
                                          "e+",
                                          "yes",
                                          "0x",
                                          "\xc3\xa9",
                                          "\xe2\x80\xa8",
                                          "\xf0\x9f\x90\x8d",
                                          "\x1f" };
    char text[TEXT_MAX * 4 + 1] = "";

    if (pick(3) == 0)
        return hard_texts[pick(ARRAY_LEN(hard_texts))];
    for (uint32_t n = pick(TEXT_MAX), i = 0; i < n; i++)
        strcat(text, pieces[pick(ARRAY_LEN(pieces))]);
    return arena_text(arena, text, strlen(text));
}

static struct node random_node(struct arena *arena, uint32_t depth) {
    uint32_t n = pick(5);

    switch (pick(depth > 0 ? 9 : 6)) {
    case 0: return node_null(nowhere);
    case 1: return node_bool(pick(2), nowhere);
    case 2: return node_int((int64_t)pick(2000) - 1000, nowhere);
    case 3: return node_float((pick(2000) - 1000.0) / 7, nowhere);
    case 6: {
        struct node *items = ARENA_ARRAY(arena, struct node, n);

        for (uint32_t i = 0; i < n; i++)
            items[i] = random_node(arena, depth - 1);
        return node_list(items, n, nowhere);
    }
    case 7:
    case 8: {
        struct member *members = ARENA_ARRAY(arena, struct member, n);

        for (uint32_t i = 0; i < n; i++)
            members[i] = (struct member){ .key = arena_printf(arena, "%s%u", random_text(arena), i),
                                          .value = random_node(arena, depth - 1) };
        return node_map(members, n, nowhere);
    }
    default: return text_node(random_text(arena));
    }
}

static void every_tree_reads_back_as_that_tree(void **unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        struct arena arena = ARENA_INIT;
        struct node node = random_node(&arena, DEEPEST);

        check_round_trip(&node);
        arena_release(&arena);
    }
}

static void a_key_may_be_longer_than_readers_take_on_one_line(void **unused) {
    static char key[3000];
    struct node inner = text_node("x"), list = node_list(&inner, 1, nowhere);
    struct member members[] = { { .key = key, .value = list }, { .key = "b", .value = inner } };
    struct node map = node_map(members, 2, nowhere);

    (void)unused;
    memset(key, '"', sizeof key - 1);
    check_round_trip(&map);
}

static void what_is_too_large_for_the_buffer_is_an_error(void **unused) {
    AUTO(buf) text = BUF_INIT(3);
    struct node node = text_node("a longer text");
    struct error err;

    (void)unused;
    assert_int_equal(yaml_write(&node, &text, &err), -1);
    assert_int_equal(err.code, ERROR_EXHAUSTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_reads_back_as_that_text),
        cmocka_unit_test(nothing_but_words_stands_without_quotes),
        cmocka_unit_test(numbers_keep_their_kind_and_value),
        cmocka_unit_test(every_tree_reads_back_as_that_tree),
        cmocka_unit_test(a_key_may_be_longer_than_readers_take_on_one_line),
        cmocka_unit_test(what_is_too_large_for_the_buffer_is_an_error),
    };
    const char *given = getenv("MYELIN_SEED");

    state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# MYELIN_SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
