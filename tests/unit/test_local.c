/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/local/local.h"
#include "base/buf.h"

/* A gang of small commands, and all that was heard of it. */
enum { TASKS_MOST = 40 };

struct description {
    char name[24];
    char *argv[4];
    char texts[4][128];
};

struct theatre {
    struct event_base *base;
    struct backend *backend;
    uint32_t n;
    const char *argv[TASKS_MOST][4];
    const char *directory;
    struct description description; /* of the task that was described last */
    struct buf output[TASKS_MOST];
    size_t bytes[TASKS_MOST];
    struct task_end ends[TASKS_MOST];
    char messages[TASKS_MOST][500];
    int ended[TASKS_MOST];
    uint32_t n_ended;
    int gone;
    bool stop_at_first_end;
    uint32_t n_started, n_started_at_turn; /* when others had their turn after the first start */
    int door;
    double started;
};

static double now(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What is described is gone at the next call, as the contract says. */
static int describe(void *context, uint32_t rank, struct task_start *start, struct error *err) {
    static char path[] = "PATH=/usr/bin:/bin";
    static char *environment[] = { path, NULL };
    struct theatre *t = context;
    struct description *now = &t->description;

    (void)err;
    memset(now, 0x55, sizeof *now);
    snprintf(now->name, sizeof now->name, "worker.%u", rank);
    for (int i = 0; i < 4; i++) {
        now->argv[i] = t->argv[rank][i] ? now->texts[i] : NULL;
        if (t->argv[rank][i])
            snprintf(now->texts[i], sizeof now->texts[i], "%s", t->argv[rank][i]);
    }
    *start = (struct task_start){ now->name, now->argv, environment, t->directory };
    return 0;
}

static void on_turn(evutil_socket_t fd, short what, void *arg) {
    struct theatre *t = arg;

    (void)what;
    close(fd);
    t->door = -1;
    t->n_started_at_turn = t->n_started;
}

static void hear_start(void *context, uint32_t rank, int64_t id) {
    struct theatre *t = context;

    assert_int_equal(t->ended[rank], 0);
    assert_true(id > 0);
    if (t->n_started++ > 0)
        return;
    t->door = eventfd(1, EFD_CLOEXEC); /* somebody knocks */
    event_base_once(t->base, t->door, EV_READ, on_turn, t, NULL);
}

static void hear_output(void *context, uint32_t rank, const char *bytes, size_t n) {
    struct theatre *t = context;
    struct error err;

    assert_int_equal(t->ended[rank], 0);
    t->bytes[rank] += n;
    if (t->output[rank].len + n <= t->output[rank].limit)
        assert_int_equal(buf_append(&t->output[rank], bytes, n, &err), 0);
}

static void hear_end(void *context, uint32_t rank, const struct task_end *end) {
    struct theatre *t = context;

    assert_int_equal(t->gone, 0);
    t->ended[rank]++;
    t->n_ended++;
    t->ends[rank] = *end;
    if (end->message)
        snprintf(t->messages[rank], sizeof t->messages[rank], "%s", end->message);
    if (t->stop_at_first_end)
        t->backend->ops->stop(t->backend, STOP_GRACEFULLY, 5000);
}

static void hear_gone(void *context) {
    struct theatre *t = context;

    assert_int_equal(t->n_ended, t->n);
    t->gone++;
    event_base_loopbreak(t->base);
}

static void add(struct theatre *t, const char *a, const char *b, const char *c) {
    t->argv[t->n][0] = a;
    t->argv[t->n][1] = b;
    t->argv[t->n][2] = c;
    t->output[t->n] = (struct buf)BUF_INIT(1 << 20);
    t->n++;
}

static void add_shell(struct theatre *t, const char *script) {
    add(t, "sh", "-c", script);
}

static void launch(struct theatre *t) {
    const struct gang gang = { t->n, describe, hear_start, hear_output, hear_end, hear_gone, t };
    struct error err;

    t->started = now();
    assert_int_equal(local_backend_new(t->base, &t->backend, &err), 0);
    assert_int_equal(t->backend->ops->launch(t->backend, &gang, &err), 0);
}

static void turn_for(struct theatre *t, int ms) {
    const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

    event_base_loopexit(t->base, &time);
    event_base_dispatch(t->base);
}

/* Turns the loop until the gang is gone, and checks what is true of every gang. */
static void play_out(struct theatre *t) {
    if (!t->gone)
        turn_for(t, 20000);
    assert_int_equal(t->gone, 1);
    for (uint32_t rank = 0; rank < t->n; rank++)
        assert_int_equal(t->ended[rank], 1);
}

static int set_up(void **state) {
    struct theatre *t = calloc(1, sizeof *t);

    alarm(60);
    t->base = event_base_new();
    *state = t;
    return 0;
}

static int tear_down(void **state) {
    struct theatre *t = *state;

    if (t->backend)
        t->backend->ops->free(t->backend);
    for (uint32_t rank = 0; rank < t->n; rank++)
        buf_release(&t->output[rank]);
    event_base_free(t->base);
    free(t);
    return 0;
}

static void assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void every_task_ends_once_with_its_code_after_all_of_its_output(void **state) {
    static char scripts[TASKS_MOST][64];
    struct theatre *t = *state;

    for (int i = 0; i < TASKS_MOST; i++) {
        snprintf(scripts[i], sizeof scripts[i], "echo out%d; echo err%d >&2; exit %d", i, i, i);
        add_shell(t, scripts[i]);
    }
    launch(t);
    play_out(t);
    for (int i = 0; i < TASKS_MOST; i++) {
        char expected[64];

        snprintf(expected, sizeof expected, "out%d\nerr%d\n", i, i);
        assert_string_equal(t->output[i].data, expected);
        assert_int_equal(t->ends[i].kind, TASK_EXITED);
        assert_int_equal(t->ends[i].detail, i);
    }
    assert_no_children();
}

/* As the filters of some containers do. The refusal holds for what this process starts, too. */
static void refuse(unsigned call) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = { ARRAY_LEN(filter), filter };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(2);
}

