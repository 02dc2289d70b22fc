/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "store/owner.h"
#include "supervise/keeper.h"
#include "supervise/supervisor.h"

enum {
    READ_SIZE = 64 * 1024,
    JOURNAL_LINE_MOST = 1 << 20,
    OWNER_WAITS_MOST = 10000,
    LOOK_EVERY_MS = 1000, /* whether the run still has an owner; also for a lost notification */
};

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

/* A task's log as far as it was read. */
struct log_file {
    int fd; /* -1: not there yet */
    bool is_over;
};

struct watcher {
    const struct rundir *rundir;
    const struct watch_options *options;
    struct event_base *base;
    struct run_record *record;
    struct plan plan; /* of the record, once it is known */
    struct follow follow;
    bool is_following, has_caught_up;
    int journal_fd;
    struct buf journal; /* the beginning of a line */
    struct log_file *logs;
    int notify_fd;
    struct event *notify_event, *look_event, *signal_events[ARRAY_LEN(signals)];
    unsigned interrupts;
    enum watch_outcome outcome;
    char bytes[READ_SIZE];
};

/* ---- logs ---- */

static void open_log(struct watcher *w, uint32_t rank) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s.log", w->rundir->logs,
                 task_name(&w->plan.tasks[rank]).text) < (int)sizeof path)
        w->logs[rank].fd = open(path, O_RDONLY | O_CLOEXEC);
}

/* Shows what has come since the last look; all of it, or one piece. */
static void read_log(struct watcher *w, uint32_t rank, bool all) {
    struct log_file *log = &w->logs[rank];
    ssize_t n;

    if (log->is_over)
        return;
    if (log->fd < 0)
        open_log(w, rank);
    if (log->fd < 0)
        return;
    do {
        n = read(log->fd, w->bytes, sizeof w->bytes);
        if (n > 0)
            follow_output(&w->follow, rank, w->bytes, (size_t)n);
    } while (n > 0 && all);
    if (n == (ssize_t)sizeof w->bytes)
        event_active(w->look_event, EV_TIMEOUT, 0); /* there is more: after the others' turn */
}

static void end_log(struct watcher *w, uint32_t rank) {
    read_log(w, rank, true);
    if (w->logs[rank].fd >= 0)
        close(w->logs[rank].fd);
    w->logs[rank] = (struct log_file){ .fd = -1, .is_over = true };
    follow_ended(&w->follow, rank);
}

/* The journal has said which tasks there are: their logs can be followed. */
static void begin_following(struct watcher *w) {
    if (w->is_following || w->record->n_tasks == 0 || !w->options->out)
        return;
    w->plan = record_plan(w->record);
    follow_init(&w->follow, &w->plan, w->options->style, w->options->out);
    w->logs = calloc(w->plan.n_tasks, sizeof *w->logs);
    if (!w->logs)
        abort();
    for (uint32_t rank = 0; rank < w->plan.n_tasks; rank++) {
        w->logs[rank].fd = -1;
        if (w->options->from_end) {
            open_log(w, rank);
            if (w->logs[rank].fd >= 0)
                lseek(w->logs[rank].fd, 0, SEEK_END);
        }
    }
    w->is_following = true;
}

static void read_logs(struct watcher *w, bool all) {
    for (uint32_t rank = 0; w->is_following && rank < w->plan.n_tasks; rank++)
        read_log(w, rank, all);
}

/* ---- the journal ---- */

static void feed_line(struct watcher *w, const char *line, size_t n) {
    const char *notice;

    record_feed(w->record, line, n, &notice);
    begin_following(w);
    if (notice && (w->has_caught_up || !w->options->from_end))
        fprintf(stderr, "myelin: %s\n", notice);
}

static void read_journal(struct watcher *w) {
    struct error err;
    ssize_t n;

    if (w->journal_fd < 0) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%s/events.jsonl", w->rundir->path) < (int)sizeof path)
            w->journal_fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    while (w->journal_fd >= 0 && (n = read(w->journal_fd, w->bytes, sizeof w->bytes)) > 0) {
        size_t at = 0;
        char *end;

        if (buf_append(&w->journal, w->bytes, (size_t)n, &err))
            buf_clear(&w->journal); /* no line of ours is that long */
        while ((end = memchr(w->journal.data + at, '\n', w->journal.len - at))) {
            feed_line(w, w->journal.data + at, (size_t)(end - w->journal.data) - at);
            at = (size_t)(end - w->journal.data) + 1;
        }
        memmove(w->journal.data, w->journal.data + at, w->journal.len - at);
        w->journal.len -= at;
        w->journal.data[w->journal.len] = '\0';
    }
}

/* The last line is written a moment before its writer is gone: nothing of a run is left only then.
 */
static void wait_for_owner(const struct rundir *rundir) {
    const struct timespec pause = { .tv_nsec = 500000 };
    pid_t pid;

    for (int i = 0; i < OWNER_WAITS_MOST && owner_lives(rundir, &pid); i++)
        nanosleep(&pause, NULL);
}

static void finish(struct watcher *w, enum watch_outcome outcome) {
    w->outcome = outcome;
    event_base_loopbreak(w->base);
}

