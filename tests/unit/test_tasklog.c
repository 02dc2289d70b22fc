/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/logindex.h"
#include "supervise/tasklog.h"

struct stage {
    char directory[32];
    struct tasklog_place place;
    struct tasklog log;
};

static int set_up(void **state) {
    struct stage *stage = calloc(1, sizeof *stage);

    snprintf(stage->directory, sizeof stage->directory, "/tmp/test-tasklog-XXXXXX");
    if (!mkdtemp(stage->directory))
        return -1;
    stage->place = (struct tasklog_place){ .directory = stage->directory, .limit = TASKLOG_LIMIT };
    stage->log = (struct tasklog)TASKLOG_INIT;
    *state = stage;
    return 0;
}

static int tear_down(void **state) {
    struct stage *stage = *state;
    static const char *const names[] = { "t.idx", "t.log" };
    char path[64];

    tasklog_close(&stage->log);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", stage->directory, names[i]);
        unlink(path);
    }
    rmdir(stage->directory);
    free(stage);
    return 0;
}

static void write_at(struct stage *stage, int64_t now_us, const char *text) {
    tasklog_write(&stage->log, &stage->place, "t", now_us, text, strlen(text));
}

static void assert_log(const struct stage *stage, const char *text) {
    AUTO(buf) found = BUF_INIT(1 << 24);
    struct error err;
    char path[64];

    snprintf(path, sizeof path, "%s/t.log", stage->directory);
    assert_int_equal(file_read(path, &found, &err), 0);
    assert_string_equal(found.data, text);
}

static void assert_index(const struct stage *stage, const struct logindex_entry *wanted, size_t n) {
    struct logindex_entry entry;
    struct logindex index;

    logindex_open(&index, stage->directory, "t");
    for (size_t i = 0; i < n; i++) {
        assert_true(logindex_get(&index, i, &entry));
        assert_int_equal(entry.time_us, wanted[i].time_us);
        assert_int_equal(entry.offset, wanted[i].offset);
        assert_int_equal(entry.is_gap, wanted[i].is_gap);
    }
    assert_false(logindex_get(&index, n, &entry));
    logindex_close(&index);
}

static void bytes_that_come_together_share_a_time(void **state) {
    struct stage *stage = *state;
    const struct logindex_entry wanted[] = { { 1000, 0, false },
                                             { 1000 + INDEX_EVERY_US, 4, false },
                                             { 9000000, 6, false } };

    write_at(stage, 1000, "a\n");
    write_at(stage, 1000 + INDEX_EVERY_US - 1, "b\n");
    write_at(stage, 1000 + INDEX_EVERY_US, "c\n");
    write_at(stage, 9000000, "d\n");
    assert_log(stage, "a\nb\nc\nd\n");
    assert_index(stage, wanted, ARRAY_LEN(wanted));
}

static void a_flood_has_a_time_for_each_64_kibibytes(void **state) {
    struct stage *stage = *state;
    enum { PIECE = 16 * 1024, PIECES = 64 };
    char *piece = malloc(PIECE);

    memset(piece, 'x', PIECE);
    for (int i = 0; i < PIECES; i++)
        tasklog_write(&stage->log, &stage->place, "t", 1000, piece, PIECE);
    assert_int_equal(stage->log.n_records, PIECE * PIECES / INDEX_EVERY_BYTES);
    free(piece);
}

static void an_index_stays_small_beside_a_slow_log(void **state) {
    struct stage *stage = *state;
    enum { LINES = 40000 };

    for (int i = 0; i < LINES; i++)
        write_at(stage, (int64_t)i * 1000000, "x\n");
    assert_true(stage->log.n_records * LOGINDEX_RECORD <= 64 * 1024 + LINES * 2 / 4 + 16);
    assert_true(stage->log.n_records * LOGINDEX_RECORD >= 64 * 1024);
}

static void beyond_the_limit_bytes_are_counted_and_the_end_is_marked(void **state) {
    struct stage *stage = *state;
    const struct logindex_entry wanted[] = { { 1000, 0, false }, { 7, 5, true } };

    stage->place.limit = 5;
    write_at(stage, 1000, "abc");
    write_at(stage, 2000, "defg");
    write_at(stage, 3000, "hijkl");
    assert_int_equal(stage->log.kept, 5);
    assert_int_equal(stage->log.lost, 7);
    assert_int_equal(stage->log.errnum, EFBIG);
    tasklog_close(&stage->log);
    assert_log(stage, "abcde");
    assert_index(stage, wanted, ARRAY_LEN(wanted));
}

