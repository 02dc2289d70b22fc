/* SPDX-License-Identifier: Apache-2.0 */
/* Files that somebody else may have put there, numbers of runs, and who may act on a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "each_home.h"
#include "store/owner.h"
#include "store/public_line.h"
#include "store/request.h"
#include "store/rights.h"
#include "store/sharing.h"

static const char *in_home(const char *name) {
    return arena_printf(&home.arena, "%s/%s", home.path, name);
}

static void write_file(const char *path) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

/* ---- opening ---- */

typedef int opener(const char *path, int flags, mode_t mode);
static opener *const openers[] = { file_open_regular, file_open_linkless };

static void only_regular_files_are_opened_and_nothing_blocks(void **state) {
    static const int flags[] = { O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT,
                                 O_WRONLY | O_APPEND };

    (void)state;
    write_file(in_home("file"));
    assert_int_equal(mkfifo(in_home("fifo"), 0600), 0);
    assert_int_equal(mkdir(in_home("directory"), 0700), 0);
    assert_int_equal(symlink(in_home("file"), in_home("link")), 0);
    assert_int_equal(symlink("/dev/zero", in_home("zero")), 0);
    for (size_t i = 0; i < ARRAY_LEN(openers); i++)
        for (size_t j = 0; j < ARRAY_LEN(flags); j++) {
            static const struct {
                const char *name;
                int errnum;
            } refused[] = {
                { "fifo", ENXIO }, { "directory", ENXIO }, { "link", ELOOP }, { "zero", ELOOP }
            };
            const int fd = openers[i](in_home("file"), flags[j], 0600);

            assert_true(fd >= 0);
            assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
            close(fd);
            for (size_t k = 0; k < ARRAY_LEN(refused); k++) {
                assert_int_equal(openers[i](in_home(refused[k].name), flags[j], 0600), -1);
                assert_int_equal(errno, refused[k].errnum);
            }
        }
}