/* Tasks that have ended get their last output shown, and the rest of a line. */
static void look(struct watcher *w) {
    read_journal(w);
    w->has_caught_up = true;
    read_logs(w, false);
    for (uint32_t rank = 0; w->is_following && rank < w->plan.n_tasks; rank++)
        if (!w->logs[rank].is_over && state_is_final(w->record->tasks[rank].state))
            end_log(w, rank);
    if (!state_is_final(w->record->state))
        return;
    for (uint32_t rank = 0; w->is_following && rank < w->plan.n_tasks; rank++)
        if (!w->logs[rank].is_over)
            end_log(w, rank);
    wait_for_owner(w->rundir);
    finish(w, WATCH_OVER);
}

/* ---- events ---- */

static void on_notify(evutil_socket_t fd, short what, void *context) {
    struct watcher *w = context;

    (void)what;
    /* What changed does not matter: a look costs less than telling. */
    while (read(fd, w->bytes, sizeof w->bytes) > 0)
        continue;
    look(w);
}

static void on_look(evutil_socket_t fd, short what, void *context) {
    const struct timeval again = { .tv_sec = LOOK_EVERY_MS / 1000 };
    struct watcher *w = context;
    pid_t pid;

    (void)fd, (void)what;
    look(w);
    if (!state_is_final(w->record->state) && !owner_lives(w->rundir, &pid)) {
        read_journal(w); /* the owner may have gone right after its last line */
        if (!state_is_final(w->record->state))
            supervisor_settle(w->rundir);
        look(w);
        if (!state_is_final(w->record->state))
            finish(w, WATCH_LEFT); /* another host's run, or one that cannot be written to */
    }
    evtimer_add(w->look_event, &again);
}

static void stop_run(struct watcher *w, int number) {
    struct error err;
    bool again = w->interrupts++ > 0;

    fprintf(stderr,
            again ? "myelin: SIG%s again: killing the tasks\n"
                  : "myelin: SIG%s: stopping the tasks; once more kills them\n",
            sigabbrev_np(number));
    if (w->interrupts > 2) {
        fprintf(stderr, "myelin: left while tasks are still ending\n");
        finish(w, WATCH_LEFT);
    } else if (owner_signal(w->rundir, again ? KEEPER_KILL : KEEPER_STOP, &err)) {
        fprintf(stderr, "myelin: %s\n", err.message);
        look(w);
    }
}

static void on_signal(evutil_socket_t number, short what, void *context) {
    struct watcher *w = context;

    (void)what;
    if (number == SIGHUP ? w->options->hangup_stops : w->options->signals_stop)
        stop_run(w, (int)number);
    else
        finish(w, WATCH_LEFT);
}

/* ---- the life of a watcher ---- */

void watch_hold_signals(int how) {
    sigset_t held;

    sigemptyset(&held);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        sigaddset(&held, signals[i]);
    sigprocmask(how, &held, NULL);
}

static void add_signals(struct watcher *w) {
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct sigaction now;

        /* What whoever started us ignores stays ignored: nohup, a script's background job. */
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
            continue;
        w->signal_events[i] = evsignal_new(w->base, signals[i], on_signal, w);
        if (!w->signal_events[i])
            abort();
        event_add(w->signal_events[i], NULL);
    }
    watch_hold_signals(SIG_UNBLOCK);
}

static int watcher_init(struct watcher *w, struct error *err) {
    w->base = event_base_new();
    if (!w->base)
        abort();
    w->notify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->notify_fd < 0)
        return error_set_errno(err, errno, "cannot watch run %s", w->rundir->id);
    if (inotify_add_watch(w->notify_fd, w->rundir->path, IN_MODIFY | IN_CREATE) < 0 ||
        inotify_add_watch(w->notify_fd, w->rundir->logs, IN_MODIFY | IN_CREATE) < 0)
        return error_set_errno(err, errno, "cannot watch run %s", w->rundir->id);
    w->notify_event = event_new(w->base, w->notify_fd, EV_READ | EV_PERSIST, on_notify, w);
    w->look_event = evtimer_new(w->base, on_look, w);
    if (!w->notify_event || !w->look_event)
        abort();
    event_add(w->notify_event, NULL);
    event_active(w->look_event, EV_TIMEOUT, 0);
    add_signals(w);
    return 0;
}

static void watcher_release(struct watcher *w) {
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (w->signal_events[i])
            event_free(w->signal_events[i]);
    if (w->notify_event)
        event_free(w->notify_event);
    if (w->look_event)
        event_free(w->look_event);
    if (w->notify_fd >= 0)
        close(w->notify_fd);
    if (w->journal_fd >= 0)
        close(w->journal_fd);
    for (uint32_t rank = 0; w->is_following && rank < w->plan.n_tasks; rank++)
        if (w->logs[rank].fd >= 0)
            close(w->logs[rank].fd);
    if (w->is_following)
        follow_release(&w->follow);
    free(w->logs);
    buf_release(&w->journal);
    event_base_free(w->base);
}

int watch_run(const struct rundir *rundir, const struct watch_options *options,
              struct run_record *record, enum watch_outcome *outcome, struct error *err) {
    struct watcher w = { .rundir = rundir,
                         .options = options,
                         .record = record,
                         .journal_fd = -1,
                         .notify_fd = -1,
                         .journal = BUF_INIT(JOURNAL_LINE_MOST) };
    int status;

    record_init(record, rundir);
    status = watcher_init(&w, err);
    if (status == 0)
        event_base_dispatch(w.base);
    *outcome = w.outcome;
    watcher_release(&w);
    return status;
}
