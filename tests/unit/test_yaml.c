/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "reading.h"

/* The tree as one line of JSON. */
static const char *shown(const struct node *node) {
    static char text[4096];
    AUTO(buf) out = BUF_INIT(4000);
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    json_node(&json, node);
    if (json_finish(&json, &err))
        fail_msg("%s", err.message);
    return strcpy(text, out.data);
}

static void texts_become_the_trees_that_they_spell(void **state) {
    static const struct {
        const char *text, *tree;
    } rows[] = {
        { "", "null" },
        { "\n\n", "null" },
        { "# only a comment\n", "null" },
        { "---\n", "null" },
        { "---\n...\n", "null" },
        { "a", "\"a\"" },
        { "--- a\n...\n", "\"a\"" },
        { "%YAML 1.1\n---\na: 1\n", "{\"a\": 1}" },
        { "a: 1\nb: [x, 2.5, yes, ~]\n", "{\"a\": 1, \"b\": [\"x\", 2.5, true, null]}" },
        { "a: 1\n...\n# after\n", "{\"a\": 1}" },
        { "- a\n-\n- - b\n", "[\"a\", null, [\"b\"]]" },
        { "a:\n- b\n", "{\"a\": [\"b\"]}" },
        { "a: '1'\nb: \"1\"\nc: 1\n", "{\"a\": \"1\", \"b\": \"1\", \"c\": 1}" },
        { "a: |\n  1\n  2\nb: >\n  x\n  y\nc: |-\n  z\n",
          "{\"a\": \"1\\n2\\n\", \"b\": \"x y\\n\", \"c\": \"z\"}" },
        { "a: \"\\u00e9\\n\\\"\"\n", "{\"a\": \"\xc3\xa9\\n\\\"\"}" },
        { "'a b': 1\n\"c\\td\": 2\n", "{\"a b\": 1, \"c\\td\": 2}" },
        { "1: a\ntrue: b\n~: c\n1.5: d\n",
          "{\"1\": \"a\", \"true\": \"b\", \"~\": \"c\", \"1.5\": \"d\"}" },
        { "? a\n: b\n", "{\"a\": \"b\"}" },
        { "a: {}\nb: []\n", "{\"a\": {}, \"b\": []}" },
        { "{\n\t\"a\": 1,\n\t\"b\": [\n\t\t2\n\t]\n}\n", "{\"a\": 1, \"b\": [2]}" },
        { "{\"a\": null, \"b\": true, \"c\": 1.5}", "{\"a\": null, \"b\": true, \"c\": 1.5}" },
        { "a:\n  b: 1 # c\n  d: x#y\n", "{\"a\": {\"b\": 1, \"d\": \"x#y\"}}" },
        { "cmd: python x.py --a=1 --b={{ c }}\n", "{\"cmd\": \"python x.py --a=1 --b={{ c }}\"}" },
        /* anchors, aliases and tags */
        { "a: &x [1]\nb: *x\n", "{\"a\": [1], \"b\": [1]}" },
        { "a: &x 1\nb: &x 2\nc: *x\n", "{\"a\": 1, \"b\": 2, \"c\": 2}" },
        { "&k a: *k\n", "{\"a\": \"a\"}" },
        { "a: &x b\n*x : c\n", "{\"a\": \"b\", \"b\": \"c\"}" },
        { "a: !!str 1\nb: !!int '7'\nc: !!float 1\nd: ! 2\ne: !!bool yes\nf: !!null ''\n",
          "{\"a\": \"1\", \"b\": 7, \"c\": 1.0, \"d\": \"2\", \"e\": true, \"f\": null}" },
        { "!!map {a: !!seq [1], b: ! [2]}", "{\"a\": [1], \"b\": [2]}" },
        /* merge keys: the mapping itself wins, then the first of the merged ones */
        { "a: &a {x: 1, y: 1}\nb: {<<: *a, y: 2}\n",
          "{\"a\": {\"x\": 1, \"y\": 1}, \"b\": {\"y\": 2, \"x\": 1}}" },
        { "b: {y: 2, <<: {x: 1, y: 1}}\n", "{\"b\": {\"y\": 2, \"x\": 1}}" },
        { "b: {<<: [{x: 1}, {x: 2, z: 3}], y: 2}\n", "{\"b\": {\"y\": 2, \"x\": 1, \"z\": 3}}" },
        { "b: {<<: []}\n", "{\"b\": {}}" },
        { "b: {'<<': {x: 1}}\n", "{\"b\": {\"<<\": {\"x\": 1}}}" },
        { "a: &a {<<: {x: 1}}\nb: {<<: *a}\n", "{\"a\": {\"x\": 1}, \"b\": {\"x\": 1}}" },
        /* line ends */
        { "a: 1\r\nb: |\r\n  x\r\n  y\r\n", "{\"a\": 1, \"b\": \"x\\ny\\n\"}" },
        { "\xef\xbb\xbf"
          "a: 1\n",
          "{\"a\": 1}" },
        { "a: 1", "{\"a\": 1}" },
        { "a: \xe4\xbd\xa0\n\xc3\xa9: 1\n", "{\"a\": \"\xe4\xbd\xa0\", \"\xc3\xa9\": 1}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(reading) r = reading_tree(rows[i].text);

        if (r.status)
            fail_msg("`%s` is refused:\n%s", rows[i].text, reading_said(&r));
        assert_int_equal(r.diags->warnings, 0);
        assert_string_equal(shown(&r.root), rows[i].tree);
    }
}

static void what_is_no_yaml_is_told_with_its_place(void **state) {
    static const struct {
        const char *text;
        unsigned line, column;
        const char *message, *help;
    } rows[] = {
        { "a: 1\n---\nb: 2\n", 2, 1, "a second document starts here", "one document" },
        { "a: 1\n...\nb: 2\n", 3, 1, "a second document starts here", "one document" },
        { "a: \"x\n", 1, 4, "the quote that opens here is never closed", "closing \"" },
        { "a: 'x\n", 1, 4, "the quote that opens here is never closed", "closing '" },
        { "a:\n\tb: 1\n", 2, 1, "a tab stands where YAML wants blanks", "blanks only" },
        { "a: b: c\n", 1, 5, "a second `key:` follows on the same line", "quotes" },
        { "a: 1\nb\n", 2, 1, "this line is no `key: value`", "colon" },
        { "a: 1\n  b: 2\n", 2, 3, "`b` is indented deeper than `a`", "2 columns to the left" },
        { "- x: 1\n   y: 2\n", 2, 4, "`y` is indented deeper than `x`", "1 column to the left" },
        { "a: *x\n", 1, 5, "no anchor &x stands before this alias", NULL },
        { "a: &x [*x]\n", 1, 9, "*x is inside what it stands for", NULL },
        { "b: {<<: 1}\n", 1, 5, "`<<` takes a mapping or a list of mappings, not a whole number",
          NULL },
        { "b: {<<: [1]}\n", 1, 5, "`<<` takes a mapping", NULL },
        { "a: !!int x\n", 1, 10, "this is text, not what the tag !!int says", NULL },
        { "a: !!float x\n", 1, 12, "not what the tag !!float says", NULL },
        { "a: !foo x\n", 1, 4, "the tag `!foo` is not known here", NULL },
        { "a: !foo [x]\n", 1, 4, "the tag `!foo` is not known here", NULL },
        { "a: !!set {x}\n", 1, 4, "is not known here", NULL },
        { "? [a]\n: b\n", 1, 3, "a key has to be text, not a list", NULL },
        { "? {a: b}\n: b\n", 1, 3, "a key has to be text, not a mapping", NULL },
        { "a: &x [1]\n*x : 2\n", 1, 7, "a key has to be text, not a list", NULL },
        { "a: \xff\n", 1, 4, "this byte (0xff) is not UTF-8", "save the file as UTF-8" },
        { "a: b\n\xc3(\n", 2, 1, "this byte (0xc3) is not UTF-8", "UTF-8" },
        { "a: \"\\0\"\n", 1, 4, "text may not hold the character \\0", NULL },
        { "{\"a\": 1} x\n", 1, 10, "", NULL },
        { "{\"a\": 1\n", 2, 1, "", NULL },
        { "[1, 2\n", 2, 1, "", NULL },
        { "a: @b\n", 1, 4, "", NULL },
        /* places stay right behind carriage returns, tabs and long characters */
        { "a: 1\r\nb: *x\r\n", 2, 5, "no anchor &x", NULL },
        { "\xe4\xbd\xa0\xc3\xa9: *x\n", 1, 6, "no anchor &x", NULL },
        { "{\t\"a\":\t*x}\n", 1, 9, "no anchor &x", NULL },
    };
    size_t wrong = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(reading) r = reading_tree(rows[i].text);

        if (r.status == 0 || r.diags->errors != 1)
            print_error("`%s`: %zu errors\n", rows[i].text, r.diags->errors);
        wrong +=
            r.status == 0 || r.diags->errors != 1 ||
            reading_differs(&r, 0, rows[i].line, rows[i].column, rows[i].message, rows[i].help);
    }
    assert_int_equal(wrong, 0);
}

