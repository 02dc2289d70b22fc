/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json_read.h"
#include "each_home.h"
#include "store/journal.h"
#include "store/record.h"

static void write_notice(struct journal *journal, const char *message) {
    struct json *json = journal_begin(journal, "notice");

    json_key(json, "message");
    json_text(json, message);
    journal_end(journal, JOURNAL_SOON);
}

static void read_text(const struct rundir *rundir, struct buf *text) {
    char path[256];
    struct error err;

    snprintf(path, sizeof path, "%s/events.jsonl", rundir->path);
    buf_clear(text);
    assert_int_equal(file_read(path, text, &err), 0);
}

static void append_raw(const struct rundir *rundir, const char *bytes) {
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/events.jsonl", rundir->path);
    file = fopen(path, "ae");
    assert_non_null(file);
    assert_true(fputs(bytes, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Reads each line, and asserts that `seq` counts and `elapsed` never goes back. */
static size_t assert_in_order(const struct buf *text) {
    AUTO(arena) arena = ARENA_INIT;
    double last = 0;
    size_t n = 0;

    for (const char *line = text->data; *line; n++) {
        size_t len = strcspn(line, "\n");
        const struct node *seq, *elapsed;
        struct node node;
        struct error err;
        double now;

        assert_int_equal(line[len], '\n');
        assert_int_equal(json_read(line, len, &arena, &node, &err), 0);
        seq = node_get(&node, "seq");
        elapsed = node_get(&node, "elapsed");
        assert_true(seq && seq->kind == NODE_INT && seq->integer == (int64_t)n + 1);
        assert_true(elapsed && (elapsed->kind == NODE_FLOAT || elapsed->kind == NODE_INT));
        now = elapsed->kind == NODE_FLOAT ? elapsed->number : (double)elapsed->integer;
        assert_true(now >= last);
        last = now;
        line += len + 1;
    }
    return n;
}

static void lines_count_from_one_and_time_does_not_go_back(void **state) {
    struct rundir rundir = home_run(&home);
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct journal journal;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 4, &err), 0);
    for (int i = 0; i < 10; i++)
        write_notice(&journal, "a\nb\"c");
    journal_close(&journal);
    read_text(&rundir, &text);
    assert_int_equal(assert_in_order(&text), 10);
}

static void one_that_is_reopened_counts_on(void **state) {
    struct rundir rundir = home_run(&home);
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct run_record record;
    struct journal journal;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    journal.started_us -= 5900000; /* as if it had begun before */
    write_notice(&journal, "before");
    journal_close(&journal);
    assert_int_equal(record_read(&record, &rundir, &err), 0);
    assert_true(record.elapsed_s > 5.5);
    assert_int_equal(journal_reopen(&journal, &rundir, record.seq, record.elapsed_s, &err), 0);
    write_notice(&journal, "after");
    journal_close(&journal);
    record_release(&record);
    read_text(&rundir, &text);
    assert_int_equal(assert_in_order(&text), 2);
}

static void a_cut_line_costs_only_itself(void **state) {
    struct rundir rundir = home_run(&home);
    struct run_record record;
    struct journal journal;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    write_notice(&journal, "before");
    journal_close(&journal);
    append_raw(&rundir, "{\"seq\": 2, \"time\": \"20");
    assert_int_equal(record_read(&record, &rundir, &err), 0);
    assert_true(record.seq == 1 && record.bad_lines == 0);
    record_release(&record);
    assert_int_equal(journal_reopen(&journal, &rundir, 1, 0, &err), 0);
    write_notice(&journal, "after");
    journal_close(&journal);
    assert_int_equal(record_read(&record, &rundir, &err), 0);
    assert_true(record.seq == 2 && record.bad_lines == 1);
    record_release(&record);
}

static void what_the_disk_does_not_take_is_counted_and_the_next_line_is_whole(void **state) {
    struct rlimit before, small = { 0 };
    struct rundir rundir = home_run(&home);
    struct run_record record;
    struct journal journal;
    struct error err;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    write_notice(&journal, "first");
    small = (struct rlimit){ (rlim_t)lseek(journal.fd, 0, SEEK_END) + 20, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    write_notice(&journal, "cut");
    assert_int_equal(journal.lost, 1);
    write_notice(&journal, "refused");
    assert_int_equal(journal.lost, 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    write_notice(&journal, "last");
    assert_true(journal.lost == 2 && journal.too_long == 0);
    journal_close(&journal);
    assert_int_equal(record_read(&record, &rundir, &err), 0);
    assert_true(record.seq == 4 && record.bad_lines == 1);
    record_release(&record);
}

/* Gathers three lines, of which the disk takes the first and `more` bytes, and writes another when
 * there is room again. Returns how many were lost. */
static uint64_t write_on_a_small_disk(const struct rundir *rundir, rlim_t more) {
    struct rlimit before, small;
    struct journal journal;
    struct error err;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(journal_create(&journal, rundir, 1, &err), 0);
    for (int i = 0; i < 3; i++) {
        struct json *json = journal_begin(&journal, "notice");

        json_key(json, "message");
        json_text(json, "gathered");
        journal_end(&journal, JOURNAL_GATHERED);
    }
    small = (struct rlimit){ strcspn(journal.waiting.data, "\n") + 1 + more, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    journal_flush(&journal);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    write_notice(&journal, "last");
    journal_close(&journal);
    return journal.lost;
}

static void of_lines_that_are_written_together_those_that_are_whole_are_not_lost(void **state) {
    static const rlim_t more[] = { 0, 1, 20 }; /* at the end of a line, and within the next */

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        struct rundir rundir = home_run(&home);
        struct run_record record;
        struct error err;

        assert_int_equal(write_on_a_small_disk(&rundir, more[i]), 2);
        assert_int_equal(record_read(&record, &rundir, &err), 0);
        assert_int_equal(record.seq, 4);
        assert_int_equal(record.bad_lines, more[i] > 0);
        record_release(&record);
    }
}

static void count_writes(void *context) {
    ++*(int *)context;
}

static void gathered_lines_are_written_together_and_in_order(void **state) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct rundir rundir = home_run(&home);
    struct journal journal;
    struct error err;
    int n_writes = 0;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    journal.written = count_writes;
    journal.context = &n_writes;
    for (int i = 0; i < 10; i++) {
        journal_begin(&journal, "task");
        journal_end(&journal, JOURNAL_GATHERED);
    }
    read_text(&rundir, &text);
    assert_int_equal(text.len, 0);
    write_notice(&journal, "one that does not wait");
    read_text(&rundir, &text);
    assert_int_equal(n_writes, 1);
    assert_non_null(strstr(text.data, "\"seq\": 10,"));
    assert_true(strstr(text.data, "\"seq\": 10,") < strstr(text.data, "\"seq\": 11,"));
    journal_begin(&journal, "task");
    journal_end(&journal, JOURNAL_GATHERED);
    journal_close(&journal);
    read_text(&rundir, &text);
    assert_non_null(strstr(text.data, "\"seq\": 12,"));
    assert_int_equal(n_writes, 2);
}

static void gathering_is_bounded(void **state) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct rundir rundir = home_run(&home);
    struct journal journal;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    for (int i = 0; i < 2000; i++) {
        journal_begin(&journal, "task");
        journal_end(&journal, JOURNAL_GATHERED);
    }
    read_text(&rundir, &text);
    assert_true(text.len > 0);
    journal_close(&journal);
    assert_int_equal(journal.lost, 0);
}

/* ---- a disk that is full, or cannot reserve ---- */

static int reserve_error;   /* what fallocate fails with; 0: it is the system's */
static uint64_t free_bytes; /* that the disk says it has, while fallocate fails */

/* In the place of libc's, by the name that this file is compiled for. */
int fallocate(int fd, int mode, off_t offset, off_t n) {
    if (!reserve_error)
        return (int)syscall(SYS_fallocate, fd, mode, offset, n);
    errno = reserve_error;
    return -1;
}

int fstatvfs(int fd, struct statvfs *out) {
    (void)fd;
    *out = (struct statvfs){ .f_blocks = 1 << 20, .f_frsize = 1, .f_bavail = free_bytes };
    return 0;
}

static bool write_spare(struct journal *journal, size_t n) {
    struct json *json = journal_begin(journal, "tracked");
    char *text = calloc(1, n + 1);

    memset(text, 'x', n);
    json_key(json, "values");
    json_text(json, text);
    free(text);
    return journal_end(journal, JOURNAL_SPARE);
}

static void a_spare_line_never_takes_the_room_of_the_end(void **state) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct rundir rundir = home_run(&home);
    struct journal journal;
    struct stat now;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    write_notice(&journal, "first");
    for (int i = 0; i < 20; i++)
        assert_true(write_spare(&journal, 10000));
    assert_int_equal(fstat(journal.fd, &now), 0);
    assert_true(now.st_blocks * 512 >= now.st_size + 32 * 1024 - 1000);
    reserve_error = ENOSPC;
    assert_false(write_spare(&journal, 10));
    assert_int_equal(journal.lost, 0);
    write_notice(&journal, "the end");
    reserve_error = 0;
    assert_true(write_spare(&journal, 10));
    journal_close(&journal);
    read_text(&rundir, &text);
    assert_int_equal(assert_in_order(&text), 23);
}

