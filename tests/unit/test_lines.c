/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lines.h"
#include "codec/visible.h"

/* What came out: each line, then '|'. */
struct heard {
    struct buf text;
    size_t lines, longest;
};

static void hear(void *context, const char *line, size_t n) {
    struct heard *heard = context;
    struct error err;

    assert_int_equal(buf_append(&heard->text, line, n, &err), 0);
    assert_int_equal(buf_append(&heard->text, "|", 1, &err), 0);
    heard->lines++;
    heard->longest = n > heard->longest ? n : heard->longest;
}

#define HEARD                                                                                      \
    { .text = BUF_INIT(1 << 22) }

static void a_line_comes_out_whole_however_it_was_cut(void **unused) {
    static const char text[] = "one\ntwo\n\nthree, longer\nno end";

    (void)unused;
    for (size_t a = 0; a < sizeof text; a++) {
        for (size_t b = a; b < sizeof text; b++) {
            struct lines lines = { 0 };
            struct heard heard = HEARD;

            lines_feed(&lines, text, a, hear, &heard);
            lines_feed(&lines, text + a, b - a, hear, &heard);
            lines_feed(&lines, text + b, sizeof text - 1 - b, hear, &heard);
            assert_string_equal(heard.text.data, "one|two||three, longer|");
            lines_flush(&lines, hear, &heard);
            lines_flush(&lines, hear, &heard);
            assert_string_equal(heard.text.data, "one|two||three, longer|no end|");
            lines_release(&lines);
            buf_release(&heard.text);
        }
    }
}

static void an_endless_line_is_cut_into_pieces_and_none_of_it_is_lost(void **unused) {
    enum { TOTAL = 5 * LINE_MOST + 7 };
    char *zeros = calloc(1, TOTAL);

    (void)unused;
    for (size_t step = 1000; step < TOTAL * 2; step = step * 7 + 1) {
        struct lines lines = { 0 };
        struct heard heard = HEARD;

        for (size_t at = 0; at < TOTAL; at += step)
            lines_feed(&lines, zeros + at, TOTAL - at < step ? TOTAL - at : step, hear, &heard);
        assert_true(lines.capacity <= 2 * LINE_MOST);
        lines_flush(&lines, hear, &heard);
        assert_int_equal(heard.longest, LINE_MOST);
        assert_int_equal(heard.text.len - heard.lines, TOTAL);
        lines_release(&lines);
        buf_release(&heard.text);
    }
    free(zeros);
}

/* What came out of lines that know whether they go on. */
struct pieces {
    const struct lines *lines;
    size_t n, n_going_on, n_broken, bytes;
};

static void hear_piece(void *context, const char *line, size_t n) {
    struct pieces *pieces = context;

    pieces->n++;
    pieces->n_going_on += pieces->lines->goes_on;
    pieces->n_broken += n > 0 && ((unsigned char)line[0] & 0xc0) == 0x80;
    pieces->bytes += n;
}

static void a_piece_of_a_line_parts_no_character_and_is_known_as_a_piece(void **unused) {
    static const char *const characters[] = { "\xc3\xa9", "\xe2\x94\x82", "\xf0\x9f\x98\x80" };
    enum { TOTAL = 3 * LINE_MOST };
    char *text = malloc(TOTAL);

    (void)unused;
    for (size_t c = 0; c < ARRAY_LEN(characters); c++)
        for (size_t shift = 0; shift < 5; shift++) {
            const size_t width = strlen(characters[c]);
            struct lines lines = { 0 };
            struct pieces pieces = { .lines = &lines };
            size_t len = shift;

            memset(text, 'x', shift);
            for (; len + width < TOTAL; len += width)
                memcpy(text + len, characters[c], width);
            text[len++] = '\n';
            for (size_t at = 0; at < len; at += 1001)
                lines_feed(&lines, text + at, len - at < 1001 ? len - at : 1001, hear_piece,
                           &pieces);
            assert_int_equal(pieces.n_broken, 0);
            assert_int_equal(pieces.n_going_on, pieces.n - 1);
            assert_int_equal(pieces.bytes, len - 1);
            lines_release(&lines);
        }
    free(text);
}

static void a_line_of_just_the_most_is_not_cut(void **unused) {
    char *text = malloc(LINE_MOST + 1);
    struct lines lines = { 0 };
    struct heard heard = HEARD;

    (void)unused;
    memset(text, 'a', LINE_MOST);
    text[LINE_MOST] = '\n';
    lines_feed(&lines, text, LINE_MOST + 1, hear, &heard);
    lines_feed(&lines, text, LINE_MOST, hear, &heard);
    lines_feed(&lines, "\n", 1, hear, &heard);
    lines_flush(&lines, hear, &heard);
    assert_int_equal(heard.lines, 2);
    assert_int_equal(heard.longest, LINE_MOST);
    lines_release(&lines);
    buf_release(&heard.text);
    free(text);
}

static void the_tail_is_the_last_lines(void **unused) {
    static const struct {
        const char *text, *tail;
    } rows[] = { { "", "" }, { "\n", "|" }, { "a\nb", "a|b|" }, { "a\nb\n\n", "a|b||" } };
    AUTO(buf) text = BUF_INIT(100000);
    struct heard heard = HEARD;
    struct error err;

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct heard few = HEARD;

        tail_lines(rows[i].text, strlen(rows[i].text), hear, &few);
        assert_string_equal(few.text.data, rows[i].tail);
        buf_release(&few.text);
    }
    for (int i = 0; i < 5000; i++)
        assert_int_equal(buf_printf(&text, &err, "line %d\n", i), 0);
    tail_lines(text.data, text.len, hear, &heard);
    assert_int_equal(heard.lines, TAIL_LINES);
    assert_memory_equal(heard.text.data, "line 4980|", 10);
    assert_non_null(strstr(heard.text.data, "line 4999|"));
    buf_release(&heard.text);
}