static void a_nul_byte_is_refused_where_it_stands(void **state) {
    AUTO(reading) r = reading_tree_n("a: 1\nb: \0\n", 10);

    (void)state;
    assert_int_equal(r.status, -1);
    assert_diag(&r, 0, 2, 4, "a NUL byte stands here", "the right file");
}

static void the_last_of_equal_keys_wins_and_each_earlier_one_is_told(void **state) {
    AUTO(reading) r = reading_tree("a: 1\nb: {x: 1, 'x': 2}\na: 3\na: 4\n");

    (void)state;
    assert_int_equal(r.status, 0);
    assert_string_equal(shown(&r.root), "{\"a\": 4, \"b\": {\"x\": 2}}");
    assert_int_equal(r.diags->warnings, 3);
    assert_diag(&r, 0, 2, 11, "`x` is given twice; this one counts", NULL);
    assert_note(&r, 0, 2, 5, "the `x` before it is here");
    assert_diag(&r, 1, 3, 1, "`a` is given twice", NULL);
    assert_note(&r, 1, 1, 1, "the `a` before it");
    assert_diag(&r, 2, 4, 1, "`a` is given twice", NULL);
    assert_note(&r, 2, 3, 1, "the `a` before it");
}

static void a_key_of_one_mapping_is_no_duplicate_of_another_mappings(void **state) {
    AUTO(reading) r = reading_tree("a: {a: {a: 1, b: 2}, b: 1}\nb: [{a: 1}, {a: 2}]\n");

    (void)state;
    assert_int_equal(r.status, 0);
    assert_int_equal(r.diags->warnings, 0);
}

