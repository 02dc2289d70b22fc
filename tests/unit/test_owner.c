/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "each_home.h"
#include "store/owner.h"
#include "store/presence.h"

/* A process that owns the run until it is killed. */
static pid_t start_owner(const struct rundir *rundir) {
    int ready[2], lock;
    struct error err;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        alarm(30);
        if (owner_take(rundir, &lock, &err))
            _exit(1);
        owner_announce(lock, getpid());
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void end_owner(pid_t pid) {
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_run_without_a_lock_has_no_owner(void **state) {
    struct rundir rundir = home_run(&home);
    struct error err;
    pid_t pid = 5;

    (void)state;
    assert_false(owner_lives(&rundir, &pid));
    assert_int_equal(pid, 0);
    assert_int_equal(owner_signal(&rundir, 0, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void a_lock_that_cannot_be_looked_at_is_not_that_of_a_dead_run(void **state) {
    struct rundir rundir = home_run(&home);
    struct rlimit before, none;
    struct error err;
    pid_t pid = 5;
    int lock, next;
    bool lives;
    enum owner_sight sight;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    close(lock);
    assert_false(owner_lives(&rundir, &pid));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    next = dup(0); /* the lowest number that is free */
    close(next);
    none = (struct rlimit){ .rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    lives = owner_lives(&rundir, &pid);
    sight = owner_look(&rundir, &pid);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(sight, OWNER_IS_HIDDEN);
    assert_true(lives);
    assert_int_equal(pid, 0);
    assert_false(owner_lives(&rundir, &pid));
}

static void an_owner_is_known_until_it_dies(void **state) {
    struct rundir rundir = home_run(&home);
    pid_t owner = start_owner(&rundir), pid;
    struct error err;
    int lock = -1;

    (void)state;
    assert_true(owner_lives(&rundir, &pid));
    assert_int_equal(pid, owner);
    assert_int_equal(owner_take(&rundir, &lock, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(lock, -1);
    end_owner(owner);
    assert_false(owner_lives(&rundir, &pid));
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    close(lock);
}

static void a_child_that_shares_the_lock_owns_on(void **state) {
    struct rundir rundir = home_run(&home);
    struct error err;
    pid_t pid, child;
    int lock;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    child = fork();
    if (child == 0) {
        alarm(30);
        pause();
        _exit(0);
    }
    close(lock);
    assert_true(owner_lives(&rundir, &pid));
    end_owner(child);
    assert_false(owner_lives(&rundir, &pid));
}

static void one_process_cannot_own_a_run_twice(void **state) {
    struct rundir rundir = home_run(&home);
    struct error err;
    int lock, second;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    assert_int_equal(owner_take(&rundir, &second, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    close(lock);
}

static void looking_never_stands_in_the_way_of_an_owner(void **state) {
    struct rundir rundir = home_run(&home);
    struct error err;
    pid_t looker;
    int lock;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    close(lock);
    looker = fork();
    if (looker == 0) {
        pid_t pid;

        alarm(30);
        for (;;)
            owner_lives(&rundir, &pid);
    }
    for (int i = 0; i < 20000; i++) {
        if (owner_take(&rundir, &lock, &err)) {
            end_owner(looker);
            fail_msg("after %d times: %s", i, err.message);
        }
        close(lock);
    }
    end_owner(looker);
}

/* -- who only passes by -- */

static void who_passes_by_is_not_the_owner_and_has_the_run_to_himself(void **state) {
    struct rundir rundir = home_run(&home);
    int lock, second = -1;
    struct error err;
    pid_t pid;

    (void)state;
    assert_int_equal(owner_pass(&rundir, 0, &lock, &err), 0);
    assert_false(owner_lives(&rundir, &pid));
    assert_int_equal(owner_signal(&rundir, 0, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
    assert_int_equal(owner_pass(&rundir, 10, &second, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(second, -1);
    close(lock);
    assert_int_equal(owner_pass(&rundir, 0, &lock, &err), 0);
    close(lock);
}

static void nobody_passes_by_a_run_that_has_an_owner(void **state) {
    struct rundir rundir = home_run(&home);
    const int64_t before_us = clock_monotonic_us();
    struct error err;
    int lock, second;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    assert_int_equal(owner_pass(&rundir, 3600000, &second, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_true(clock_monotonic_us() - before_us < 1800000000);
    close(lock);
}

static void an_owner_waits_for_who_passes_by(void **state) {
    struct rundir rundir = home_run(&home);
    int ready[2], lock;
    struct error err;
    pid_t passer;
    char byte;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    passer = fork();
    if (passer == 0) {
        if (owner_pass(&rundir, 0, &lock, &err) || write(ready[1], "x", 1) != 1)
            _exit(1);
        usleep(100000);
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    close(lock);
    assert_int_equal(waitpid(passer, NULL, 0), passer);
}

/* Those who pass by and those who own meet at random; *inside is how many are at it. */
static void meet(const struct rundir *rundir, int who, atomic_int *inside) {
    for (int i = 0; i < 300; i++) {
        struct error err;
        int lock;

        if (who % 2 ? owner_pass(rundir, OWNER_PASSING_MS, &lock, &err)
                    : owner_take(rundir, &lock, &err)) {
            if (err.code != ERROR_CONFLICT)
                _exit(2);
            sched_yield();
            continue;
        }
        if (atomic_fetch_add(inside, 1) != 0)
            _exit(1);
        sched_yield();
        atomic_fetch_sub(inside, 1);
        close(lock);
    }
    _exit(0);
}

static void two_never_act_on_a_run_at_once(void **state) {
    struct rundir rundir = home_run(&home);
    atomic_int *inside =
        mmap(NULL, sizeof *inside, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[6];
    int status;

    (void)state;
    assert_ptr_not_equal(inside, MAP_FAILED);
    for (int i = 0; i < (int)ARRAY_LEN(pids); i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            meet(&rundir, i, inside);
    }
    for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    munmap(inside, sizeof *inside);
}

/* -- signals -- */

static void a_signal_reaches_the_owner_and_nobody_else(void **state) {
    struct rundir rundir = home_run(&home);
    pid_t owner = start_owner(&rundir);
    struct error err;
    int status;

    (void)state;
    assert_int_equal(owner_signal(&rundir, SIGUSR1, &err), 0);
    assert_int_equal(waitpid(owner, &status, 0), owner);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    /* the file still names the process, which may be somebody else's number by now */
    assert_int_equal(owner_signal(&rundir, SIGUSR1, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void an_owner_that_announced_nobody_gets_no_signal(void **state) {
    static const char *const texts[] = { "", "no number", "0", "-1" };
    struct rundir rundir = home_run(&home);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct error err;
        int lock;

        assert_int_equal(owner_take(&rundir, &lock, &err), 0);
        assert_int_equal(ftruncate(lock, 0), 0);
        assert_int_equal(write(lock, texts[i], strlen(texts[i])), (ssize_t)strlen(texts[i]));
        assert_int_equal(owner_signal(&rundir, SIGKILL, &err), -1);
        assert_int_equal(err.code, ERROR_UNAVAILABLE);
        assert_non_null(strstr(err.message, "is running, but"));
        close(lock);
    }
}

static void a_number_takes_the_place_of_a_longer_one_and_a_reserve_of_any(void **state) {
    struct rundir rundir = home_run(&home);
    struct error err;
    pid_t pid, child;
    int lock;

    (void)state;
    assert_int_equal(owner_take(&rundir, &lock, &err), 0);
    child = fork(); /* who looks at a lock of its own process's does not see it */
    if (child == 0) {
        alarm(30);
        pause();
        _exit(0);
    }
    assert_int_equal(owner_reserve(lock, &rundir, &err), 0);
    owner_announce(lock, 4194303);
    assert_true(owner_lives(&rundir, &pid));
    assert_int_equal(pid, 4194303);
    owner_announce(lock, 17);
    assert_true(owner_lives(&rundir, &pid));
    assert_int_equal(pid, 17);
    assert_int_equal(owner_reserve(lock, &rundir, &err), 0);
    assert_true(owner_lives(&rundir, &pid));
    assert_int_equal(pid, 0);
    close(lock);
    end_owner(child);
}

static void without_room_for_a_number_nothing_is_reserved(void **state) {
    struct rundir rundir = home_run(&home);
    int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    struct error err;

    (void)state;
    assert_int_equal(owner_reserve(full, &rundir, &err), -1);
    assert_non_null(strstr(err.message, "No space left"));
    close(full);
}

/* -- a lock that a task has removed -- */

static void put_in_place_of_lock(const struct rundir *rundir, int kind) {
    char path[128];

    snprintf(path, sizeof path, "%s/lock", rundir->path);
    unlink(path);
    rmdir(path);
    assert_int_equal(kind == 0   ? mkfifo(path, 0600)
                     : kind == 1 ? mkdir(path, 0700)
                     : kind == 2 ? symlink("/dev/zero", path)
                     : kind == 3 ? mknod(path, S_IFREG | 0600, 0)
                                 : 0,
                     0);
}

static void whatever_is_in_the_place_of_a_lock_the_directory_says_who_lives(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct rundir rundir = home_run(&home);
        const int held = presence_hold(&rundir);
        struct error err;
        int lock = -1;
        pid_t pid = 5;

        put_in_place_of_lock(&rundir, kind);
        assert_true(owner_lives(&rundir, &pid));
        assert_int_equal(pid, 0);
        assert_int_equal(owner_signal(&rundir, SIGKILL, &err), -1);
        assert_int_equal(owner_take(&rundir, &lock, &err), -1);
        assert_int_equal(owner_pass(&rundir, 0, &lock, &err), -1);
        assert_int_equal(lock, -1);
        close(held);
        assert_false(owner_lives(&rundir, &pid));
    }
}

static void a_lock_is_put_back_in_the_place_of_anything(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct rundir rundir = home_run(&home);
        struct error err;
        int lock, other;
        pid_t pid;

        assert_int_equal(owner_take(&rundir, &lock, &err), 0);
        put_in_place_of_lock(&rundir, kind);
        assert_int_equal(owner_put_back(&rundir, &lock, 4711, &err), 0);
        assert_true(owner_lives(&rundir, &pid));
        assert_int_equal(pid, 4711);
        assert_int_equal(owner_take(&rundir, &other, &err), -1);
        close(lock);
        assert_false(owner_lives(&rundir, &pid));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_a_lock_has_no_owner),
        cmocka_unit_test(a_lock_that_cannot_be_looked_at_is_not_that_of_a_dead_run),
        cmocka_unit_test(an_owner_is_known_until_it_dies),
        cmocka_unit_test(a_child_that_shares_the_lock_owns_on),
        cmocka_unit_test(one_process_cannot_own_a_run_twice),
        cmocka_unit_test(looking_never_stands_in_the_way_of_an_owner),
        cmocka_unit_test(who_passes_by_is_not_the_owner_and_has_the_run_to_himself),
        cmocka_unit_test(nobody_passes_by_a_run_that_has_an_owner),
        cmocka_unit_test(an_owner_waits_for_who_passes_by),
        cmocka_unit_test(two_never_act_on_a_run_at_once),
        cmocka_unit_test(a_signal_reaches_the_owner_and_nobody_else),
        cmocka_unit_test(an_owner_that_announced_nobody_gets_no_signal),
        cmocka_unit_test(a_number_takes_the_place_of_a_longer_one_and_a_reserve_of_any),
        cmocka_unit_test(without_room_for_a_number_nothing_is_reserved),
        cmocka_unit_test(whatever_is_in_the_place_of_a_lock_the_directory_says_who_lives),
        cmocka_unit_test(a_lock_is_put_back_in_the_place_of_anything),
    };

    return cmocka_run_group_tests_name("owner", tests, make_home, release_home);
}
