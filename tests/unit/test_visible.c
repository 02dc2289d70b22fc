/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"
#include "codec/visible.h"

enum { TEXT_MOST = 400, OUT_MOST = TEXT_MOST * VISIBLE_GROWTH + VISIBLE_EXTRA };

static void shows(const char *text, unsigned flags, const char *wanted) {
    AUTO(buf) out = BUF_INIT(10000);
    struct error err;

    assert_int_equal(visible_append(&out, text, strlen(text), flags, &err), 0);
    assert_string_equal(out.data, wanted);
}

static void what_controls_a_terminal_is_shown_as_text(void **unused) {
    (void)unused;
    shows("plain \xc3\xa9 \xf0\x9f\x98\x80\ttab", 0, "plain \xc3\xa9 \xf0\x9f\x98\x80\ttab");
    shows("\x1b]52;c;ZXZpbA==\a", VISIBLE_COLOURS, "^[]52;c;ZXZpbA==^G");
    shows("\x1b[2J\x1b[H\x1b[3A", VISIBLE_COLOURS, "^[[2J^[[H^[[3A");
    shows("\x1b"
          "c\x1bP+q\x1b\\",
          VISIBLE_COLOURS, "^[c^[P+q^[\\");
    shows("a\rb\bc\x7f\n", 0, "a^Mb^Hc^?^J");
    shows("\x9b"
          "2J \xff",
          0, "\\x9b2J \\xff");
    shows("\xc2\x9b"
          "2J",
          0, "<U+009B>2J");
    shows("\xe2\x80\xae"
          "exe.\xe2\x81\xa9\xd8\x9c\xe2\x80\x8f",
          0, "<U+202E>exe.<U+2069><U+061C><U+200F>");
}

static void colours_pass_where_they_may_and_end_with_the_line(void **unused) {
    const unsigned lines = VISIBLE_COLOURS | VISIBLE_LINES;

    (void)unused;
    shows("\x1b[1;31mred\x1b[0m", VISIBLE_COLOURS, "\x1b[1;31mred\x1b[0m");
    shows("\x1b[31mred", VISIBLE_COLOURS, "\x1b[31mred\x1b[0m");
    shows("\x1b[31mred\nnot\x1b[m\n", lines, "\x1b[31mred\x1b[0m\nnot\x1b[m\n");
    shows("\x1b[38;2;255;255;255;48:5:196m", VISIBLE_COLOURS,
          "\x1b[38;2;255;255;255;48:5:196m\x1b[0m");
    shows("\x1b[31mred\x1b[0m", 0, "^[[31mred^[[0m");
    shows("\x1b[31mred\x1b[0m \x1b[2J", VISIBLE_BARE, "red ^[[2J");
}

static void a_colour_sequence_has_bounds(void **unused) {
    (void)unused;
    shows("\x1b[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7m", VISIBLE_COLOURS,
          "\x1b[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7m\x1b[0m");
    shows("\x1b[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8m", VISIBLE_COLOURS,
          "^[[1;2;3;4;5;6;7;8;9;1;2;3;4;5;6;7;8m");
    shows("\x1b[1000m", VISIBLE_COLOURS, "^[[1000m");
    shows("\x1b[31", VISIBLE_COLOURS, "^[[31");
    shows("\x1b[>4;2m\x1b[?1m", VISIBLE_COLOURS, "^[[>4;2m^[[?1m");
}

static void what_stands_for_a_control_can_be_dim(void **unused) {
    const unsigned flags = VISIBLE_COLOURS | VISIBLE_DIM;

    (void)unused;
    shows("a\x01\x02"
          "b",
          flags, "a\x1b[2m^A^B\x1b[22mb\x1b[0m");
    shows("a\x01", VISIBLE_DIM, "a^A");
}

static void drawings_become_ascii_of_the_same_width(void **unused) {
    (void)unused;
    shows("│┤└──━ … ▁▄█ ⠁⡀⣿", VISIBLE_ASCII, "|++--- ~ _~# '.:");
    shows("caf\xc3\xa9 │", VISIBLE_ASCII_DRAWINGS, "caf\xc3\xa9 |");
    shows("caf\xc3\xa9 │", VISIBLE_ASCII, "caf<U+00E9> |");
}

static void a_text_of_one_line_is_cut_by_columns(void **unused) {
    AUTO(arena) arena = ARENA_INIT;

    (void)unused;
    assert_string_equal(visible_text(&arena, NULL, 0), "");
    assert_string_equal(visible_text(&arena, "a\nb\tc", 0), "a b c");
    assert_string_equal(visible_text(&arena, "abcdef", 6), "abcdef");
    assert_string_equal(visible_text(&arena, "abcdef", 5), "abcd…");
    assert_string_equal(visible_text(&arena,
                                     "\xe6\xbc\xa2\xe5\xad\x97"
                                     "ab",
                                     5),
                        "\xe6\xbc\xa2\xe5\xad\x97…");
    assert_string_equal(visible_text(&arena, "\x1b[2Jx", 0), "^[[2Jx");
    assert_int_equal(visible_columns("\x1b[31m\xe6\xbc\xa2\x1b[0m"
                                     "e\xcc\x81"),
                     3);
}

