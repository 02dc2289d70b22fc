/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "codec/utf8.h"
#include "supervise/diagnosis.h"
#include "supervise/sentence.h"

enum {
    SIZE_LEAST = 4,
    SIZE_MOST = 40,
    PIECES = 3,
    PIECE_MOST = 24,
    GUARD = 64, /* bytes behind the array that nobody may touch */
    LONGEST = 700,
};

/* ---- pieces ---- */

/* Of characters of one to four bytes. */
static const char *const characters[] = { "a", "ä", "€", "😀" };

static struct slice piece_of(char *out, const char *character, size_t most) {
    const size_t n = strlen(character), times = most / n;

    for (size_t i = 0; i < times; i++)
        memcpy(out + i * n, character, n);
    return (struct slice){ .text = out, .n = times * n };
}

/* What is said of pieces is all of them, or so much of their beginning as fits before "…". */
static void assert_said(const struct slice *pieces, size_t n, size_t size) {
    char text[SIZE_MOST + GUARD], whole[PIECES * PIECE_MOST + 1] = "", guard[GUARD];
    struct sentence sentence = { .text = text, .size = size };
    size_t len = 0, said;

    memset(text, '#', sizeof text);
    memset(guard, '#', sizeof guard);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        say_most(&sentence, pieces[i], SIZE_MOST);
        memcpy(whole + len, pieces[i].text, pieces[i].n);
        len += pieces[i].n;
    }
    said = strnlen(text, size);
    assert_true(said < size);
    assert_int_equal(said, sentence.len);
    assert_memory_equal(text + size, guard, GUARD);
    assert_int_equal(utf8_valid_prefix(text, said), said);
    if (len < size) {
        assert_int_equal(said, len);
        assert_memory_equal(text, whole, len);
    } else {
        assert_true(said >= strlen("…"));
        assert_string_equal(text + said - strlen("…"), "…");
        assert_memory_equal(text, whole, said - strlen("…"));
    }
}

static void pieces_of_any_length_are_said_whole_or_end_in_an_ellipsis(void **unused) {
    char bytes[PIECES][PIECE_MOST];
    struct slice pieces[PIECES];

    (void)unused;
    for (size_t kind = 0; kind < ARRAY_LEN(characters); kind++)
        for (size_t size = SIZE_LEAST; size <= SIZE_MOST; size++)
            for (size_t lengths = 0; lengths < (size_t)PIECE_MOST * PIECE_MOST * 2; lengths++) {
                pieces[0] = piece_of(bytes[0], characters[kind], lengths % PIECE_MOST);
                pieces[1] = piece_of(bytes[1], "b", lengths / PIECE_MOST % PIECE_MOST);
                pieces[2] = piece_of(bytes[2], characters[3 - kind],
                                     lengths / PIECE_MOST / PIECE_MOST ? PIECE_MOST - 1 : 1);
                assert_said(pieces, PIECES, size);
            }
}

static void nothing_follows_a_sentence_that_is_full(void **unused) {
    char text[16] = "";
    struct sentence sentence = { .text = text, .size = sizeof text };

    (void)unused;
    say(&sentence, "twelve bytes");
    say(&sentence, "abc");
    assert_string_equal(text, "twelve bytesabc");
    say(&sentence, ")");
    assert_string_equal(text, "twelve bytes…");
    say(&sentence, ")");
    say_number(&sentence, "", 1);
    assert_string_equal(text, "twelve bytes…");
}

static void a_piece_that_is_cut_at_its_own_length_does_not_end_the_sentence(void **unused) {
    char text[32] = "";
    struct sentence sentence = { .text = text, .size = sizeof text };

    (void)unused;
    say_most(&sentence, slice_of("abcdefghijklmnop"), 4);
    say(&sentence, " follows");
    assert_string_equal(text, "abcd… follows");
}

/* ---- diagnoses ---- */

/* The parts of a traceback, of which any may be at its longest: one bit each. */
enum {
    LONG_MESSAGE = 1,
    LONG_CAUSE = 2,
    LONG_FILE = 4,
    LONG_FUNCTION = 8,
    LONG_TYPE = 16,
    ALL = 31
};

/* A cause in the user's code that a library raised, and what it led to. */
static void assert_diagnosed(unsigned longs, const char *character, size_t message_most) {
    static char message[LONGEST + 1], file[LONGEST + 1], name[LONGEST + 1], output[8 * LONGEST];
    const struct task_end end = { .kind = TASK_SIGNALLED, .detail = 6 };
    struct {
        struct diagnosis why;
        char guard[GUARD];
    } out;
    char guard[GUARD];
    size_t n;

    file[piece_of(file, character, LONGEST).n] = '\0';
    name[piece_of(name, "n", LONGEST).n] = '\0';
    message[piece_of(message, character, message_most).n] = '\0';
    snprintf(output, sizeof output,
             "Traceback (most recent call last):\n"
             "  File \"/home/ada/%s.py\", line 41, in %s\n"
             "  File \"/usr/lib/python3.11/%s.py\", line 355, in %s\n"
             "%sError: %s\n"
             "\nThe above exception was the direct cause of the following exception:\n\n"
             "Traceback (most recent call last):\n"
             "  File \"/home/ada/train.py\", line 6, in <module>\n"
             "RuntimeError: %s\n",
             longs & LONG_FILE ? file : "train", longs & LONG_FUNCTION ? name : "step",
             longs & LONG_FILE ? file : "json", longs & LONG_FUNCTION ? name : "decode",
             longs & LONG_TYPE ? name : "Value", longs & LONG_CAUSE ? message : "no",
             longs & LONG_MESSAGE ? message : "it failed");
    memset(guard, '#', sizeof guard);
    memset(out.guard, '#', sizeof out.guard);
    diagnose("worker.2", &end, output, strlen(output), OUTPUT_WHOLE, &out.why);
    n = strnlen(out.why.sentence, sizeof out.why.sentence);
    assert_true(n < sizeof out.why.sentence);
    assert_int_equal(utf8_valid_prefix(out.why.sentence, n), n);
    assert_memory_equal(out.why.sentence, "worker.2 raised RuntimeError: ", 30);
    assert_memory_equal(out.guard, guard, sizeof guard);
    assert_true(strnlen(out.why.hint, sizeof out.why.hint) < sizeof out.why.hint);
}

static void a_diagnosis_has_room_for_any_part_at_its_longest(void **unused) {
    (void)unused;
    for (unsigned longs = 0; longs <= ALL; longs++)
        for (size_t kind = 0; kind < ARRAY_LEN(characters); kind++)
            for (size_t most = 200; most < 340; most++)
                assert_diagnosed(longs, characters[kind], most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_length_are_said_whole_or_end_in_an_ellipsis),
        cmocka_unit_test(nothing_follows_a_sentence_that_is_full),
        cmocka_unit_test(a_piece_that_is_cut_at_its_own_length_does_not_end_the_sentence),
        cmocka_unit_test(a_diagnosis_has_room_for_any_part_at_its_longest),
    };

    return cmocka_run_group_tests_name("sentence", tests, NULL, NULL);
}