static void check_links_on_the_way(void) {
    int fd;

    assert_int_equal(mkdir(in_home("real"), 0700), 0);
    write_file(in_home("real/file"));
    assert_int_equal(symlink("real", in_home("logs")), 0);
    fd = file_open_linkless(in_home("real/file"), O_RDONLY, 0);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(file_open_linkless(in_home("logs/file"), O_RDONLY, 0), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(file_open_linkless(in_home("logs/new"), O_RDWR | O_CREAT, 0600), -1);
    assert_int_equal(access(in_home("real/new"), F_OK), -1);
    assert_int_equal(file_open_linkless_directory(in_home("logs")), -1);
    assert_null(file_list_linkless(in_home("logs")));
    assert_int_equal(file_remove_linkless(in_home("logs/file")), -1);
    assert_int_equal(file_rename_linkless(in_home("logs/file"), "moved"), -1);
    assert_int_equal(file_make_directory_linkless(in_home("logs/made"), 0700), -1);
    assert_int_equal(file_make_directory_linkless(in_home("real/made"), 0700), 0);
    assert_int_equal(rmdir(in_home("real/made")), 0);
    assert_int_equal(file_rename_linkless(in_home("real/file"), "moved"), 0);
    assert_int_equal(file_remove_linkless(in_home("real/moved")), 0);
    fd = file_open_linkless_directory(in_home("real"));
    assert_true(fd >= 0);
    close(fd);
}

static void no_directory_on_the_way_may_be_a_link(void **state) {
    (void)state;
    check_links_on_the_way();
}

/* A filter as containers have that are older than the call. */
static void refuse_openat2(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = { ARRAY_LEN(code), code };

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void a_kernel_without_the_call_for_it_changes_nothing(void **state) {
    pid_t child = fork();
    int status;

    (void)state;
    if (child == 0) {
        refuse_openat2();
        check_links_on_the_way();
        _exit(syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == EPERM ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- numbers of runs ---- */

static void one_directory_does_not_use_up_all_numbers(void **state) {
    static const struct {
        unsigned long ids[4];
        size_t n;
        unsigned long last, before_next;
    } cases[] = {
        { { 0 }, 0, 0, 0 },
        { { 1, 2, 3 }, 3, 0, 3 },
        { { 1, 2, 3 }, 3, 7, 7 },
        { { 1, 2, 999999999 }, 3, 0, 2 },
        { { 1, 2, 999999999 }, 3, 999999999, 2 },
        { { 1, 2 }, 2, 999999999, 2 },
        { { 0 }, 0, 999999999, 0 },
        { { 1, 999999997, 999999998, 999999999 }, 4, 0, 1 },
        { { 999999999 }, 1, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(rundir_id_before_next(cases[i].ids, cases[i].n, cases[i].last),
                         cases[i].before_next);
}

static void a_home_with_the_highest_number_still_takes_runs(void **state) {
    static const char *const lasts[] = { "999999999\n", "garbage", "" };
    struct rundir first = home_run(&home), next;

    (void)state;
    assert_string_equal(first.id, "1");
    assert_int_equal(mkdir(in_home("runs/999999999"), 0700), 0);
    for (size_t i = 0; i < ARRAY_LEN(lasts); i++) {
        FILE *file = fopen(in_home("last-run"), "we");

        assert_non_null(file);
        fputs(lasts[i], file);
        fclose(file);
        next = home_run(&home);
        assert_int_equal(strtoul(next.id, NULL, 10), 2 + i);
    }
    unlink(in_home("last-run"));
    assert_int_equal(mkfifo(in_home("last-run"), 0600), 0);
    assert_string_equal(home_run(&home).id, "5");
}

static void a_link_in_the_directory_of_runs_is_not_a_run(void **state) {
    struct rundir run = home_run(&home), found;
    struct error err;

    (void)state;
    assert_int_equal(symlink(run.path, in_home("runs/7")), 0);
    assert_int_equal(rundir_open(home.path, 7, &home.arena, &found, &err), -1);
    assert_int_equal(err.code, ERROR_NOT_FOUND);
}

/* ---- who may act ---- */

static struct rundir of_another_user(const struct rundir *rundir) {
    struct rundir other = *rundir;

    other.owner = geteuid() + 1;
    return other;
}

static void only_the_owner_acts_on_a_run(void **state) {
    struct rundir own = home_run(&home), other = of_another_user(&own);
    struct error err;
    int lock;

    (void)state;
    assert_true(rights_has(&own));
    assert_false(rights_has(&other));
    assert_int_equal(rights_check(&own, &err), 0);
    assert_int_equal(rights_trust(&own, "restart run 1", &err), 0);
    assert_int_equal(rights_trust(&other, "restart run 1", &err), other.owner == 0 ? 0 : -1);
    assert_int_equal(owner_take(&other, &lock, &err), -1);
    assert_int_equal(err.code, ERROR_DENIED);
    assert_int_equal(owner_pass(&other, 0, &lock, &err), -1);
    assert_int_equal(owner_signal(&other, 0, &err), -1);
    assert_int_equal(err.code, ERROR_DENIED);
    assert_non_null(strstr(err.message, "is not yours"));
    assert_int_equal(access(in_home("runs/1/lock"), F_OK), -1);
}

/* The number in a lock is only what somebody has written there. */
static void a_process_that_does_not_hold_the_lock_gets_no_signal(void **state) {
    struct rundir run = home_run(&home);
    struct error err;
    int lock, status;
    pid_t stranger;

    (void)state;
    assert_int_equal(owner_take(&run, &lock, &err), 0);
    owner_announce(lock, getpid());
    assert_int_equal(owner_signal(&run, 0, &err), 0);
    stranger = fork();
    if (stranger == 0) {
        close(lock);
        pause();
        _exit(0);
    }
    owner_announce(lock, stranger);
    do
        status = owner_signal(&run, 0, &err);
    while (status == 0); /* until the child has closed what it inherited */
    assert_int_equal(err.code, ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "does not hold it"));
    close(lock);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

static void what_is_not_a_regular_file_is_no_lock(void **state) {
    struct rundir run = home_run(&home);
    struct error err;
    pid_t pid;
    int lock;

    (void)state;
    assert_int_equal(mkfifo(in_home("runs/1/lock"), 0600), 0);
    assert_false(owner_lives(&run, &pid));
    assert_int_equal(owner_take(&run, &lock, &err), -1);
    unlink(in_home("runs/1/lock"));
    assert_int_equal(symlink(in_home("target"), in_home("runs/1/lock")), 0);
    assert_false(owner_lives(&run, &pid));
    assert_int_equal(owner_take(&run, &lock, &err), -1);
    assert_int_equal(access(in_home("target"), F_OK), -1);
}

/* ---- homes ---- */

static void a_shared_home_without_the_sticky_bit_is_refused(void **state) {
    static const struct {
        mode_t home, runs;
        bool is_safe;
    } cases[] = {
        { 0700, 0700, true },   { 0755, 0755, true },    { 03770, 03770, true },
        { 01777, 01777, true }, { 02770, 03770, false }, { 03770, 02770, false },
        { 0777, 01777, false },
    };
    struct rundir run = home_run(&home);
    struct error err;

    (void)state;
    (void)run;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(chmod(home.path, cases[i].home), 0);
        assert_int_equal(chmod(in_home("runs"), cases[i].runs), 0);
        assert_int_equal(home_check_safe(home.path, in_home("runs"), &err),
                         cases[i].is_safe ? 0 : -1);
        if (!cases[i].is_safe) {
            assert_int_equal(err.code, ERROR_DENIED);
            assert_non_null(strstr(err.message, "chmod +t"));
        }
    }
    chmod(home.path, 0700);
}

/* ---- what others may read ---- */

static const char *without_blanks(struct buf *text) {
    size_t n = 0;

    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] != ' ')
            text->data[n++] = text->data[i];
    if (text->data)
        text->data[n] = '\0';
    return text->data ? text->data : "";
}

static void only_what_the_queue_needs_is_public(void **state) {
#define HEAD(event) "{\"seq\":3,\"time\":\"t\",\"elapsed\":1,\"attempt\":0,\"event\":\"" event "\""
    static const struct {
        const char *line, *public;
    } cases[] = {
        { HEAD("created") ",\"uuid\":\"u\",\"name\":\"secret\",\"owner\":\"ann\",\"command\":\"x\","
                          "\"directory\":\"/d\",\"host\":\"h\",\"counts\":{\"worker\":2}}",
          HEAD("created") ",\"uuid\":\"u\",\"owner\":\"ann\",\"host\":\"h\","
                          "\"counts\":{\"worker\":2}}\n" },
        { HEAD("status") ",\"status\":\"failed\",\"reason\":\"password\",\"exit_status\":1}",
          HEAD("status") ",\"status\":\"failed\"}\n" },
        { HEAD("queued") ",\"demand\":\"d\"}", HEAD("queued") ",\"demand\":\"d\"}\n" },
        { HEAD("reserved") ",\"holds\":[{\"cpu\":1}]}",
          HEAD("reserved") ",\"holds\":[{\"cpu\":1}]}\n" },
        { HEAD("tracked") ",\"kind\":\"params\",\"values\":{\"lr\":1}}", "" },
        { HEAD("notice") ",\"message\":\"m\"}", "" },
        { HEAD("code") ",\"commit\":\"c\"}", "" },
        { HEAD("task") ",\"rank\":0,\"reason\":\"r\"}", "" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf) out = BUF_INIT(4096);
        struct error err;

        assert_int_equal(public_line(cases[i].line, strlen(cases[i].line), &out, &err), 0);
        assert_string_equal(without_blanks(&out), cases[i].public);
    }
}

/* ---- what a run was started with ---- */

static void files_of_a_request_lie_beside_it(void **state) {
    static const char *const wrong[] = { "../../etc/passwd", "/etc/passwd", "..", ".ssh", "" };
    struct request request;
    struct error err;
    char text[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        snprintf(text, sizeof text,
                 "{\"options\": [{\"name\": \"file\", \"value\": \"%s\"}], \"environment\": {}}",
                 wrong[i]);
        assert_int_equal(request_parse(text, strlen(text), &request, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_regular_files_are_opened_and_nothing_blocks, make_home,
                                        release_home),
        cmocka_unit_test_setup_teardown(no_directory_on_the_way_may_be_a_link, make_home,
                                        release_home),
        cmocka_unit_test_setup_teardown(a_kernel_without_the_call_for_it_changes_nothing, make_home,
                                        release_home),
        cmocka_unit_test(one_directory_does_not_use_up_all_numbers),
        cmocka_unit_test_setup_teardown(a_home_with_the_highest_number_still_takes_runs, make_home,
                                        release_home),
        cmocka_unit_test_setup_teardown(a_link_in_the_directory_of_runs_is_not_a_run, make_home,
                                        release_home),
        cmocka_unit_test_setup_teardown(only_the_owner_acts_on_a_run, make_home, release_home),
        cmocka_unit_test_setup_teardown(a_process_that_does_not_hold_the_lock_gets_no_signal,
                                        make_home, release_home),
        cmocka_unit_test_setup_teardown(what_is_not_a_regular_file_is_no_lock, make_home,
                                        release_home),
        cmocka_unit_test_setup_teardown(a_shared_home_without_the_sticky_bit_is_refused, make_home,
                                        release_home),
        cmocka_unit_test(only_what_the_queue_needs_is_public),
        cmocka_unit_test(files_of_a_request_lie_beside_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