/* That the law holds in a process that the kernel refuses the call. */
static void assert_holds_without(unsigned call, void (*law)(void **), void **state) {
    struct theatre *t = *state;
    const pid_t child = fork();
    int status;

    if (child == 0) {
        event_reinit(t->base);
        refuse(call);
        law(state);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void tasks_are_started_where_clone3_is_refused(void **state) {
    assert_holds_without(SYS_clone3, every_task_ends_once_with_its_code_after_all_of_its_output,
                         state);
}

static void a_signal_that_ends_a_task_is_told(void **state) {
    struct theatre *t = *state;

    add_shell(t, "kill -SEGV $$");
    launch(t);
    play_out(t);
    assert_int_equal(t->ends[0].kind, TASK_SIGNALLED);
    assert_int_equal(t->ends[0].detail, SIGSEGV);
}

static void write_script(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void a_task_that_cannot_be_started_says_why(void **state) {
    static const struct {
        const char *program, *sentence;
        int errnum;
    } rows[] = {
        { "trainx", "cannot start worker.0: 'trainx' was not found in PATH", ENOENT },
        { "./nowhere", "cannot start worker.1: './nowhere' does not exist", ENOENT },
        { "./closed.sh", "cannot start worker.2: './closed.sh' is not executable (chmod +x)",
          EACCES },
        { "./lost.py",
          "cannot start worker.3: './lost.py' wants the interpreter /usr/bin/pythn, which does "
          "not exist",
          ENOENT },
        { "./text",
          "cannot start worker.4: './text' is neither a program of this machine nor a "
          "script that begins with '#!'",
          ENOEXEC },
        { "./dos.sh",
          "cannot start worker.5: './dos.sh' has Windows line ends (CR LF), so its "
          "interpreter is not found (mend it with sed -i 's/\\r$//')",
          ENOENT },
        { ".", "cannot start worker.6: '.' was not found in PATH", ENOENT },
        { "./", "cannot start worker.7: './' is a directory", EACCES },
        { "", "cannot start worker.8: the command is empty", ENOENT },
    };
    char directory[] = "/tmp/myelin-test-XXXXXX";
    const int here = open(".", O_PATH | O_CLOEXEC);
    struct theatre *t = *state;

    assert_non_null(mkdtemp(directory));
    assert_int_equal(chdir(directory), 0);
    write_script("closed.sh", "#!/bin/sh\n", 0644);
    write_script("lost.py", "#! /usr/bin/pythn -u\n", 0755);
    write_script("text", "echo no interpreter\n", 0755);
    write_script("dos.sh", "#!/bin/sh\r\necho\r\n", 0755);
    assert_int_equal(fchdir(here), 0); /* the task's directory counts, not ours */
    t->directory = directory;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        add(t, rows[i].program, NULL, NULL);
    launch(t);
    play_out(t);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(t->ends[i].kind, TASK_NOT_STARTED);
        assert_string_equal(t->messages[i], rows[i].sentence);
        assert_int_equal(t->ends[i].detail, rows[i].errnum);
    }
    close(here);
    snprintf(t->messages[0], sizeof t->messages[0], "rm -r %s", directory);
    assert_int_equal(system(t->messages[0]), 0);
}

static void a_directory_that_is_missing_is_named(void **state) {
    struct theatre *t = *state;

    t->directory = "/nowhere/at/all";
    add(t, "/bin/true", NULL, NULL);
    launch(t);
    play_out(t);
    assert_int_equal(t->ends[0].kind, TASK_NOT_STARTED);
    assert_non_null(strstr(t->messages[0], "cannot enter the directory '/nowhere/at/all'"));
}

static void a_task_starts_clean(void **state) {
    struct theatre *t = *state;
    struct rlimit before;
    char expected[64];
    int leak = open("/dev/null", O_RDONLY); /* on purpose not close-on-exec */

    getrlimit(RLIMIT_NOFILE, &before);
    signal(SIGPIPE, SIG_IGN);
    add(t, "ls", "/proc/self/fd", NULL);
    add_shell(t, "grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f 2");
    add_shell(t, "ulimit -n");
    add_shell(t, "cut -d ' ' -f 1,5,6 /proc/$$/stat");
    add(t, "readlink", "/proc/self/fd/0", NULL);
    launch(t);
    play_out(t);
    signal(SIGPIPE, SIG_DFL);
    close(leak);
    assert_string_equal(t->output[0].data, "0\n1\n2\n3\n"); /* 3 is ls reading the directory */
    assert_string_equal(t->output[1].data, "0000000000000000\n0000000000000000\n");
    snprintf(expected, sizeof expected, "%llu\n", (unsigned long long)before.rlim_cur);
    assert_string_equal(t->output[2].data, expected);
    {
        int pid, group, session;

        assert_int_equal(sscanf(t->output[3].data, "%d %d %d", &pid, &group, &session), 3);
        assert_int_equal(pid, group);
        assert_int_equal(session, getsid(0)); /* one for each would cost a scheduling group */
    }
    assert_string_equal(t->output[4].data, "/dev/null\n");
}

static void a_task_starts_clean_where_close_range_is_refused(void **state) {
    assert_holds_without(SYS_close_range, a_task_starts_clean, state);
}

static void a_detached_child_neither_delays_the_end_nor_outlives_the_gang(void **state) {
    struct theatre *t = *state;

    add_shell(t, "setsid sh -c 'trap \"\" TERM; echo daemon; while :; do sleep 0.1; done' & "
                 "sleep 0.2; echo task");
    launch(t);
    turn_for(t, 600);
    assert_int_equal(t->ended[0], 1);
    assert_string_equal(t->output[0].data, "daemon\ntask\n");
    play_out(t);
    assert_no_children();
}

static void a_stop_is_gentle_first_and_kills_after_the_grace(void **state) {
    struct theatre *t = *state;

    add_shell(t, "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    add_shell(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done");
    launch(t);
    turn_for(t, 300);
    t->backend->ops->stop(t->backend, STOP_GRACEFULLY, 500);
    t->backend->ops->stop(t->backend, STOP_GRACEFULLY, 60000); /* asking twice is asking once */
    turn_for(t, 300);
    assert_int_equal(t->ended[0], 1);
    assert_int_equal(t->ends[0].detail, 5);
    assert_non_null(strstr(t->output[0].data, "bye"));
    assert_int_equal(t->ended[1], 0);
    play_out(t);
    assert_int_equal(t->ends[1].kind, TASK_SIGNALLED);
    assert_int_equal(t->ends[1].detail, SIGKILL);
    assert_true(now() - t->started < 2);
    assert_no_children();
}

static void a_second_stop_may_be_more_severe(void **state) {
    struct theatre *t = *state;

    add_shell(t, "trap '' TERM; while :; do sleep 0.05; done");
    launch(t);
    turn_for(t, 200);
    t->backend->ops->stop(t->backend, STOP_GRACEFULLY, 60000);
    turn_for(t, 100);
    assert_int_equal(t->ended[0], 0);
    t->backend->ops->stop(t->backend, STOP_AT_ONCE, 0);
    play_out(t);
    assert_true(now() - t->started < 2);
}

static void what_forks_all_the_time_is_ended_as_well(void **state) {
    struct theatre *t = *state;

    add_shell(t, "trap '' TERM; while :; do setsid sleep 60 & sleep 0.002; done");
    launch(t);
    turn_for(t, 300);
    t->backend->ops->stop(t->backend, STOP_AT_ONCE, 0);
    play_out(t);
    assert_no_children();
}

static void a_task_that_floods_does_not_starve_the_others(void **state) {
    struct theatre *t = *state;

    add(t, "yes", NULL, NULL);
    add_shell(t, "sleep 0.1; echo here");
    launch(t);
    turn_for(t, 1000);
    assert_int_equal(t->ended[1], 1);
    assert_string_equal(t->output[1].data, "here\n");
    assert_true(t->bytes[0] > 1000000);
    t->backend->ops->stop(t->backend, STOP_GRACEFULLY, 5000);
    play_out(t);
}

static void others_have_their_turn_while_a_large_gang_is_launched(void **state) {
    struct theatre *t = *state;

    for (int i = 0; i < TASKS_MOST; i++)
        add(t, "true", NULL, NULL);
    launch(t);
    play_out(t);
    assert_int_equal(t->n_started, TASKS_MOST);
    assert_true(t->n_started_at_turn > 0 && t->n_started_at_turn < TASKS_MOST);
}

static void a_stop_while_launching_starts_no_further_task(void **state) {
    struct theatre *t = *state;
    uint32_t not_started = 0;

    add(t, "trainx", NULL, NULL);
    for (int i = 1; i < TASKS_MOST; i++)
        add(t, "sleep", "60", NULL);
    t->stop_at_first_end = true;
    launch(t);
    play_out(t);
    for (uint32_t rank = 1; rank < t->n; rank++)
        not_started += t->ends[rank].kind == TASK_NOT_STARTED && t->ends[rank].detail == ECANCELED;
    assert_int_equal(not_started, TASKS_MOST - 1);
    assert_true(now() - t->started < 1);
}

static void a_stop_reaches_those_that_were_born_beside_the_one_that_failed(void **state) {
    struct theatre *t = *state;

    for (int i = 0; i < TASKS_MOST; i++)
        add(t, i == 2 ? "/nowhere/trainx" : "sleep", "60", NULL);
    t->stop_at_first_end = true;
    launch(t);
    play_out(t);
    assert_int_equal(t->ends[2].kind, TASK_NOT_STARTED);
    assert_int_equal(t->ends[1].detail, SIGTERM);
    assert_int_equal(t->ends[3].detail, SIGTERM);
    assert_int_equal(t->ends[TASKS_MOST - 1].detail, ECANCELED);
    assert_no_children();
}

static void a_child_from_before_is_spared(void **state) {
    struct theatre *t = *state;
    const pid_t bystander = fork();

    if (bystander == 0) {
        pause();
        _exit(0);
    }
    add_shell(t, "setsid sleep 60 & exit 0");
    launch(t);
    play_out(t);
    assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
    kill(bystander, SIGKILL);
    assert_int_equal(waitpid(bystander, NULL, 0), bystander);
}

static void tasks_die_with_their_supervisor(void **state) {
    struct theatre *t = *state;
    int ends[2];
    pid_t supervisor, task;

    assert_int_equal(pipe(ends), 0);
    supervisor = fork();
    if (supervisor == 0) {
        event_reinit(t->base);
        add_shell(t, "echo $$; exec sleep 60");
        launch(t);
        turn_for(t, 300);
        task = atoi(t->output[0].data);
        if (write(ends[1], &task, sizeof task) < 0)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &task, sizeof task), sizeof task);
    assert_true(task > 1);
    assert_int_equal(kill(task, 0), 0);
    kill(supervisor, SIGKILL);
    assert_int_equal(waitpid(supervisor, NULL, 0), supervisor);
    for (int i = 0; i < 200 && kill(task, 0) == 0; i++) {
        char path[64], line[256] = "";
        FILE *file;

        snprintf(path, sizeof path, "/proc/%d/stat", task);
        file = fopen(path, "re");
        if (file && fgets(line, sizeof line, file) && strstr(line, ") Z "))
            task = 0x7fffffff; /* dead, and not reaped yet by whoever got it */
        if (file)
            fclose(file);
        usleep(10000);
    }
    assert_int_equal(kill(task, 0), -1);
    close(ends[0]);
    close(ends[1]);
}

#define LAW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        LAW(every_task_ends_once_with_its_code_after_all_of_its_output),
        LAW(tasks_are_started_where_clone3_is_refused),
        LAW(a_signal_that_ends_a_task_is_told),
        LAW(a_task_that_cannot_be_started_says_why),
        LAW(a_directory_that_is_missing_is_named),
        LAW(a_task_starts_clean),
        LAW(a_task_starts_clean_where_close_range_is_refused),
        LAW(a_detached_child_neither_delays_the_end_nor_outlives_the_gang),
        LAW(a_stop_is_gentle_first_and_kills_after_the_grace),
        LAW(a_second_stop_may_be_more_severe),
        LAW(what_forks_all_the_time_is_ended_as_well),
        LAW(a_task_that_floods_does_not_starve_the_others),
        LAW(others_have_their_turn_while_a_large_gang_is_launched),
        LAW(a_stop_while_launching_starts_no_further_task),
        LAW(a_stop_reaches_those_that_were_born_beside_the_one_that_failed),
        LAW(a_child_from_before_is_spared),
        LAW(tasks_die_with_their_supervisor),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