static void a_line_on_a_terminal_cannot_steer_it(void **unused) {
    static const struct {
        const char *line, *shown;
    } rows[] = {
        { "plain\ttext", "plain\ttext" },
        { "caf\xc3\xa9 \xe2\x94\x82 \xf0\x9f\x98\x80",
          "caf\xc3\xa9 \xe2\x94\x82 \xf0\x9f\x98\x80" },
        { "\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m" },
        { "\x1b[2J", "^[[2J" },
        { "\x1b]0;title\x07", "^[]0;title^G" },
        { "\x1b[31", "^[[31" },
        { "\xff\xfe", "\\xff\\xfe" },
        { "\xc2\x9b"
          "2J",
          "<U+009B>2J" },
        { "\xc0\xaf", "\\xc0\\xaf" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { "\xe2\x80\xae"
          "abc",
          "<U+202E>abc" },
        { "\xe2\x94", "\\xe2\\x94" },
        { " 10%\r 20%\r 30%", " 30%" },
        { "windows\r", "windows" },
        { "spin |\b/\b-", "spin -" },
        { "\b\b"
          "ab\b\b\b"
          "c",
          "c" },
        { "caf\xc3\xa9\b"
          "e",
          "cafe" },
        { "\x1b[32m50%\x1b[0m\b\b\b60%", "\x1b[32m60%\x1b[0m" },
        { "left \x1b[31mred", "left \x1b[31mred\x1b[0m" },
        { "\x7f\x01", "^?^A" },
        { "", "" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(buf) out = BUF_INIT(1000);
        struct error err;

        assert_int_equal(
            line_append_harmless(&out, rows[i].line, strlen(rows[i].line), VISIBLE_COLOURS, &err),
            0);
        assert_string_equal(out.data, rows[i].shown);
    }
}

static void a_line_that_does_not_fit_leaves_the_buffer_as_it_was(void **unused) {
    AUTO(buf) out = BUF_INIT(10);
    struct error err;

    (void)unused;
    assert_int_equal(line_append_harmless(&out, "abc", 3, 0, &err), 0);
    assert_int_equal(line_append_harmless(&out, "defg\x01\x02\x03", 7, 0, &err), -1);
    assert_string_equal(out.data, "abc");
}

/* What lines_prefix leaves is shown by lines_feed, so both have to agree on every line. */
static void a_sweep_of_prefixed_lines_is_the_same_as_line_by_line(void **unused) {
    static const char prefix[LINES_SLACK] = "t | ";
    char text[400], out[4000 + LINES_SLACK];
    uint32_t random = 1;

    (void)unused;
    for (size_t n = 0; n < sizeof text; n++) {
        AUTO(buf) wanted = BUF_INIT(1 << 16);
        size_t taken, used, start = 0;
        struct error err;

        for (size_t i = 0; i < n; i++) {
            random = random * 1664525u + 1013904223u;
            text[i] = random >> 24 < 256 / (1 + n % 40) ? '\n' : 'x';
        }
        for (size_t i = 0; i < n; i++)
            if (text[i] == '\n') {
                assert_int_equal(
                    buf_printf(&wanted, &err, "t | %.*s", (int)(i + 1 - start), text + start), 0);
                start = i + 1;
            }
        used = lines_prefix(text, n, prefix, 4, out, 4000, &taken);
        assert_int_equal(taken, start);
        assert_int_equal(used, wanted.len);
        assert_memory_equal(out, wanted.data, used);
        used = lines_prefix(text, n, prefix, 4, out, used / 2, &taken);
        assert_memory_equal(out, wanted.data, used);
        assert_true(used <= wanted.len / 2 && taken <= start);
    }
}

static void a_sweep_stops_at_a_line_that_is_too_long(void **unused) {
    static const char prefix[LINES_SLACK] = "t | ";
    char *text = malloc(LINE_MOST + 10), *out = malloc(2 * LINE_MOST + LINES_SLACK);
    size_t taken;

    (void)unused;
    memset(text, 'x', LINE_MOST + 10);
    text[1] = text[LINE_MOST + 2] = '\n';
    assert_int_equal(lines_prefix(text, LINE_MOST + 10, prefix, 4, out, 2 * LINE_MOST, &taken),
                     2 + LINE_MOST + 1 + 8);
    text[LINE_MOST + 2] = 'x';
    text[LINE_MOST + 3] = '\n';
    assert_int_equal(lines_prefix(text, LINE_MOST + 10, prefix, 4, out, 2 * LINE_MOST, &taken), 6);
    assert_int_equal(taken, 2);
    free(text);
    free(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_comes_out_whole_however_it_was_cut),
        cmocka_unit_test(an_endless_line_is_cut_into_pieces_and_none_of_it_is_lost),
        cmocka_unit_test(a_piece_of_a_line_parts_no_character_and_is_known_as_a_piece),
        cmocka_unit_test(a_line_of_just_the_most_is_not_cut),
        cmocka_unit_test(a_sweep_of_prefixed_lines_is_the_same_as_line_by_line),
        cmocka_unit_test(a_sweep_stops_at_a_line_that_is_too_long),
        cmocka_unit_test(the_tail_is_the_last_lines),
        cmocka_unit_test(a_line_on_a_terminal_cannot_steer_it),
        cmocka_unit_test(a_line_that_does_not_fit_leaves_the_buffer_as_it_was),
    };

    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
