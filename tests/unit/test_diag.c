/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "codec/utf8.h"
#include "reading.h"

/* What is printed for one error at a place of a text. */
static void show(const char *text, size_t n, uint32_t offset, uint32_t length,
                 enum diag_style style, struct buf *out) {
    struct sources sources = { 0 };
    AUTO_PTR(diags) diags = diags_new();
    struct error err;

    sources_add(&sources, "f.yml", text, n);
    diag_error(diags, (struct place){ offset, length, 0 }, "wrong");
    assert_int_equal(diags_format(diags, &sources, style, out, &err), 0);
    sources_release(&sources);
}

static void the_carets_stand_below_the_place(void **state) {
    static const struct {
        const char *text;
        uint32_t offset, length;
        const char *shown;
    } rows[] = {
        { "abc: def\n", 5, 3, "1:6: error: wrong\n    1 | abc: def\n      |      ^^^\n" },
        { "a\nb: c\n", 5, 1, "2:4: error: wrong\n    2 | b: c\n      |    ^\n" },
        { "a\nb: c\n", 2, 0, "2:1: error: wrong\n    2 | b: c\n      | ^\n" },
        /* columns count characters, not bytes */
        { "h\xc3\xa9\xe4\xbd\xa0: \xf0\x9f\x98\x80x\n", 8, 5,
          "1:6: error: wrong\n    1 | h\xc3\xa9\xe4\xbd\xa0: \xf0\x9f\x98\x80x\n      |      "
          "^^\n" },
        /* a tab is one column, and shown as one blank */
        { "\ta:\tb\n", 4, 1, "1:5: error: wrong\n    1 |  a: b\n      |     ^\n" },
        /* a carriage return before the newline is not shown */
        { "a: 1\r\nb: c\r\n", 9, 1, "2:4: error: wrong\n    2 | b: c\n      |    ^\n" },
        /* at and behind the end of a line and of the text */
        { "a\nb\n", 1, 1, "1:2: error: wrong\n    1 | a\n      |  ^\n" },
        { "a", 1, 0, "1:2: error: wrong\n    1 | a\n      |  ^\n" },
        { "a\n", 2, 0, "2:1: error: wrong\n    2 | \n      | ^\n" },
        { "", 0, 0, "1:1: error: wrong\n    1 | \n      | ^\n" },
        { "abc", 4000000, 7, "1:4: error: wrong\n    1 | abc\n      |    ^\n" },
        /* carets end with the line */
        { "ab: |\n  c\n  d\n", 4, 9, "1:5: error: wrong\n    1 | ab: |\n      |     ^\n" },
        /* a terminal takes no orders from a file */
        { "a\x1b[31m\x7f\xc2\x9b: b", 0, 1, "1:1: error: wrong\n    1 | a.[31m..: b\n      | ^\n" },
        /* bytes that are no text */
        { "a\xff\x80 b", 1, 1, "1:2: error: wrong\n    1 | a.. b\n      |  ^\n" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf) out = BUF_INIT(4096);

        show(rows[i].text, strlen(rows[i].text), rows[i].offset, rows[i].length, DIAG_PLAIN, &out);
        assert_memory_equal(out.data, "f.yml:", 6);
        assert_string_equal(out.data + 6, rows[i].shown);
    }
}

static void a_long_line_is_cut_to_a_window_around_the_place(void **state) {
    enum { N = 3000 };
    char text[3 * N];

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        memcpy(text + 3 * i, i == N / 2 ? "XYZ" : "\xe4\xbd\xa0", 3);
    for (uint32_t offset = 0; offset < 3 * N; offset += offset % 7 == 0 ? 1 : 31) {
        AUTO(buf) out = BUF_INIT(4096);

        show(text, sizeof text, offset / 3 * 3, 3, DIAG_PLAIN, &out);
        assert_int_equal(utf8_valid_prefix(out.data, out.len), out.len);
        assert_true(out.len < 600);
        assert_null(strchr(strstr(out.data, " | "), '.')); /* no character is cut */
    }
    AUTO(buf) out = BUF_INIT(4096);
    const char *line, *carets;

    show(text, sizeof text, 3 * (N / 2), 3, DIAG_PLAIN, &out);
    line = strstr(out.data, " | ") + 3;
    carets = strstr(line, " | ") + 3;
    assert_int_equal(strspn(carets, " "), (size_t)(strstr(line, "XYZ") - line) / 3);
    assert_string_equal(carets + strspn(carets, " "), "^^^\n");
}

static void every_place_of_a_text_can_be_shown(void **state) {
    static const char text[] = "a: \xc3\xa9\r\n\n\tb\xff: |\n  x\xe4\xbd";

    (void)state;
    for (uint32_t offset = 0; offset < sizeof text + 2; offset++)
        for (uint32_t length = 0; length < sizeof text + 2; length++)
            for (enum diag_style style = DIAG_PLAIN; style <= DIAG_COLOURED; style++) {
                AUTO(buf) out = BUF_INIT(4096);
                size_t lines = 0;

                show(text, sizeof text - 1, offset, length, style, &out);
                for (size_t i = 0; i < out.len; i++)
                    lines += out.data[i] == '\n';
                assert_int_equal(lines, 3);
                assert_int_equal(utf8_valid_prefix(out.data, out.len), out.len);
            }
}

