/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/run_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/owner.h"

enum {
    LOOK_EVERY_MS = 1000,
    GONE_LOOKS = 3, /* a file system of a network may miss a directory for a moment */
};

struct run_guard {
    struct run_guard_options options;
    struct event *timer;
    int n_gone; /* looks in a row that did not find the directory */
    bool has_told_gone, has_told_lock, has_told_journal;
};

enum finding { PLACE_SAME, PLACE_MISSING, PLACE_OTHER, PLACE_UNKNOWN };

/* What is at the path, beside a file that is open. */
static enum finding compare(const char *path, int fd) {
    struct stat there, ours;

    if (fd < 0 || fstat(fd, &ours) < 0)
        return PLACE_UNKNOWN;
    if (lstat(path, &there) < 0)
        return errno == ENOENT || errno == ENOTDIR ? PLACE_MISSING : PLACE_UNKNOWN;
    return there.st_dev == ours.st_dev && there.st_ino == ours.st_ino ? PLACE_SAME : PLACE_OTHER;
}

static bool has_changed(const char *path, int fd) {
    const enum finding place = compare(path, fd);

    return place == PLACE_MISSING || place == PLACE_OTHER;
}

/* ---- the journal ---- */

static int copy(int from, int to) {
    char chunk[64 * 1024];
    ssize_t n;

    for (off_t at = 0; (n = pread(from, chunk, sizeof chunk, at)) > 0; at += n)
        if (file_write_all(to, chunk, (size_t)n))
            return -1;
    return n < 0 ? -1 : 0;
}

/* A removed file has no name that could be linked again: its bytes are copied. */
static bool put_journal_back(const struct rundir *rundir, struct journal *journal) {
    char part[FILE_PART_NAME];
    struct stat st;
    int fd;

    if (fstat(journal->fd, &st) < 0)
        return false;
    fd = file_make_part(rundir->journal, st.st_mode, part);
    if (fd < 0)
        return false;
    if (copy(journal->fd, fd) || fcntl(fd, F_SETFL, O_APPEND) < 0 || fdatasync(fd) < 0 ||
        file_replace(part, rundir->journal)) {
        unlink(part);
        close(fd);
        return false;
    }
    close(journal->fd);
    journal->fd = fd;
    return true;
}

void run_guard_save_journal(const struct rundir *rundir, struct journal *journal) {
    struct stat st;

    if (journal->fd < 0 || (lstat(rundir->journal, &st) == 0 && S_ISREG(st.st_mode)))
        return;
    (void)put_journal_back(rundir, journal);
}

/* ---- looking ---- */

static void tell(const struct run_guard *guard, bool *has_told, const char *file) {
    char sentence[480];

    if (*has_told)
        return;
    *has_told = true;
    snprintf(sentence, sizeof sentence,
             "'%s' of the run's directory was removed or replaced, perhaps by a task; it was put "
             "back, and the run goes on. Tasks should write below MYELIN_OUTPUTS_PATH alone",
             file);
    guard->options.notice(guard->options.context, sentence);
}

static void guard_lock(struct run_guard *guard) {
    const struct run_guard_options *options = &guard->options;
    char path[PATH_MAX];
    struct error err;

    if (snprintf(path, sizeof path, "%s/lock", options->rundir->path) >= (int)sizeof path ||
        !has_changed(path, *options->lock))
        return;
    /* One that cannot be put back is tried again: the disk may be full. */
    if (owner_put_back(options->rundir, options->lock, options->announced, &err) == 0)
        tell(guard, &guard->has_told_lock, "lock");
}

static void guard_journal(struct run_guard *guard) {
    const struct run_guard_options *options = &guard->options;
    struct error ignored;

    if (!has_changed(options->rundir->journal, options->journal->fd) ||
        !put_journal_back(options->rundir, options->journal))
        return;
    if (journal_reserve(options->journal, &ignored) == 0 || !guard->has_told_journal)
        tell(guard, &guard->has_told_journal, "events.jsonl");
}

static void tell_gone(struct run_guard *guard) {
    char sentence[480];

    if (guard->has_told_gone)
        return;
    guard->has_told_gone = true;
    snprintf(
        sentence, sizeof sentence,
        "its directory %.300s was removed while it was going on, and its logs and outputs with "
        "it; its tasks were ended. Find out what removes it, and start the run again",
        guard->options.rundir->path);
    guard->options.gone(guard->options.context, sentence);
}

/* `most` looks in a row have to miss the directory. */
static void look(struct run_guard *guard, int most) {
    const struct run_guard_options *options = &guard->options;

    if (has_changed(options->rundir->path, options->directory)) {
        if (++guard->n_gone >= most)
            tell_gone(guard);
        return;
    }
    guard->n_gone = 0;
    guard_lock(guard);
    guard_journal(guard);
}

void run_guard_look(struct run_guard *guard) {
    look(guard, 1);
}

static void on_timer(evutil_socket_t fd, short what, void *context) {
    struct run_guard *guard = context;

    (void)fd, (void)what;
    if (getppid() == guard->options.announced)
        kill(guard->options.announced, SIGCONT);
    look(guard, GONE_LOOKS);
}

struct run_guard *run_guard_new(struct event_base *base, const struct run_guard_options *options) {
    const struct timeval every = clock_timeval(LOOK_EVERY_MS);
    struct run_guard *guard = calloc(1, sizeof *guard);

    if (!guard)
        abort();
    guard->options = *options;
    guard->timer = event_new(base, -1, EV_PERSIST, on_timer, guard);
    if (!guard->timer)
        abort();
    event_add(guard->timer, &every);
    return guard;
}

void run_guard_free(struct run_guard *guard) {
    if (!guard)
        return;
    event_free(guard->timer);
    free(guard);
}