static void a_value_knows_where_it_stands(void **state) {
    static const char text[] = "key: plain\n'quoted': \"two\"\nblock: |\n  line\nlist: [a, b]\n"
                               "map:\n  x: 1\nempty:\n";
    static const struct {
        const char *key;
        unsigned line, column, key_line, key_column;
    } rows[] = {
        { "key", 1, 6, 1, 1 },
        { "quoted", 2, 11, 2, 1 },
        { "list", 5, 7, 5, 1 },
        { "map", 7, 3, 6, 1 },
    };
    AUTO(reading) r = reading_tree(text);

    (void)state;
    assert_int_equal(r.status, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct member *member = node_member(&r.root, rows[i].key);
        struct position key = sources_position(&r.sources, member_place(member));
        struct position value = sources_position(&r.sources, node_place(&member->value));

        if (value.line != rows[i].line || value.column != rows[i].column ||
            key.line != rows[i].key_line || key.column != rows[i].key_column)
            fail_msg("`%s` stands at %u:%u, its value at %u:%u", rows[i].key, key.line, key.column,
                     value.line, value.column);
    }
    assert_int_equal(node_get(&r.root, "key")->length, 5);
    assert_int_equal(sources_position(&r.sources, node_place(node_get(&r.root, "block"))).line, 4);
    assert_int_equal(sources_position(&r.sources, node_place(node_get(&r.root, "empty"))).line, 8);
}

