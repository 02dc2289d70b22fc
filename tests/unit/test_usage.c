/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/local/usage.h"

enum { HELD = 64 << 20, WRITTEN = 1 << 20 };

static void wait_for(int fd) {
    char byte;

    assert_int_equal(read(fd, &byte, 1), 1);
}

/* A task whose child holds memory, has worked and has written; a byte on `ready` says so. */
static void be_task(int ready) {
    static char block[WRITTEN];
    pid_t child = fork();

    if (child == 0) {
        char *held = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        volatile unsigned work = 0;
        FILE *file = tmpfile();

        if (held == MAP_FAILED)
            _exit(1);
        memset(held, 1, HELD);
        while (clock() < CLOCKS_PER_SEC / 5)
            work++;
        if (!file || fwrite(block, 1, sizeof block, file) != sizeof block || fflush(file))
            _exit(1);
        if (write(ready, "", 1) != 1)
            _exit(1);
        pause();
    }
    pause();
}

static pid_t start_task(void) {
    int ready[2];
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        be_task(ready[1]);
    }
    setpgid(pid, pid);
    wait_for(ready[0]);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end_task(pid_t pid) {
    kill(-pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void a_task_is_its_process_and_all_below(void **state) {
    const pid_t roots[] = { start_task(), 0 };
    struct task_usage usage[2];

    (void)state;
    usage_look(roots, 2, usage);
    end_task(roots[0]);
    assert_true(usage[0].is_known);
    assert_int_equal(usage[0].n_processes, 2);
    assert_true(usage[0].memory_bytes >= HELD);
    assert_true(usage[0].cpu_seconds >= 0.1);
    assert_true(usage[0].written_bytes >= WRITTEN);
    assert_false(usage[1].is_known);
}

static void one_task_is_not_another(void **state) {
    const pid_t roots[] = { start_task(), start_task(), 1 };
    struct task_usage usage[3];

    (void)state;
    usage_look(roots, 3, usage);
    end_task(roots[0]);
    end_task(roots[1]);
    assert_int_equal(usage[0].n_processes, 2);
    assert_int_equal(usage[1].n_processes, 2);
    assert_false(usage[2].is_known); /* not a descendant */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_its_process_and_all_below),
        cmocka_unit_test(one_task_is_not_another),
    };

    return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
