/* SPDX-License-Identifier: Apache-2.0 */
#include "code/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "code/facts.h"
#include "codec/json_read.h"
#include "store/journal.h"

/* A line of the journal has it and what is known of an archive. */
enum { LINE_MOST = JOURNAL_LINE_MOST / 2 };

/* ---- in its process ---- */

/* False: it is too long. */
static bool tell(int fd, const struct code_facts *facts) {
    AUTO(buf) line = BUF_INIT(LINE_MOST);
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &line);
    json_object(&json);
    code_facts_write(&json, facts);
    json_end(&json);
    if (json_finish(&json, &err) || buf_append(&line, "\n", 1, &err))
        return false;
    if (file_write_all(fd, line.data, line.len))
        _exit(1); /* nobody listens any more */
    return true;
}

static void on_head(void *context, const struct code_facts *facts) {
    tell(*(const int *)context, facts);
}

/* Leaves the terminal and every file of the caller's: most of all the lock of the run. */
static int detach(int fd) {
    const int null = open("/dev/null", O_RDWR);

    setsid();
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(null, i);
    fd = dup2(fd, STDERR_FILENO + 1);
    close_range((unsigned)fd + 1, ~0u, 0);
    return fd;
}

static void record(const char *top, const char *place, const struct rundir *rundir, int fd) {
    AUTO(arena) arena = ARENA_INIT;
    AUTO(buf) diff = BUF_INIT(CODE_DIFF_MOST);
    struct code_listener listener = { on_head, &fd };
    struct code_facts facts;
    struct error err;

    code_facts_gather(top, place, &listener, &arena, &diff, &facts);
    if (diff.len && rundir_write(rundir, CODE_DIFF_FILE, diff.data, diff.len, &err)) {
        facts.trouble = arena_text(&arena, err.message, strlen(err.message));
        facts.diff_bytes = 0;
        facts.is_diff_cut = true;
    }
    if (!tell(fd, &facts)) {
        facts.untracked.n = 0; /* how many there are is told without their names */
        tell(fd, &facts);
    }
}

static void child(const char *top, const char *place, const struct rundir *rundir, int fd) {
    sigset_t none;

    prctl(PR_SET_NAME, "myelin-code");
    sigemptyset(&none);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(RECORDER_LIFE_S);
    record(top, place, rundir, detach(fd));
    _exit(0);
}

/* ---- in the run's processes ---- */

void recorder_start(struct recorder *recorder, const char *directory, const struct rundir *rundir) {
    AUTO(arena) arena = ARENA_INIT;
    const char *top = code_top(directory, &arena);
    int ends[2];
    pid_t pid;

    if (!top || pipe2(ends, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0)
        child(top, code_place(top, directory, &arena), rundir, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return;
    }
    recorder->process = (int)syscall(SYS_pidfd_open, pid, 0);
    recorder->fd = ends[0];
    recorder->pid = pid;
}

void recorder_reap(struct recorder *recorder) {
    if (recorder->pid > 0)
        waitpid(recorder->pid, NULL, 0);
    recorder->pid = 0;
}

static void close_at(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whether the end was read. */
static bool read_some(struct recorder *recorder) {
    char bytes[16 * 1024];
    const ssize_t n = read(recorder->fd, bytes, sizeof bytes);
    struct error full;

    if (n < 0 && errno == EINTR)
        return false;
    return n <= 0 || buf_append(&recorder->text, bytes, (size_t)n, &full);
}

bool recorder_wait(struct recorder *recorder, int timeout_ms) {
    const int64_t until_us = clock_monotonic_us() + (int64_t)timeout_ms * 1000;

    while (recorder->fd >= 0) {
        const int64_t left_us = until_us - clock_monotonic_us();
        struct pollfd ready = { .fd = recorder->fd, .events = POLLIN };
        const int n = poll(&ready, 1, left_us > 0 ? (int)((left_us + 999) / 1000) : 0);

        if (n > 0 && read_some(recorder))
            close_at(&recorder->fd);
        else if (n == 0 || (n < 0 && errno != EINTR))
            return false;
    }
    return true;
}

void recorder_end(struct recorder *recorder) {
    if (recorder->fd >= 0 && recorder->process >= 0) {
        struct pollfd gone = { .fd = recorder->process, .events = POLLIN };

        syscall(SYS_pidfd_send_signal, recorder->process, SIGKILL, NULL, 0);
        poll(&gone, 1, RECORDER_END_MS);
    }
    recorder_release(recorder);
}

void recorder_release(struct recorder *recorder) {
    close_at(&recorder->fd);
    close_at(&recorder->process);
    buf_release(&recorder->text);
}

bool recorder_facts(const struct recorder *recorder, struct arena *arena, struct code_facts *out) {
    const char *end = memrchr(recorder->text.data, '\n', recorder->text.len), *line;
    AUTO(arena) scratch = ARENA_INIT;
    struct code_facts facts;
    struct node node;
    struct error err;

    if (!end)
        return false;
    line = memrchr(recorder->text.data, '\n', (size_t)(end - recorder->text.data));
    line = line ? line + 1 : recorder->text.data;
    if (json_read(line, (size_t)(end - line), &scratch, &node, &err))
        return false;
    code_facts_read(&node, arena, &facts);
    facts.snapshot_root = out->snapshot_root;
    facts.snapshot_files = out->snapshot_files;
    facts.snapshot_bytes = out->snapshot_bytes;
    facts.links = out->links;
    *out = facts;
    return true;
}
