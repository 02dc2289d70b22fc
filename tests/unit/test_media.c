/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "home.h"
#include "myelin.h"
#include "store/media.h"

static void a_path_says_name_step_rank_attempt_and_kind(void **state) {
    static const struct {
        const char *path;
        size_t name_length;
        struct media media;
    } rows[] = {
        { "media/a/000000400-0.png", 1, { .step = 400, .kind = MEDIA_IMAGE } },
        { "media/val/x/7-12-3.txt",
          5,
          { .step = 7, .rank = 12, .attempt = 3, .kind = MEDIA_TEXT } },
        { "media/a/-5-0.jpeg", 1, { .step = -5, .kind = MEDIA_IMAGE } },
        { "media/9-9.png/9223372036854775807-4294967295.svg",
          7,
          { .step = INT64_MAX, .rank = UINT32_MAX, .kind = MEDIA_IMAGE } },
    };
    struct media media;
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(media_parse(rows[i].path, &media, &n));
        assert_int_equal(n, rows[i].name_length);
        assert_int_equal(media.step, rows[i].media.step);
        assert_int_equal(media.rank, rows[i].media.rank);
        assert_int_equal(media.attempt, rows[i].media.attempt);
        assert_int_equal(media.kind, rows[i].media.kind);
    }
}

static void whatever_else_lies_there_is_no_media(void **state) {
    static const char *const paths[] = {
        "",
        "media",
        "media/",
        "media/1-0.png", /* without a name */
        "media//1-0.png",
        "model/a/1-0.png",
        "media/a/1.png",
        "media/a/-0.png",
        "media/a/1-.png",
        "media/a/1--0.png",
        "media/a/1-+0.png",
        "media/a/ 1-0.png",
        "media/a/+1-0.png",
        "media/a/1-0-.png",
        "media/a/1-0-0-0.png",
        "media/a/1-0.exe",
        "media/a/1-0.png ",
        "media/a/1-0",
        "media/a/.part-1-0.png",
        "media/a/9223372036854775808-0.png",
        "media/a/1-4294967296.png",
        "media/a/1-0-4294967296.png",
    };
    struct media media;
    size_t n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (media_parse(paths[i], &media, &n))
            fail_msg("'%s' is taken", paths[i]);
}

/* ---- what libmyelin writes ---- */

struct stage {
    struct home home;
    struct rundir rundir;
    struct myelin *m;
};

static void stage_make(struct stage *stage, uint32_t attempt) {
    home_make(&stage->home);
    stage->rundir = home_run(&stage->home);
    mkdir(stage->rundir.spool, 0700);
    setenv("MYELIN_OUTPUTS_PATH", stage->rundir.outputs, 1);
    setenv("MYELIN_RANK", "3", 1);
    stage->m = myelin_open_at(stage->rundir.spool, attempt);
}

static void stage_release(struct stage *stage) {
    myelin_close(stage->m);
    home_release(&stage->home);
}

static struct media_list stage_read(struct stage *stage) {
    struct media_list list;
    struct error err;

    if (media_read(&stage->rundir, NULL, 0, &stage->home.arena, &list, &err))
        fail_msg("%s", err.message);
    return list;
}

static void what_c_programs_log_is_read_again(void **state) {
    struct media_list list;
    struct stage stage;

    (void)state;
    stage_make(&stage, 2);
    assert_int_equal(myelin_log_file(stage.m, "val/x", "png", "abc", 3, -7), 0);
    assert_int_equal(myelin_log_file(stage.m, "note", "txt", "first", 5, 9), 0);
    assert_int_equal(myelin_log_file(stage.m, "note", "txt", "second", 6, 9), 0);
    list = stage_read(&stage);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.items[0].name, "note");
    assert_int_equal(list.items[0].step, 9);
    assert_int_equal(list.items[0].rank, 3);
    assert_int_equal(list.items[0].attempt, 2);
    assert_string_equal(media_excerpt(&stage.rundir, &list.items[0], 3, &stage.home.arena), "sec");
    assert_string_equal(list.items[1].path, "media/val/x/-00000007-3-2.png");
    assert_int_equal(list.items[1].size, 3);
    assert_int_equal(myelin_dropped(stage.m), 0);
    stage_release(&stage);
}

static void no_name_leads_out_of_the_folder(void **state) {
    static const char *const names[][2] = {
        { "../../up", "_./_./up" }, { "/etc/x", "etc/x" },       { "..", "_." }, { "", "_" },
        { "a//b/", "a/b" },         { "new\nline", "new?line" },
    };
    char path[PATH_MAX];
    struct stage stage;

    (void)state;
    stage_make(&stage, 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(myelin_log_file(stage.m, names[i][0], "txt", "", 0, 1), 0);
        snprintf(path, sizeof path, "%s/media/%s/000000001-3.txt", stage.rundir.outputs,
                 names[i][1]);
        if (access(path, F_OK) < 0)
            fail_msg("'%s' did not become '%s'", names[i][0], path);
    }
    stage_release(&stage);
}

static void what_cannot_be_written_is_counted_and_leaves_nothing(void **state) {
    const struct rlimit small = { 10, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
    struct stage stage;

    (void)state;
    stage_make(&stage, 0);
    assert_int_equal(myelin_log_file(stage.m, "a", "txt", "x", 1, MYELIN_AUTO), -1);
    assert_int_equal(myelin_log_file(stage.m, "a", "../../x", "x", 1, 1), -1);
    assert_int_equal(myelin_log_file(stage.m, "a", "txt", "x", (size_t)MYELIN_FILE_MAX + 1, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0); /* SIGXFSZ would end this program */
    assert_int_equal(myelin_log_file(stage.m, "a", "txt", "12345678901", 11, 1), -1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    setenv("MYELIN_OUTPUTS_PATH", "/proc/nowhere", 1);
    assert_int_equal(myelin_log_file(stage.m, "a", "txt", "x", 1, 1), -1);
    unsetenv("MYELIN_OUTPUTS_PATH");
    assert_int_equal(myelin_log_file(stage.m, "a", "txt", "x", 1, 1), -1);
    assert_int_equal(myelin_dropped(stage.m), 6);
    assert_int_equal(stage_read(&stage).n, 0);
    assert_int_equal(myelin_log_file(NULL, "a", "txt", "x", 1, 1), -1);
    stage_release(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_says_name_step_rank_attempt_and_kind),
        cmocka_unit_test(whatever_else_lies_there_is_no_media),
        cmocka_unit_test(what_c_programs_log_is_read_again),
        cmocka_unit_test(no_name_leads_out_of_the_folder),
        cmocka_unit_test(what_cannot_be_written_is_counted_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
