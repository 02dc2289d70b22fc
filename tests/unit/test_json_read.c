/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "codec/json_read.h"
#include "test_json_read_rows.inc"

enum { TREES = 3000, TREE_DEPTH = 6, TEXT_MAX = 1 << 20 };

/* ---- random trees ---- */

static uint64_t seed;

static uint32_t next_random(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static const char *random_text(struct arena *arena) {
    static const char *const pieces[] = { "a", "\"", "\\", "/", "\n", "\x01", "\x1f", "\x7f",   "é",
                                          "€", "😀",  " ",  "{", "]",  ":",    "null", "\\u0041" };
    size_t n = next_random() % 6;
    char text[64] = "";

    for (size_t i = 0; i < n; i++)
        strcat(text, pieces[next_random() % ARRAY_LEN(pieces)]);
    return arena_text(arena, text, strlen(text));
}

static double random_number(void) {
    static const double numbers[] = { 0.0, -0.5, 0.1, 1e300, -1e-300, 5e-324, 1e16, 3.0, 1.5e9 };

    return numbers[next_random() % ARRAY_LEN(numbers)] * (1 + next_random() % 7);
}

static struct node random_node(struct arena *arena, int depth) {
    const struct place none = { 0 };
    uint32_t n = next_random() % 4;
    const char *text;

    switch (next_random() % (depth == 0 ? 5 : 7)) {
    case 0: return node_null(none);
    case 1: return node_bool(n % 2, none);
    case 2:
        return node_int((int64_t)((uint64_t)next_random() << 33 | next_random()) >> n * 16, none);
    case 3: return node_float(random_number(), none);
    case 4: text = random_text(arena); return node_text(text, strlen(text), none);
    case 5: {
        struct node *items = ARENA_ARRAY(arena, struct node, n);

        for (uint32_t i = 0; i < n; i++)
            items[i] = random_node(arena, depth - 1);
        return node_list(items, n, none);
    }
    default: {
        struct member *members = ARENA_ARRAY(arena, struct member, n);

        for (uint32_t i = 0; i < n; i++) {
            members[i].key = arena_printf(arena, "%u%s", i, random_text(arena));
            members[i].value = random_node(arena, depth - 1);
        }
        return node_map(members, n, none);
    }
    }
}

static void what_the_writer_writes_reads_back_as_the_same_tree(void **state) {
    (void)state;
    for (seed = 0; seed < TREES; seed++) {
        const uint64_t tree = seed;
        AUTO(arena) arena = ARENA_INIT;
        struct node written = random_node(&arena, TREE_DEPTH), read;

        for (enum json_style style = JSON_COMPACT; style <= JSON_PRETTY; style++) {
            AUTO(buf) text = BUF_INIT(TEXT_MAX);
            struct json json;
            struct error err;

            json_init(&json, style, json_to_buf, &text);
            json_node(&json, &written);
            assert_int_equal(json_finish(&json, &err), 0);
            if (json_read(text.data, text.len, &arena, &read, &err))
                fail_msg("tree %d: %s in %s", (int)tree, err.message, text.data);
            if (!node_equal(&written, &read))
                fail_msg("tree %d reads back differently: %s", (int)tree, text.data);
        }
        seed = tree;
    }
}

/* ---- the same as Python ---- */

static void python_and_we_take_and_refuse_the_same_texts(void **state) {
    size_t taken = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(arena) arena = ARENA_INIT;
        struct node ours, pythons;
        struct error err;
        int status = json_read(rows[i].text, strlen(rows[i].text), &arena, &ours, &err);

        if ((status == 0) != (rows[i].value != NULL))
            fail_msg("'%s' is %s", rows[i].text, status ? err.message : "taken");
        if (status)
            continue;
        taken++;
        assert_int_equal(json_read(rows[i].value, strlen(rows[i].value), &arena, &pythons, &err),
                         0);
        if (!node_equal(&ours, &pythons))
            fail_msg("'%s' is not %s", rows[i].text, rows[i].value);
    }
    assert_true(taken > 50 && ARRAY_LEN(rows) - taken > 50);
}

/* ---- where we are stricter ---- */

static void assert_refused(const char *text, size_t n, const char *why) {
    AUTO(arena) arena = ARENA_INIT;
    struct node node = { .kind = NODE_KIND_COUNT };
    struct error err;

    if (json_read(text, n, &arena, &node, &err) == 0)
        fail_msg("'%s' is taken", text);
    assert_int_equal(err.code, ERROR_INVALID);
    if (!strstr(err.message, why))
        fail_msg("'%s' does not say '%s'", err.message, why);
    assert_int_equal(node.kind, NODE_KIND_COUNT);
}