static void a_disk_that_cannot_reserve_is_asked_for_its_room(void **state) {
    struct rundir rundir = home_run(&home);
    struct journal journal;
    struct error err;

    (void)state;
    reserve_error = EOPNOTSUPP;
    free_bytes = 32 * 1024 - 1;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), -1);
    assert_non_null(strstr(err.message, "No space left"));
    assert_int_equal(unlink(rundir.journal), 0);
    free_bytes = 34 * 1024;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    assert_true(write_spare(&journal, 10));
    assert_false(write_spare(&journal, 2000));
    journal_close(&journal);
    reserve_error = 0;
}

static void a_second_journal_of_one_run_is_refused(void **state) {
    struct rundir rundir = home_run(&home);
    struct journal journal, second;
    struct error err;

    (void)state;
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    assert_int_equal(journal_create(&second, &rundir, 1, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    journal_close(&journal);
}

static void a_line_beyond_the_limit_is_lost_whole(void **state) {
    struct rundir rundir = home_run(&home);
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct journal journal;
    char *large = malloc(1 << 20);
    struct error err;

    (void)state;
    assert_non_null(large);
    memset(large, 'x', (1 << 20) - 1);
    large[(1 << 20) - 1] = '\0';
    assert_int_equal(journal_create(&journal, &rundir, 1, &err), 0);
    write_notice(&journal, large);
    assert_true(journal.lost == 1 && journal.too_long == 1);
    journal_close(&journal);
    read_text(&rundir, &text);
    assert_int_equal(text.len, 0);
    free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_count_from_one_and_time_does_not_go_back),
        cmocka_unit_test(one_that_is_reopened_counts_on),
        cmocka_unit_test(a_cut_line_costs_only_itself),
        cmocka_unit_test(what_the_disk_does_not_take_is_counted_and_the_next_line_is_whole),
        cmocka_unit_test(of_lines_that_are_written_together_those_that_are_whole_are_not_lost),
        cmocka_unit_test(gathered_lines_are_written_together_and_in_order),
        cmocka_unit_test(gathering_is_bounded),
        cmocka_unit_test(a_spare_line_never_takes_the_room_of_the_end),
        cmocka_unit_test(a_disk_that_cannot_reserve_is_asked_for_its_room),
        cmocka_unit_test(a_second_journal_of_one_run_is_refused),
        cmocka_unit_test(a_line_beyond_the_limit_is_lost_whole),
    };

    return cmocka_run_group_tests_name("journal", tests, make_home, release_home);
}
