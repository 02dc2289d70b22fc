/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "cli/logread.h"
#include "store/logindex.h"

static char directory[] = "/tmp/test-logindex-XXXXXX";

static int make_directory(void **unused) {
    (void)unused;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **unused) {
    static const char *const names[] = { "t.idx", "t.log" };
    char path[128];

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}

static void write_file(const char *name, const void *bytes, size_t n) {
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void write_index(const struct logindex_entry *entries, size_t n, size_t cut) {
    unsigned char *bytes = malloc(n * LOGINDEX_RECORD);

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        logindex_encode(&entries[i], bytes + i * LOGINDEX_RECORD);
    write_file("t.idx", bytes, n * LOGINDEX_RECORD - cut);
    free(bytes);
}

static void a_record_is_sixteen_bytes_low_ones_first(void **unused) {
    const struct logindex_entry time = { .time_us = 0x0102030405060708, .offset = 0x1122 };
    const struct logindex_entry gap = { .time_us = 5, .offset = 3, .is_gap = true };
    static const unsigned char time_bytes[] = {
        8, 7, 6, 5, 4, 3, 2, 1, 0x22, 0x11, 0, 0, 0, 0, 0, 0
    };
    static const unsigned char gap_bytes[] = { 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x80 };
    unsigned char out[LOGINDEX_RECORD];

    (void)unused;
    logindex_encode(&time, out);
    assert_memory_equal(out, time_bytes, sizeof out);
    logindex_encode(&gap, out);
    assert_memory_equal(out, gap_bytes, sizeof out);
    assert_true(logindex_decode(out).is_gap);
    assert_int_equal(logindex_decode(out).offset, 3);
}

/* Against a search from one end to the other, over indexes of many sizes, with gaps. */
static void searches_find_what_a_walk_finds(void **unused) {
    (void)unused;
    for (size_t n = 0; n < 1200; n = n * 2 + 1) {
        struct logindex_entry *entries = calloc(n + 1, sizeof *entries);
        struct logindex index;
        int64_t time = 1000;
        uint64_t offset = 0;

        for (size_t i = 0; i < n; i++) {
            entries[i].is_gap = i % 7 == 3;
            time += (int64_t)(i % 3) * 10; /* some are equal */
            offset += i % 2 * 5;
            entries[i].time_us = entries[i].is_gap ? 99 : time;
            entries[i].offset = offset;
        }
        write_index(entries, n, 0);
        logindex_open(&index, directory, "t");
        for (int64_t wanted = 990; wanted < time + 20; wanted += 5) {
            size_t i = 0;

            while (i < n && (entries[i].is_gap || entries[i].time_us < wanted))
                i++;
            assert_int_equal(logindex_find_time(&index, wanted), i);
        }
        for (uint64_t wanted = 0; wanted < offset + 7; wanted++) {
            size_t expected = n;
            uint64_t found = n;

            for (size_t i = 0; i < n; i++)
                if (!entries[i].is_gap && entries[i].offset <= wanted)
                    expected = i;
            assert_int_equal(logindex_find_offset(&index, wanted, &found), expected < n);
            assert_int_equal(found, expected);
        }
        logindex_close(&index);
        free(entries);
    }
}

static void a_cut_last_record_is_none(void **unused) {
    const struct logindex_entry entries[] = { { 10, 0, false }, { 20, 4, false } };
    struct logindex_entry entry;
    struct logindex index;

    (void)unused;
    write_index(entries, 2, 7);
    logindex_open(&index, directory, "t");
    assert_true(logindex_get(&index, 0, &entry));
    assert_int_equal(entry.time_us, 10);
    assert_false(logindex_get(&index, 1, &entry));
    assert_int_equal(logindex_find_time(&index, 15), 1);
    logindex_close(&index);
}

static void without_an_index_there_is_no_record(void **unused) {
    struct logindex_entry entry;
    struct logindex index;
    uint64_t i;

    (void)unused;
    logindex_open(&index, directory, "missing");
    assert_false(logindex_get(&index, 0, &entry));
    assert_int_equal(logindex_find_time(&index, 0), 0);
    assert_false(logindex_find_offset(&index, 0, &i));
    logindex_close(&index);
}

/* A directory has a size, and no bytes that can be read. */
static void an_index_that_cannot_be_read_has_no_record(void **unused) {
    struct logindex_entry entry;
    struct logindex index;
    char path[128];
    uint64_t found;

    (void)unused;
    snprintf(path, sizeof path, "%s/dir.idx", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    logindex_open(&index, directory, "dir");
    assert_false(logindex_get(&index, 0, &entry));
    assert_int_equal(logindex_find_time(&index, 5), index.n);
    assert_false(logindex_find_offset(&index, 5, &found));
    logindex_close(&index);
    assert_int_equal(rmdir(path), 0);
}

/* ---- reading a log by its index ---- */

static void pieces_carry_their_times_and_gaps(void **unused) {
    const struct logindex_entry entries[] = {
        { 10, 0, false }, { 20, 4, false }, { 777, 6, true }, { 30, 6, false }, { 5, 8, true }
    };
    static const struct {
        int64_t time_us;
        const char *bytes;
        uint64_t lost;
    } wanted[] = { { 10, "aaa\n", 0 }, { 20, "b\n", 0 }, { 20, "", 777 }, { 30, "c\n", 0 } };
    struct log_piece piece;
    struct logread log;
    char bytes[64];

    (void)unused;
    write_file("t.log", "aaa\nb\nc\n", 8);
    write_index(entries, ARRAY_LEN(entries), 0);
    logread_init(&log, directory, "t", LOGREAD_TIMES);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_true(logread_next(&log, bytes, sizeof bytes, &piece));
        assert_int_equal(piece.n, strlen(wanted[i].bytes));
        assert_memory_equal(bytes, wanted[i].bytes, piece.n);
        assert_int_equal(piece.time_us, wanted[i].time_us);
        assert_int_equal(piece.lost, wanted[i].lost);
    }
    /* The last gap may still grow, as long as the task lives. */
    assert_false(logread_next(&log, bytes, sizeof bytes, &piece));
    log.is_over = true;
    assert_true(logread_next(&log, bytes, sizeof bytes, &piece));
    assert_int_equal(piece.lost, 5);
    assert_false(logread_next(&log, bytes, sizeof bytes, &piece));
    logread_release(&log);
}

static void where_times_do_not_matter_only_gaps_part_the_bytes(void **unused) {
    struct log_piece piece;
    struct logread log;
    char bytes[64];

    (void)unused;
    logread_init(&log, directory, "t", LOGREAD_BYTES); /* the files of the test before */
    assert_true(logread_next(&log, bytes, sizeof bytes, &piece));
    assert_int_equal(piece.n, 6);
    assert_true(logread_next(&log, bytes, sizeof bytes, &piece));
    assert_int_equal(piece.lost, 777);
    assert_true(logread_next(&log, bytes, sizeof bytes, &piece));
    assert_int_equal(piece.n, 2);
    logread_release(&log);
}

static uint64_t tail_offset(uint64_t n_lines) {
    struct logread log;
    uint64_t offset;

    logread_init(&log, directory, "t", LOGREAD_BYTES);
    logread_skip_to_tail(&log, n_lines);
    offset = log.offset;
    logread_release(&log);
    return offset;
}

static void a_tail_has_that_many_lines(void **unused) {
    (void)unused;
    write_file("t.log", "a\nbb\n\nccc\nd", 11);
    assert_int_equal(tail_offset(0), 11);
    assert_int_equal(tail_offset(1), 10);
    assert_int_equal(tail_offset(2), 6);
    assert_int_equal(tail_offset(3), 5);
    assert_int_equal(tail_offset(5), 0);
    assert_int_equal(tail_offset(1000), 0);
    write_file("t.log", "a\nb\n", 4);
    assert_int_equal(tail_offset(1), 2);
    assert_int_equal(tail_offset(2), 0);
}

static void a_tail_is_found_behind_a_megabyte_without_line_end(void **unused) {
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);

    (void)unused;
    assert_non_null(text);
    memset(text, 'x', SIZE);
    text[100] = '\n';
    write_file("t.log", text, SIZE);
    assert_int_equal(tail_offset(1), 101);
    free(text);
}

