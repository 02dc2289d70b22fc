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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_on_after_a_signal),
        cmocka_unit_test(what_cannot_be_written_or_read_is_told_as_errno),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