static void notes_and_help_follow_and_colours_change_nothing_else(void **state) {
    static const char expected[] = "f.yml:1:4: error: too many\n"
                                   "    1 | a: 5\n"
                                   "      |    ^\n"
                                   "f.yml:2:1: note: only 3\n"
                                   "    2 | b: 3\n"
                                   "      | -\n"
                                   "      = help: use less\n"
                                   "f.yml:2:4: warning: odd\n"
                                   "    2 | b: 3\n"
                                   "      |    ^\n"
                                   "error: nowhere^[at all\n";
    struct sources sources = { 0 };
    AUTO_PTR(diags) diags = diags_new();
    AUTO(buf) plain = BUF_INIT(4096);
    AUTO(buf) coloured = BUF_INIT(4096);
    struct diag *diag;
    struct error err;
    char *to;

    (void)state;
    sources_add(&sources, "f.yml", "a: 5\nb: 3\n", 10);
    diag = diag_error(diags, (struct place){ 3, 1, 0 }, "too %s", "many");
    diag_note(diag, (struct place){ 5, 1, 0 }, "only %d", 3);
    diag_help(diag, "use %s", "less");
    diag_warning(diags, (struct place){ 8, 1, 0 }, "odd");
    diag_error_nowhere(diags, "nowhere\033at\nall");
    assert_int_equal(diags->errors, 2);
    assert_int_equal(diags->warnings, 1);
    assert_int_equal(diags_format(diags, &sources, DIAG_PLAIN, &plain, &err), 0);
    assert_string_equal(plain.data, expected);
    assert_int_equal(diags_format(diags, &sources, DIAG_COLOURED, &coloured, &err), 0);
    assert_non_null(strstr(coloured.data, "\033[1;31m"));
    to = coloured.data;
    for (const char *from = coloured.data; *from; from++) {
        if (*from == '\033')
            from += strcspn(from, "m");
        else
            *to++ = *from;
    }
    *to = '\0';
    assert_string_equal(coloured.data, expected);
    sources_release(&sources);
}

static void a_full_buffer_is_told_and_not_overrun(void **state) {
    AUTO(reading) r = reading_tree("a: 1\na: 2\n");
    struct error err;

    (void)state;
    for (size_t limit = 0; limit < 100; limit++) {
        AUTO(buf) out = BUF_INIT(limit);

        assert_int_equal(diags_format(r.diags, &r.sources, DIAG_COLOURED, &out, &err), -1);
        assert_int_equal(err.code, ERROR_EXHAUSTED);
    }
}

static void what_is_beyond_the_list_is_counted_and_costs_nothing(void **state) {
    struct sources sources = { 0 };
    AUTO_PTR(diags) diags = diags_new();
    AUTO(buf) out = BUF_INIT(1 << 20);
    struct error err;
    size_t before = 0;

    (void)state;
    sources_add(&sources, "f.yml", "a", 1);
    for (int i = 0; i < 5000; i++) {
        struct diag *diag = i % 2 ? diag_error(diags, (struct place){ 0 }, "number %d", i)
                                  : diag_warning(diags, (struct place){ 0 }, "number %d", i);

        diag_note(diag, (struct place){ 0 }, "note");
        diag_help(diag, "help");
        if (i == DIAGS_MOST)
            before = diags->arena.allocated;
    }
    assert_int_equal(diags->len, DIAGS_MOST);
    assert_int_equal(diags->errors, 2500);
    assert_int_equal(diags->warnings, 2500);
    assert_int_equal(diags->arena.allocated, before);
    assert_int_equal(diags_format(diags, &sources, DIAG_PLAIN, &out, &err), 0);
    assert_non_null(strstr(out.data, "number 99"));
    assert_null(strstr(out.data, "number 100"));
    assert_string_equal(strrchr(out.data, ' ') - 8, "and 4900 more\n");
    sources_release(&sources);
}

static void the_list_as_json_has_every_part(void **state) {
    AUTO(reading) r = reading_tree("a: 1\n\xc3\xa9: 2\n\xc3\xa9: 3\n");
    AUTO(buf) out = BUF_INIT(4096);
    struct json json;
    struct error err;

    (void)state;
    diag_help(diag_error_nowhere(r.diags, "x"), "y");
    json_init(&json, JSON_COMPACT, json_to_buf, &out);
    diags_write_json(r.diags, &r.sources, &json);
    assert_int_equal(json_finish(&json, &err), 0);
    assert_string_equal(
        out.data,
        "[{\"severity\": \"warning\", \"message\": \"`\xc3\xa9` is given twice; this one counts\", "
        "\"file\": \"f.yml\", \"line\": 3, \"column\": 1, \"length\": 2, \"note\": {\"message\": "
        "\"the `\xc3\xa9` before it is here\", \"file\": \"f.yml\", \"line\": 2, \"column\": 1, "
        "\"length\": 2}}, {\"severity\": \"error\", \"message\": \"x\", \"help\": \"y\"}]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_carets_stand_below_the_place),
        cmocka_unit_test(a_long_line_is_cut_to_a_window_around_the_place),
        cmocka_unit_test(every_place_of_a_text_can_be_shown),
        cmocka_unit_test(notes_and_help_follow_and_colours_change_nothing_else),
        cmocka_unit_test(a_full_buffer_is_told_and_not_overrun),
        cmocka_unit_test(what_is_beyond_the_list_is_counted_and_costs_nothing),
        cmocka_unit_test(the_list_as_json_has_every_part),
    };

    return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
