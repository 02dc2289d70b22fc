/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <event2/event.h>
#include <sys/stat.h>

#include "base/file.h"
#include "home.h"
#include "store/owner.h"
#include "store/presence.h"
#include "supervise/run_guard.h"

struct stage {
    struct home home;
    struct rundir rundir;
    struct journal journal;
    int lock, directory;
    struct event_base *base;
    struct run_guard *guard;
    int n_notices, n_gone;
};

static void on_notice(void *context, const char *sentence) {
    struct stage *stage = context;

    assert_non_null(strstr(sentence, "put back"));
    stage->n_notices++;
}

static void on_gone(void *context, const char *sentence) {
    struct stage *stage = context;

    assert_non_null(strstr(sentence, stage->rundir.path));
    stage->n_gone++;
}

static void write_line(struct stage *stage, const char *event) {
    journal_begin(&stage->journal, event);
    journal_end(&stage->journal, JOURNAL_SOON);
}

static int set_up(void **state) {
    static struct stage stage;
    struct error err;

    stage = (struct stage){ 0 };
    home_make(&stage.home);
    stage.rundir = home_run(&stage.home);
    assert_int_equal(owner_take(&stage.rundir, &stage.lock, &err), 0);
    assert_int_equal(journal_create(&stage.journal, &stage.rundir, 1, &err), 0);
    stage.directory = presence_hold(&stage.rundir);
    stage.base = event_base_new();
    stage.guard =
        run_guard_new(stage.base, &(struct run_guard_options){ .rundir = &stage.rundir,
                                                               .journal = &stage.journal,
                                                               .lock = &stage.lock,
                                                               .directory = stage.directory,
                                                               .announced = 4711,
                                                               .notice = on_notice,
                                                               .gone = on_gone,
                                                               .context = &stage });
    *state = &stage;
    return 0;
}

static int tear_down(void **state) {
    struct stage *stage = *state;

    run_guard_free(stage->guard);
    event_base_free(stage->base);
    journal_close(&stage->journal);
    close(stage->lock);
    close(stage->directory);
    home_release(&stage->home);
    return 0;
}

static uint64_t count_lines(const struct stage *stage) {
    AUTO(buf) text = BUF_INIT(1 << 20);
    struct error err;
    const char *line;
    size_t at = 0, n;
    uint64_t lines = 0;

    assert_int_equal(journal_load(&stage->rundir, &text, &err), 0);
    while (journal_next(&text, &at, &line, &n))
        lines++;
    return lines;
}

static void a_run_in_order_is_left_alone(void **state) {
    struct stage *stage = *state;
    struct stat before, after;

    write_line(stage, "one");
    assert_int_equal(stat(stage->rundir.journal, &before), 0);
    run_guard_look(stage->guard);
    assert_int_equal(stat(stage->rundir.journal, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(stage->n_notices, 0);
    assert_int_equal(stage->n_gone, 0);
}

enum { NOTHING, FIFO, DIRECTORY, FULL_DIRECTORY, LINK, OTHER_FILE, KINDS };

static void put_in_place(const char *path, int kind) {
    char below[256];

    snprintf(below, sizeof below, "%s/below", path);
    unlink(path);
    assert_int_equal(kind == FIFO                                  ? mkfifo(path, 0600)
                     : kind == DIRECTORY || kind == FULL_DIRECTORY ? mkdir(path, 0700)
                     : kind == LINK                                ? symlink("/dev/zero", path)
                     : kind == OTHER_FILE                          ? mknod(path, S_IFREG, 0)
                                                                   : 0,
                     0);
    if (kind == FULL_DIRECTORY)
        assert_int_equal(mkdir(below, 0700), 0);
}

static void whatever_is_in_the_place_of_the_journal_no_line_is_lost(void **state) {
    struct stage *stage = *state;
    uint64_t lines = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        write_line(stage, "before");
        put_in_place(stage->rundir.journal, kind);
        write_line(stage, "meanwhile");
        run_guard_look(stage->guard);
        write_line(stage, "after");
        lines += 3;
        assert_int_equal(count_lines(stage), lines);
    }
    assert_int_equal(stage->n_notices, 1);
}

static void whatever_is_in_the_place_of_the_lock_it_is_put_back(void **state) {
    struct stage *stage = *state;
    char path[256];
    pid_t pid;

    snprintf(path, sizeof path, "%s/lock", stage->rundir.path);
    for (int kind = 0; kind < KINDS; kind++) {
        put_in_place(path, kind);
        run_guard_look(stage->guard);
        assert_true(owner_lives(&stage->rundir, &pid));
        assert_int_equal(pid, 4711);
    }
    assert_int_equal(stage->n_notices, 1);
}

static void a_directory_that_is_gone_is_told_once_and_nothing_is_put_back(void **state) {
    struct stage *stage = *state;
    struct stat st;

    rundir_remove(&stage->rundir);
    run_guard_look(stage->guard);
    run_guard_look(stage->guard);
    assert_int_equal(stage->n_gone, 1);
    assert_int_equal(stage->n_notices, 0);
    assert_int_equal(stat(stage->rundir.path, &st), -1);
    assert_int_equal(mkdir(stage->rundir.path, 0700), 0); /* another in its place is not the run */
    run_guard_look(stage->guard);
    assert_int_equal(stat(stage->rundir.journal, &st), -1);
}

static void a_journal_that_is_missing_is_saved_and_another_is_left_alone(void **state) {
    struct stage *stage = *state;

    write_line(stage, "one");
    unlink(stage->rundir.journal);
    run_guard_save_journal(&stage->rundir, &stage->journal);
    assert_int_equal(count_lines(stage), 1);
    put_in_place(stage->rundir.journal, OTHER_FILE);
    run_guard_save_journal(&stage->rundir, &stage->journal);
    assert_int_equal(count_lines(stage), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(a_run_in_order_is_left_alone),
        CASE(whatever_is_in_the_place_of_the_journal_no_line_is_lost),
        CASE(whatever_is_in_the_place_of_the_lock_it_is_put_back),
        CASE(a_directory_that_is_gone_is_told_once_and_nothing_is_put_back),
        CASE(a_journal_that_is_missing_is_saved_and_another_is_left_alone),
    };

    return cmocka_run_group_tests_name("run_guard", tests, NULL, NULL);
}
