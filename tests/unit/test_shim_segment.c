/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shim/segment.h"

enum { SIZE = 4096 };

/* A segment in memory, and where its next record goes. */
struct made {
    unsigned char bytes[SIZE];
    uint64_t at;
};

static struct myelin_spool_header header_of(uint64_t size) {
    struct myelin_spool_header header = { .magic = MYELIN_SPOOL_MAGIC,
                                          .version = MYELIN_SPOOL_VERSION,
                                          .header_size = MYELIN_SPOOL_HEADER,
                                          .size = size,
                                          .nonce = UINT64_C(0x1234567890abcdef),
                                          .state = MYELIN_SPOOL_OPEN };

    header.checksum = myelin_spool_checksum(0, &header, MYELIN_SPOOL_FIXED);
    return header;
}

static void make(struct made *made) {
    const struct myelin_spool_header header = header_of(SIZE);

    memset(made, 0, sizeof *made);
    memcpy(made->bytes, &header, sizeof header);
    made->at = sizeof header;
}

static void add(struct made *made, unsigned type, const void *payload, size_t n) {
    const uint64_t word = myelin_spool_word(UINT64_C(0x1234567890abcdef), made->at,
                                            myelin_spool_head(type, n), payload);

    memcpy(made->bytes + made->at, &word, sizeof word);
    memcpy(made->bytes + made->at + sizeof word, payload, n);
    made->at += myelin_spool_room(n);
}

static struct segment begin(const struct made *made) {
    struct myelin_spool_header header;
    struct segment segment;

    memcpy(&header, made->bytes, sizeof header);
    assert_true(segment_begin(&segment, &header, SIZE));
    return segment;
}

/* Walks in pieces of that many bytes, each from where the last ended. */
static enum segment_end walk(struct segment *segment, const struct made *made, size_t piece) {
    for (;;) {
        const size_t left = SIZE - (size_t)segment->at;
        const size_t n = left < piece ? left : piece;
        unsigned char *copy = malloc(n ? n : 1); /* so that a sanitizer sees a read beyond it */
        enum segment_end end;

        assert_non_null(copy);
        memcpy(copy, made->bytes + segment->at, n);
        end = segment_walk(segment, copy, n);
        free(copy);
        if (end != SEGMENT_MORE)
            return end;
    }
}

static void records_count_in_whatever_pieces_they_are_read(void **state) {
    static const char text[700] = "of some length";
    struct made made;

    (void)state;
    make(&made);
    for (size_t n = 0; n < 40; n++)
        add(&made, 2, text, n);
    add(&made, 3, text, sizeof text);
    for (size_t piece = 8; piece <= SIZE; piece += 8) {
        struct segment segment = begin(&made);

        assert_int_equal(walk(&segment, &made, piece), SEGMENT_END);
        assert_int_equal(segment.good, made.at);
    }
}

static void a_walk_goes_on_from_where_nothing_was_yet(void **state) {
    struct segment segment;
    struct made made;

    (void)state;
    make(&made);
    segment = begin(&made);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(walk(&segment, &made, 64), SEGMENT_END);
        assert_int_equal(segment.good, made.at);
        add(&made, 1, "\1\0\0\0loss", 8);
    }
}

/* The word is there, and a part of the payload is not seen yet. */
static void a_record_that_is_not_whole_counts_only_once_it_is(void **state) {
    struct segment segment;
    struct made made, whole;
    uint64_t before;

    (void)state;
    make(&made);
    add(&made, 2, "01234567", 8);
    before = made.at;
    add(&made, 2, "0123456789abcdef", 16);
    whole = made;
    memset(made.bytes + made.at - 8, 0, 8);
    segment = begin(&made);
    assert_int_equal(walk(&segment, &made, 16), SEGMENT_BAD);
    assert_int_equal(segment.good, before);
    assert_int_equal(segment.at, before);
    assert_int_equal(walk(&segment, &whole, 16), SEGMENT_END);
    assert_int_equal(segment.good, whole.at);
}

static void a_length_that_leaves_the_segment_is_bad(void **state) {
    const uint64_t word = (uint64_t)myelin_spool_head(2, SIZE) << 32 | 1;
    struct segment segment;
    struct made made;

    (void)state;
    make(&made);
    memcpy(made.bytes + made.at, &word, sizeof word);
    segment = begin(&made);
    assert_int_equal(walk(&segment, &made, SIZE), SEGMENT_BAD);
    assert_int_equal(segment.good, MYELIN_SPOOL_HEADER);
}

static void records_may_fill_a_segment_to_its_end(void **state) {
    static const char text[SIZE];
    struct segment segment;
    struct made made;

    (void)state;
    make(&made);
    add(&made, 3, text, SIZE - MYELIN_SPOOL_HEADER - 8);
    for (size_t piece = 8; piece <= SIZE; piece *= 2) {
        segment = begin(&made);
        assert_int_equal(walk(&segment, &made, piece), SEGMENT_END);
        assert_int_equal(segment.good, SIZE);
    }
}

static void any_byte_that_changes_ends_the_records_before_it(void **state) {
    struct made made;

    (void)state;
    make(&made);
    for (int i = 0; i < 5; i++)
        add(&made, 2, "0123456789abcdef01234567", 24);
    for (uint64_t i = MYELIN_SPOOL_HEADER; i < made.at; i++) {
        struct made bent = made;
        struct segment segment = begin(&made);

        bent.bytes[i] ^= 0x40;
        walk(&segment, &bent, SIZE);
        assert_true(segment.good <= i);
        assert_int_equal((segment.good - MYELIN_SPOOL_HEADER) % 32, 0);
    }
}

static void what_is_no_header_begins_nothing(void **state) {
    const struct myelin_spool_header good = header_of(SIZE);
    struct segment segment;

    (void)state;
    assert_true(segment_begin(&segment, &good, SIZE));
    assert_false(segment_begin(&segment, &good, SIZE - 8)); /* truncated */
    for (size_t i = 0; i < MYELIN_SPOOL_FIXED; i++) {
        struct myelin_spool_header bent;

        memcpy(&bent, &good, sizeof bent);
        ((unsigned char *)&bent)[i] ^= 1;
        assert_false(segment_begin(&segment, &bent, SIZE));
    }
}

static void only_the_names_of_segments_are_names(void **state) {
    static const char *const good[] = { "1-0-000000.spool", "4711-18e87907be038757-1234567.spool" };
    static const char *const bad[] = {
        "",
        ".",
        "1-0-0.spoo",
        "1-0-0.spool2",
        "-0-0.spool",
        "a-0-0.spool",
        "1-g-0.spool",
        "1--0.spool",
        "1-0-.spool",
        "../1-0-0.spool",
        "1-0-0-0.spool",
        "1-00000000000000000000000000000000000000000000000000000000-0.spool",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(segment_is_name(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(segment_is_name(bad[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_count_in_whatever_pieces_they_are_read),
        cmocka_unit_test(a_walk_goes_on_from_where_nothing_was_yet),
        cmocka_unit_test(a_record_that_is_not_whole_counts_only_once_it_is),
        cmocka_unit_test(a_length_that_leaves_the_segment_is_bad),
        cmocka_unit_test(records_may_fill_a_segment_to_its_end),
        cmocka_unit_test(any_byte_that_changes_ends_the_records_before_it),
        cmocka_unit_test(what_is_no_header_begins_nothing),
        cmocka_unit_test(only_the_names_of_segments_are_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