/* ---- laws over texts by chance ---- */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static size_t random_text(uint32_t *random, char *out) {
    static const char *const parts[] = {
        "\x1b", "[",    "31", "m",        ";",        "\x1b[0m", "\x1b[1;32m",   "\x1b]52;c;x\a",
        "\n",   "\r",   "\t", "\xc2\x9b", "\xe2\x80", "\xae",    "\xe2\x80\xae", "\xf0\x9f\x98",
        "text", "\x80", "│",  "⣿",        "\xc3\xa9", "\x1b[2J", "\x1b[22m",     "\xed\xa0\x80"
    };
    size_t n = 0;

    while (n < TEXT_MOST - 20 && next_random(random) % 60) {
        const char *part = parts[next_random(random) % ARRAY_LEN(parts)];

        memcpy(out + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

static void check_visible(const char *text, size_t n, unsigned flags) {
    assert_int_equal(utf8_valid_prefix(text, n), n);
    for (size_t i = 0, length; i < n; i += length) {
        length = visible_colour_length(text + i, n - i);
        if (length) {
            assert_true(flags & VISIBLE_COLOURS);
            continue;
        }
        length = utf8_length(text + i, n - i);
        if (text[i] != '\t' && !(text[i] == '\n' && flags & VISIBLE_LINES))
            assert_false(utf8_is_hidden(utf8_point(text + i, length)));
    }
}

static void the_laws_hold_for_any_text(void **unused) {
    static const unsigned some[] = { 0,
                                     VISIBLE_COLOURS,
                                     VISIBLE_LINES,
                                     VISIBLE_COLOURS | VISIBLE_LINES,
                                     VISIBLE_COLOURS | VISIBLE_LINES | VISIBLE_DIM,
                                     VISIBLE_BARE,
                                     VISIBLE_ASCII,
                                     VISIBLE_ASCII_DRAWINGS | VISIBLE_COLOURS | VISIBLE_DIM };
    char text[TEXT_MOST];
    uint32_t random = 7;

    (void)unused;
    for (int round = 0; round < 20000; round++) {
        const unsigned flags = some[next_random(&random) % ARRAY_LEN(some)];
        AUTO(buf) out = BUF_INIT(OUT_MOST), twice = BUF_INIT(OUT_MOST * VISIBLE_GROWTH + 100);
        AUTO(buf) pieces = BUF_INIT(OUT_MOST);
        struct visible_stream stream = { .flags = flags };
        const size_t n = random_text(&random, text);
        struct error err;

        assert_int_equal(visible_append(&out, text, n, flags, &err), 0);
        assert_true(out.len <= n * VISIBLE_GROWTH + VISIBLE_EXTRA);
        check_visible(out.data, out.len, flags);
        assert_int_equal(visible_append(&twice, out.data, out.len, flags, &err), 0);
        assert_string_equal(twice.data, out.data);
        for (size_t i = 0, piece; i < n; i += piece) {
            piece = 1 + next_random(&random) % 4;
            piece = piece < n - i ? piece : n - i;
            assert_int_equal(visible_feed(&stream, text + i, piece, &pieces, &err), 0);
        }
        assert_int_equal(visible_end(&stream, &pieces, &err), 0);
        assert_string_equal(pieces.data, out.data);
    }
}

static void a_text_that_does_not_fit_leaves_the_buffer_as_it_was(void **unused) {
    AUTO(buf) out = BUF_INIT(10);
    struct error err;

    (void)unused;
    assert_int_equal(visible_append(&out, "abc", 3, 0, &err), 0);
    assert_int_equal(visible_append(&out, "defg\x01\x02\x03", 7, 0, &err), -1);
    assert_string_equal(out.data, "abc");
}

static void the_width_of_characters_is_never_too_small(void **unused) {
    (void)unused;
    assert_int_equal(utf8_columns('a'), 1);
    assert_int_equal(utf8_columns(0x301), 0);
    assert_int_equal(utf8_columns(0x6f22), 2);
    assert_int_equal(utf8_columns(0x1f600), 2);
    assert_int_equal(utf8_columns(0x2502), 1);
    assert_int_equal(utf8_columns(0x28ff), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_controls_a_terminal_is_shown_as_text),
        cmocka_unit_test(colours_pass_where_they_may_and_end_with_the_line),
        cmocka_unit_test(a_colour_sequence_has_bounds),
        cmocka_unit_test(what_stands_for_a_control_can_be_dim),
        cmocka_unit_test(drawings_become_ascii_of_the_same_width),
        cmocka_unit_test(a_text_of_one_line_is_cut_by_columns),
        cmocka_unit_test(the_laws_hold_for_any_text),
        cmocka_unit_test(a_text_that_does_not_fit_leaves_the_buffer_as_it_was),
        cmocka_unit_test(the_width_of_characters_is_never_too_small),
    };

    return cmocka_run_group_tests_name("visible", tests, NULL, NULL);
}