static void quotes_are_remembered(void **state) {
    AUTO(reading) r = reading_tree("a: '1'\nb: x\nc: |\n  1\n");

    (void)state;
    assert_int_equal(node_get(&r.root, "a")->flags, NODE_QUOTED);
    assert_int_equal(node_get(&r.root, "b")->flags, 0);
    assert_int_equal(node_get(&r.root, "c")->flags, NODE_QUOTED);
}

/* Repeats a text n times behind a head. */
static char *many(const char *head, const char *text, size_t n) {
    char *all = malloc(strlen(head) + strlen(text) * n + 1), *end = all;

    end = stpcpy(end, head);
    while (n-- > 0)
        end = stpcpy(end, text);
    return all;
}

static void nesting_is_taken_to_its_limit_and_no_further(void **state) {
    static const char *const openers[] = { "[", "{a: ", "- ", "? " };
    char *text = many("", "[", YAML_DEPTH_MAX);

    (void)state;
    text = realloc(text, 2 * YAML_DEPTH_MAX + 1);
    memset(text + YAML_DEPTH_MAX, ']', YAML_DEPTH_MAX);
    text[2 * YAML_DEPTH_MAX] = '\0';
    AUTO(reading) deepest = reading_tree(text);

    assert_int_equal(deepest.status, 0);
    free(text);
    for (size_t i = 0; i < ARRAY_LEN(openers); i++) {
        text = many("", openers[i], 20000);
        AUTO(reading) r = reading_tree(text);

        assert_int_equal(r.status, -1);
        if (i < 3)
            assert_non_null(strstr(r.diags->list[0].message, "nested deeper than 64 levels"));
        free(text);
    }
}

static void aliases_of_aliases_are_refused_before_they_grow(void **state) {
    static const char *const kinds[][2] = { { "[", "]" }, { "{<<: {}, x: [", "]}" } };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        AUTO(buf) text = BUF_INIT(1 << 16);
        struct error err;
        int failed = buf_printf(&text, &err, "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");

        for (int i = 1; i < 30; i++) {
            failed |= buf_printf(&text, &err, "a%d: &a%d %s", i, i, kinds[k][0]);
            for (int n = 0; n < 10; n++)
                failed |= buf_printf(&text, &err, "%s*a%d", n ? ", " : "", i - 1);
            failed |= buf_printf(&text, &err, "%s\n", kinds[k][1]);
        }
        assert_int_equal(failed, 0);
        AUTO(reading) r = reading_tree(text.data);

        assert_int_equal(r.status, -1);
        assert_non_null(strstr(r.diags->list[0].message, "more than 8000000 values"));
        assert_true(r.arena.allocated < 1 << 20);
    }
}

static void a_text_over_the_limit_is_refused_unread(void **state) {
    size_t n = (size_t)YAML_BYTES_MAX + 1;
    char *text = malloc(n);
    struct sources sources = { 0 };
    struct arena arena = ARENA_INIT;
    AUTO_PTR(diags) diags = diags_new();
    struct node root;

    (void)state;
    memset(text, '\n', n);
    *VEC_PUSH(&sources.list) = (struct source){ .name = "f.yml", .text = text, .len = n };
    assert_int_equal(yaml_read(&sources, 0, &arena, diags, &root), -1);
    assert_string_equal(diags->list[0].message, "f.yml is larger than 64 MiB");
    sources_release(&sources);
    arena_release(&arena);
    free(text);
}

