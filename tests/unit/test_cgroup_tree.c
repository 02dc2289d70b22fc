/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "backend/local/cgroup_tree.h"

enum { DISTURBANCES = 3, EVERY_US = 5000 };

static int pipe_fd;
static volatile sig_atomic_t n_signals;

/* Makes room only after the writer was disturbed some times. */
static void on_signal(int number) {
    char bytes[4096];

    (void)number;
    if (++n_signals > DISTURBANCES)
        while (read(pipe_fd, bytes, sizeof bytes) > 0)
            ;
}

/* A full pipe stands in for a control file whose write a signal interrupts. */
static void a_write_goes_on_after_a_signal(void **state) {
    const struct sigaction disturbed = { .sa_handler = on_signal };
    const struct itimerval often = { { 0, EVERY_US }, { 0, EVERY_US } }, never = { 0 };
    char top[] = "/tmp/myelin-tree-XXXXXX", path[64];
    int directory, errnum;

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(path, sizeof path, "%s/control", top);
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    directory = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(pipe_fd >= 0 && directory >= 0);
    while (write(pipe_fd, "x", 1) > 0)
        ;
    assert_int_equal(sigaction(SIGALRM, &disturbed, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    errnum = cgroup_write(directory, "control", "1");
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(errnum, 0);
    assert_true(n_signals > DISTURBANCES);
    close(pipe_fd);
    close(directory);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(top), 0);
}

static void what_cannot_be_written_or_read_is_told_as_errno(void **state) {
    char text[16] = "untouched";

    (void)state;
    assert_int_equal(cgroup_write(AT_FDCWD, "/nowhere/control", "1"), ENOENT);
    assert_int_equal(cgroup_read(AT_FDCWD, "/nowhere/control", text, sizeof text), ENOENT);
    assert_string_equal(text, "");
}

/* A tree of plain directories, which the kernel's words place where we want it. */
static void what_cannot_be_looked_into_is_not_taken_for_empty(void **state) {
    static const char name[] = "myelin-0123456789abcdef0123456789abcdef";
    static const char *const parts[] = { "", "/a", "/a/b", "/a/b/c" };
    char top[] = "/tmp/myelin-tree-XXXXXX", path[128], text[256];
    struct cgroup_places places = { BUF_INIT(4096), BUF_INIT(4096) };
    struct rlimit before, few;
    unsigned found;
    struct error err;
    int next;

    (void)state;
    assert_non_null(mkdtemp(top));
    for (size_t i = 1; i < ARRAY_LEN(parts); i++) {
        snprintf(path, sizeof path, "%s%s", top, parts[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    snprintf(text, sizeof text, "30 1 0:26 / %s rw - cgroup2 cgroup2 rw\n", top);
    assert_int_equal(buf_append(&places.mountinfo, text, strlen(text), &err), 0);
    assert_int_equal(buf_append(&places.self, "0::/a\n", 6, &err), 0);
    assert_int_equal(cgroup_places_holding(&places, NULL, name, CGROUP_COUNT_ALL), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    next = dup(0);
    close(next);
    few = (struct rlimit){ .rlim_cur = (rlim_t)next + 2, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    found = cgroup_places_holding(&places, NULL, name, CGROUP_COUNT_ALL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_not_equal(found, 0);
    for (size_t i = ARRAY_LEN(parts); i-- > 0;) {
        snprintf(path, sizeof path, "%s%s", top, parts[i]);
        assert_int_equal(rmdir(path), 0);
    }
    cgroup_places_release(&places);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_on_after_a_signal),
        cmocka_unit_test(what_cannot_be_looked_into_is_not_taken_for_empty),
        cmocka_unit_test(what_cannot_be_written_or_read_is_told_as_errno),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