static void a_time_is_found_at_the_start_of_a_line(void **unused) {
    const struct logindex_entry entries[] = { { 10, 0, false },
                                              { 20, 3, false },
                                              { 30, 6, false } };
    static const struct {
        int64_t time_us;
        uint64_t offset;
    } rows[] = { { 5, 0 }, { 10, 0 }, { 11, 6 }, { 20, 6 }, { 25, 6 }, { 30, 6 }, { 31, 8 } };

    (void)unused;
    write_file("t.log", "abcde\nf\n", 8); /* at 20 a line goes on that began at 10 */
    write_index(entries, ARRAY_LEN(entries), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct logread log;

        logread_init(&log, directory, "t", LOGREAD_TIMES);
        logread_skip_to_time(&log, rows[i].time_us);
        assert_int_equal(log.offset, rows[i].offset);
        logread_release(&log);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_sixteen_bytes_low_ones_first),
        cmocka_unit_test(searches_find_what_a_walk_finds),
        cmocka_unit_test(a_cut_last_record_is_none),
        cmocka_unit_test(without_an_index_there_is_no_record),
        cmocka_unit_test(an_index_that_cannot_be_read_has_no_record),
        cmocka_unit_test(pieces_carry_their_times_and_gaps),
        cmocka_unit_test(where_times_do_not_matter_only_gaps_part_the_bytes),
        cmocka_unit_test(a_tail_has_that_many_lines),
        cmocka_unit_test(a_tail_is_found_behind_a_megabyte_without_line_end),
        cmocka_unit_test(a_time_is_found_at_the_start_of_a_line),
    };

    return cmocka_run_group_tests_name("logindex", tests, make_directory, remove_directory);
}
