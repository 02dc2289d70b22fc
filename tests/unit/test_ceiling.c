/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/ceiling.h"

static void a_ceiling_grows_with_the_tasks_up_to_half_of_the_room(void **state) {
    (void)state;
    assert_int_equal(ceiling_of_run(8192, 1, 4194304), 8192);
    assert_int_equal(ceiling_of_run(8192, 3, 4194304), 3 * 8192);
    assert_int_equal(ceiling_of_run(8192, 512, 4194304), 2097152);
    assert_int_equal(ceiling_of_run(8192, 2, 32768), 16384);
    assert_int_equal(ceiling_of_run(8192, 3, 32768), 16384);
}

static void no_run_gets_the_last_process_whatever_its_size(void **state) {
    static const int64_t rooms[] = { 2, 3, 100, 32768, 4194304, INT64_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        for (uint32_t n_tasks = 1; n_tasks > 0; n_tasks *= 2) {
            const int64_t most = ceiling_of_run(UINT32_MAX, n_tasks, rooms[i]);

            assert_true(most > 0 && most <= rooms[i] - most);
        }
}

static void a_ceiling_is_never_none(void **state) {
    (void)state;
    assert_int_equal(ceiling_of_run(8192, 1, 0), 1);
    assert_int_equal(ceiling_of_run(8192, 0, 100), 1);
    assert_int_equal(ceiling_of_run(UINT32_MAX, UINT32_MAX, INT64_MAX), INT64_MAX / 2);
}

static void what_is_no_number_is_no_bound(void **state) {
    (void)state;
    assert_int_equal(ceiling_read("max\n"), INT64_MAX);
    assert_int_equal(ceiling_read(""), INT64_MAX);
    assert_int_equal(ceiling_read("-1\n"), INT64_MAX);
    assert_int_equal(ceiling_read("99999999999999999999\n"), INT64_MAX);
    assert_int_equal(ceiling_read("0\n"), 0);
    assert_int_equal(ceiling_read("32768\n"), 32768);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Directories stand in for groups: what is read are files of that name. */
static void the_tightest_group_on_the_way_up_bounds_the_room(void **state) {
    char top[] = "/tmp/myelin-ceiling-XXXXXX", path[4][64];
    static const char *const names[] = { "/a", "/a/b", "/a/pids.max", "/a/b/pids.max" };
    int64_t all;

    (void)state;
    assert_non_null(mkdtemp(top));
    for (int i = 0; i < 4; i++)
        snprintf(path[i], sizeof path[i], "%s%s", top, names[i]);
    all = ceiling_room(top);
    assert_true(all > 100 && all < INT64_MAX);
    assert_int_equal(mkdir(path[0], 0700), 0);
    assert_int_equal(mkdir(path[1], 0700), 0);
    write_text(path[2], "60\n");
    write_text(path[3], "max\n");
    assert_int_equal(ceiling_room(path[1]), 60);
    write_text(path[3], "50\n");
    assert_int_equal(ceiling_room(path[1]), 50);
    assert_int_equal(ceiling_room(path[0]), 60);
    for (int i = 3; i >= 2; i--)
        assert_int_equal(unlink(path[i]), 0);
    for (int i = 1; i >= 0; i--)
        assert_int_equal(rmdir(path[i]), 0);
    assert_int_equal(rmdir(top), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ceiling_grows_with_the_tasks_up_to_half_of_the_room),
        cmocka_unit_test(no_run_gets_the_last_process_whatever_its_size),
        cmocka_unit_test(a_ceiling_is_never_none),
        cmocka_unit_test(what_is_no_number_is_no_bound),
        cmocka_unit_test(the_tightest_group_on_the_way_up_bounds_the_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