/* A limit on the size of files stands for a full disk: the write fails, and later does not. */
static void set_room(rlim_t bytes) {
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_leaves_a_marked_gap_and_writing_resumes(void **state) {
    struct stage *stage = *state;
    static char many[201];
    const struct logindex_entry wanted[] = { { 1000, 0, false },
                                             { 5 * 200 - 94, 100, true },
                                             { 90000, 100, false } };

    memset(many, 'x', sizeof many - 1);
    signal(SIGXFSZ, SIG_IGN);
    write_at(stage, 1000, "start ");
    set_room(100);
    write_at(stage, 2000, many); /* 94 fit */
    for (int i = 0; i < 3; i++)
        write_at(stage, 3000 + i, many);
    write_at(stage, 50000, many);
    assert_int_equal(stage->log.kept, 100);
    assert_int_equal(stage->log.lost, 5 * 200 - 94);
    set_room(RLIM_INFINITY);
    write_at(stage, 90000, "back\n");
    assert_index(stage, wanted, ARRAY_LEN(wanted));
    assert_int_equal(stage->log.kept, 105);
    assert_int_equal(stage->log.gap, 0);
}

static void a_directory_that_is_not_there_loses_bytes_and_nothing_else(void **state) {
    struct stage *stage = *state;

    stage->place.directory = "/nonexistent/logs";
    write_at(stage, 1000, "abc");
    assert_int_equal(stage->log.lost, 3);
    assert_int_equal(stage->log.errnum, ENOENT);
}

/* ---- what is kept in memory ---- */

static void assert_tail(const struct stage *stage, const char *text) {
    AUTO(buf) found = BUF_INIT(TAIL_MOST);

    tasklog_tail(&stage->log, stage->directory, "t", &found);
    assert_string_equal(found.data, text);
}

static void what_the_disk_does_not_take_is_kept_in_memory_until_it_does_again(void **state) {
    struct stage *stage = *state;

    signal(SIGXFSZ, SIG_IGN);
    write_at(stage, 1000, "start ");
    set_room(8);
    write_at(stage, 2000, "lost");
    write_at(stage, 3000, "more");
    assert_int_equal(stage->log.lost, 6);
    assert_tail(stage, "start lostmore");
    assert_false(tasklog_lost_tail(&stage->log));
    tasklog_end(&stage->log);
    assert_tail(stage, "start lostmore");
    set_room(RLIM_INFINITY);
    write_at(stage, 4000, " end");
    assert_null(stage->log.tail);
    assert_tail(stage, "start lo end");
}

static void a_tail_in_memory_is_the_last_64_kibibytes_and_leaves_no_room_for_the_log(void **state) {
    struct stage *stage = *state;
    static char many[TAIL_MOST + 1];

    memset(many, 'x', sizeof many - 1);
    stage->place.limit = 3;
    write_at(stage, 1000, "abc");
    write_at(stage, 2000, many);
    assert_tail(stage, many);
    write_at(stage, 3000, "y");
    memmove(many, many + 1, TAIL_MOST - 1);
    many[TAIL_MOST - 1] = 'y';
    assert_tail(stage, many);
}

static void a_log_that_is_removed_begins_again_and_its_bytes_are_counted(void **state) {
    struct stage *stage = *state;
    const struct logindex_entry wanted[] = { { 4, 0, true }, { 9000000, 0, false } };
    char path[64];

    write_at(stage, 1000, "abc\n");
    snprintf(path, sizeof path, "%s/t.log", stage->directory);
    assert_int_equal(unlink(path), 0);
    assert_tail(stage, "abc\n");
    write_at(stage, 9000000, "d\n");
    assert_log(stage, "d\n");
    assert_int_equal(stage->log.lost, 4);
    assert_index(stage, wanted, ARRAY_LEN(wanted));
}

static void a_directory_of_logs_that_is_removed_is_made_again(void **state) {
    struct stage *stage = *state;

    assert_int_equal(rmdir(stage->directory), 0);
    write_at(stage, 1000, "abc");
    assert_log(stage, "abc");
}

static void something_else_in_the_place_of_a_log_is_never_waited_for(void **state) {
    struct stage *stage = *state;
    char path[64];

    snprintf(path, sizeof path, "%s/t.log", stage->directory);
    for (int kind = 0; kind < 3; kind++) {
        assert_int_equal(kind == 0   ? mkfifo(path, 0600)
                         : kind == 1 ? mkdir(path, 0700)
                                     : symlink("/dev/zero", path),
                         0);
        write_at(stage, 1000, "abc");
        assert_int_equal(stage->log.kept, 0);
        assert_tail(stage, "abc");
        assert_int_equal(kind == 1 ? rmdir(path) : unlink(path), 0);
        tasklog_close(&stage->log);
        stage->log = (struct tasklog)TASKLOG_INIT;
    }
}

static void the_clock_of_logs_never_steps_back(void **state) {
    const int64_t origin = tasklog_origin();
    int64_t before = tasklog_now(origin);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        const int64_t now = tasklog_now(origin);

        assert_true(now >= before);
        before = now;
    }
}

#define LAW(law) cmocka_unit_test_setup_teardown(law, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        LAW(bytes_that_come_together_share_a_time),
        LAW(a_flood_has_a_time_for_each_64_kibibytes),
        LAW(an_index_stays_small_beside_a_slow_log),
        LAW(beyond_the_limit_bytes_are_counted_and_the_end_is_marked),
        LAW(a_full_disk_leaves_a_marked_gap_and_writing_resumes),
        LAW(a_directory_that_is_not_there_loses_bytes_and_nothing_else),
        LAW(what_the_disk_does_not_take_is_kept_in_memory_until_it_does_again),
        LAW(a_tail_in_memory_is_the_last_64_kibibytes_and_leaves_no_room_for_the_log),
        LAW(a_log_that_is_removed_begins_again_and_its_bytes_are_counted),
        LAW(a_directory_of_logs_that_is_removed_is_made_again),
        LAW(something_else_in_the_place_of_a_log_is_never_waited_for),
        LAW(the_clock_of_logs_never_steps_back),
    };

    return cmocka_run_group_tests_name("tasklog", tests, NULL, NULL);
}