static void texts_that_c_or_utf8_cannot_hold_are_refused(void **state) {
    static const char *const halves[] = { "\"\\ud800\"",        "\"\\udc00\"", "\"\\ud800\\u0041\"",
                                          "\"\\ud800\\ud800\"", "\"\\ud83d",   "\"\\ud83d\\ude\"" };

    (void)state;
    assert_refused("\"\\u0000\"", 8, "NUL");
    assert_refused("\"a\0b\"", 5, "control character");
    assert_refused("\"\xff\"", 3, "UTF-8");
    assert_refused("\"\xed\xa0\x80\"", 5, "UTF-8");
    assert_refused("\"\xc3\"", 3, "UTF-8");
    for (size_t i = 0; i < ARRAY_LEN(halves); i++)
        assert_refused(halves[i], strlen(halves[i]), "not JSON at byte");
}

static void depth_is_bounded_and_the_bound_is_usable(void **state) {
    char text[2 * JSON_READ_DEPTH_MAX + 3];
    AUTO(arena) arena = ARENA_INIT;
    struct node node;
    struct error err;

    (void)state;
    memset(text, '[', JSON_READ_DEPTH_MAX);
    memset(text + JSON_READ_DEPTH_MAX, ']', JSON_READ_DEPTH_MAX);
    assert_int_equal(json_read(text, 2 * JSON_READ_DEPTH_MAX, &arena, &node, &err), 0);
    memset(text, '[', sizeof text);
    assert_refused(text, JSON_READ_DEPTH_MAX + 1, "nested too deeply");
}

static void no_prefix_of_a_list_is_a_value(void **state) {
    static const char text[] = "[{\"a\": [1.5e3, \"x\\u00e9\\n\", null]}, true, -7]";

    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++) {
        /* exactly as long, so that a sanitizer sees a read beyond it */
        char *copy = malloc(n ? n : 1);

        assert_non_null(copy);
        memcpy(copy, text, n);
        assert_refused(copy, n, "not JSON at byte");
        free(copy);
    }
}

static void an_error_says_at_which_byte(void **state) {
    (void)state;
    assert_refused("[1, 2, x]", 9, "at byte 7:");
    assert_refused("{\"a\" 1}", 7, "at byte 5: a colon is missing");
    assert_refused("[1] 2", 5, "at byte 4: something follows");
}

static void a_member_of_another_kind_is_as_one_that_is_missing(void **state) {
    static const char text[] =
        "{\"text\":\"a\",\"empty\":\"\",\"int\":-3,\"count\":7,\"float\":1.5,"
        "\"true\":true,\"false\":false,\"null\":null,\"list\":[],\"map\":{}}";
    static const char *const keys[] = { "text",  "empty", "int",  "count", "float",  "true",
                                        "false", "null",  "list", "map",   "missing" };
    AUTO(arena) arena = ARENA_INIT;
    struct node map;
    struct error err;

    (void)state;
    assert_int_equal(json_read(text, strlen(text), &arena, &map, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *key = keys[i];
        const struct node *node = node_get(&map, key);
        const bool is_text = node && node->kind == NODE_TEXT,
                   is_int = node && node->kind == NODE_INT;
        const char *kept = node_keep_text(&map, key, &arena);

        assert_string_equal(node_get_text(&map, key, "?"), is_text ? node->text : "?");
        assert_int_equal(kept != NULL, is_text);
        assert_true(!kept || (kept != node->text && strcmp(kept, node->text) == 0));
        assert_int_equal(node_get_int(&map, key, INT64_MIN, -9), is_int ? node->integer : -9);
        assert_int_equal(node_get_int(&map, key, 7, -9), strcmp(key, "count") == 0 ? 7 : -9);
        assert_int_equal(node_get_int(&map, key, 8, -9), -9);
        assert_int_equal(node_get_count(&map, key), strcmp(key, "count") == 0 ? 7 : 0);
        assert_int_equal(node_get_truth(&map, key), strcmp(key, "true") == 0);
    }
    assert_null(node_get_text(NULL, "text", NULL));
    assert_int_equal(node_get_int(node_get(&map, "list"), "int", 0, -1), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_writer_writes_reads_back_as_the_same_tree),
        cmocka_unit_test(python_and_we_take_and_refuse_the_same_texts),
        cmocka_unit_test(texts_that_c_or_utf8_cannot_hold_are_refused),
        cmocka_unit_test(depth_is_bounded_and_the_bound_is_usable),
        cmocka_unit_test(no_prefix_of_a_list_is_a_value),
        cmocka_unit_test(an_error_says_at_which_byte),
        cmocka_unit_test(a_member_of_another_kind_is_as_one_that_is_missing),
    };

    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