static void a_key_may_be_long_but_not_without_end(void **state) {
    char *longest = many("", "k", UINT16_MAX), *longer;

    (void)state;
    longest = realloc(longest, UINT16_MAX + 4);
    strcat(longest, ": 1");
    AUTO(reading) taken = reading_tree(longest);

    longer = many("? ", "k", UINT16_MAX + 1);
    AUTO(reading) refused = reading_tree(longer);

    assert_int_equal(refused.status, -1);
    assert_non_null(strstr(refused.diags->list[0].message, "at most 65535 bytes"));
    assert_true(taken.status == 0 || taken.diags->errors == 1); /* libfyaml has a limit below */
    free(longest);
    free(longer);
}

static void trees_merge_deeply_and_the_later_wins(void **state) {
    static const struct {
        const char *under, *over, *merged;
    } rows[] = {
        { "{a: 1}", "{b: 2}", "{\"a\": 1, \"b\": 2}" },
        { "{a: 1, b: 1}", "{a: 2}", "{\"a\": 2, \"b\": 1}" },
        { "{a: {x: 1, y: 1}}", "{a: {y: 2, z: 3}}", "{\"a\": {\"x\": 1, \"y\": 2, \"z\": 3}}" },
        { "{a: [1, 2]}", "{a: [3]}", "{\"a\": [3]}" },
        { "{a: {x: 1}}", "{a: ~}", "{\"a\": null}" },
        { "{a: 1}", "{a: {x: 1}}", "{\"a\": {\"x\": 1}}" },
        { "{}", "{}", "{}" },
        { "1", "{a: 1}", "{\"a\": 1}" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(reading) under = reading_tree(rows[i].under);
        AUTO(reading) over = reading_tree(rows[i].over);
        struct node merged = node_merge(&under.arena, &under.root, &over.root), again;

        assert_string_equal(shown(&merged), rows[i].merged);
        again = node_merge(&under.arena, &merged, &over.root);
        assert_true(node_equal(&again, &merged)); /* once is as good as twice */
        assert_true(node_equal(&merged, &again));
    }
}

static void trees_are_equal_whatever_the_order_of_their_keys(void **state) {
    AUTO(reading) a = reading_tree("{a: 1, b: [x, {c: 1.5}], d: ~, e: yes}");
    AUTO(reading) b = reading_tree("{e: on, d: null, b: ['x', {c: 1.5}], a: 0x1}");
    static const char *const others[] = { "{a: 1}",
                                          "{a: 1, b: [x, {c: 1.5}], d: ~, e: no}",
                                          "{a: 1, b: [x], d: ~, e: yes}",
                                          "[]",
                                          "~",
                                          "{a: 1.0, b: [x, {c: 1.5}], d: ~, e: yes}",
                                          "{a: 1, b: [y, {c: 1.5}], d: ~, e: yes}",
                                          "{a: 1, b: [x, {c: 1.5}], d: ~, f: yes}" };

    (void)state;
    assert_true(node_equal(&a.root, &b.root));
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        AUTO(reading) other = reading_tree(others[i]);

        assert_false(node_equal(&a.root, &other.root));
        assert_false(node_equal(&other.root, &a.root));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_the_trees_that_they_spell),
        cmocka_unit_test(what_is_no_yaml_is_told_with_its_place),
        cmocka_unit_test(a_nul_byte_is_refused_where_it_stands),
        cmocka_unit_test(the_last_of_equal_keys_wins_and_each_earlier_one_is_told),
        cmocka_unit_test(a_key_of_one_mapping_is_no_duplicate_of_another_mappings),
        cmocka_unit_test(a_value_knows_where_it_stands),
        cmocka_unit_test(quotes_are_remembered),
        cmocka_unit_test(nesting_is_taken_to_its_limit_and_no_further),
        cmocka_unit_test(aliases_of_aliases_are_refused_before_they_grow),
        cmocka_unit_test(a_text_over_the_limit_is_refused_unread),
        cmocka_unit_test(a_key_may_be_long_but_not_without_end),
        cmocka_unit_test(trees_merge_deeply_and_the_later_wins),
        cmocka_unit_test(trees_are_equal_whatever_the_order_of_their_keys),
    };

    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
