/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/signals.h"
#include "cli/keys.h"
#include "cli/logmerge.h"
#include "store/journal.h"
#include "store/owner.h"
#include "store/presence.h"
#include "supervise/bell.h"
#include "supervise/keeper.h"
#include "supervise/supervisor.h"

enum {
    READ_SIZE = FOLLOW_PIECE_MOST,
    TURN_BYTES = 4 * READ_SIZE, /* of logs, before signals and the journal have their turn */
    TURN_PIECES = 4096,
    UNREAD_LINE_MOST = 1 << 20,
    OWNER_WAITS_MOST = 10000,
    OWNER_WAIT_MS = 5000,
    LOOK_EVERY_MS = 1000, /* whether the run still has an owner; also for a lost notification */
};

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

struct watcher {
    const struct rundir *rundir;
    const struct watch_options *options;
    struct event_base *base;
    struct run_record *record;
    struct plan plan;                  /* of the record, once it is known */
    struct follow own_follow, *follow; /* NULL: not begun, or nothing is shown */
    struct logread *own_logs, *logs;   /* by rank */
    struct logmerge merge;             /* of those with news */
    bool *has_news;                    /* by rank: its log may have grown */
    struct arena arena;                /* of the directories of logs */
    uint32_t attempt;                  /* whose logs are shown */
    const char *logs_path;             /* of that attempt */
    uint32_t n_drained;                /* attempts that are over and whose logs were shown whole */
    bool has_caught_up;
    int directory; /* of the run, open: it tells whether the run lives after it was removed */
    int journal_fd;
    off_t journal_at;   /* how far it was read */
    struct buf journal; /* the beginning of a line */
    int notify_fd;
    struct event *notify_event, *look_event, *more_event, *fold_event, *resize_event;
    struct event *key_event; /* NULL: nobody sits there */
    struct event *signal_events[ARRAY_LEN(signals)];
    bool has_looked, has_told_trouble;
    bool has_skipped; /* lines from before the watching are not shown */
    unsigned interrupts;
    struct suspension suspension; /* of the keeper, since the first of them */
    enum watch_outcome outcome;
    alignas(struct inotify_event) char bytes[READ_SIZE];
};

/* ---- what is shown ---- */

static void say(struct watcher *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A message to the user, in the place of the status line. */
static void say(struct watcher *w, const char *fmt, ...) {
    va_list arguments;

    if (w->follow)
        follow_hide_status(w->follow);
    va_start(arguments, fmt);
    fputs("myelin: ", stderr);
    vfprintf(stderr, fmt, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static bool is_over(const struct watcher *w, uint32_t rank) {
    return state_is_final(w->record->tasks[rank].state) || state_is_final(w->record->state);
}

/* Shows one piece of what has come; returns how many bytes it had, or -1 when there was none. A
 * task that is over has written all before its end was in the journal: when nothing more is there
 * then, its last line can be shown. */
static ssize_t read_log(struct watcher *w, uint32_t rank) {
    struct logread *log = &w->logs[rank];
    struct log_piece piece;

    log->is_over = is_over(w, rank);
    /* Of one that is over it is looked up, and not left to what was told: the journal may have been
     * read before the news of its first line. */
    if (logread_next(log, w->bytes, sizeof w->bytes, &piece)) {
        if (piece.lost)
            follow_lost(w->follow, rank, piece.lost);
        else
            follow_output(w->follow, rank, piece.time_us, clock_monotonic_us(), w->bytes, piece.n);
        return (ssize_t)piece.n;
    }
    w->has_news[rank] = false;
    if (!log->is_over)
        return -1;
    log->is_done = true;
    logread_release(log);
    follow_ended(w->follow, rank);
    return -1;
}

/* A task that wrote nothing has no log, and no place in the order of time. */
static void take_up_log(struct watcher *w, uint32_t rank) {
    if (logread_open(&w->logs[rank]))
        logmerge_add(&w->merge, rank);
    else
        read_log(w, rank);
}

/* Shows what the logs with news have, the oldest first, up to one turn's worth. Returns whether one
 * may have more. */
static bool read_logs(struct watcher *w) {
    size_t bytes = 0, pieces = 0;
    uint32_t rank;

    if (!w->follow)
        return false;
    logmerge_clear(&w->merge);
    for (rank = 0; rank < w->plan.n_tasks; rank++)
        if (!w->logs[rank].is_done && (w->has_news[rank] || is_over(w, rank)))
            take_up_log(w, rank);
    while (bytes < TURN_BYTES && pieces++ < TURN_PIECES && logmerge_first(&w->merge, &rank)) {
        const ssize_t n = read_log(w, rank);

        if (n < 0)
            logmerge_drop(&w->merge);
        else
            logmerge_read(&w->merge);
        bytes += n > 0 ? (size_t)n : 0;
    }
    follow_tick(w->follow, clock_monotonic_us());
    return w->merge.n > 0;
}

/* The file of one task has changed; of which one, its name says. */
static void note_log(struct watcher *w, const char *file) {
    const char *suffix = strrchr(file, '.');
    char name[sizeof((struct task_name *)0)->text];
    int64_t rank;

    if (!suffix || strcmp(suffix, ".log") != 0 || suffix - file >= (ptrdiff_t)sizeof name)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(suffix - file), file);
    rank = plan_find_named(&w->plan, name);
    if (rank >= 0)
        w->has_news[rank] = true;
}

/* Tasks whose logs are there have written. The others are opened when their logs come up, which is
 * told: a task that writes nothing costs nothing. */
static void look_for_logs(struct watcher *w) {
    DIR *directory = file_list_linkless(w->logs_path);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory)))
        note_log(w, entry->d_name);
    if (directory)
        closedir(directory);
}

/* ---- attempts ---- */

/* An attempt is over, and its logs were not shown to their end: the journal waits until they
 * were, so that what it says of the next attempt comes behind them. */
static bool is_held(const struct watcher *w) {
    return w->follow && w->n_drained < w->record->n_over && !state_is_final(w->record->state);
}

/* The logs of this attempt are those that are watched from now on. */
static void enter_attempt(struct watcher *w, uint32_t attempt) {
    w->attempt = attempt;
    w->logs_path = rundir_attempt_logs(w->rundir, attempt, &w->arena);
    /* Without a notification the slow look remains. */
    if (w->options->listener < 0)
        inotify_add_watch(w->notify_fd, w->logs_path, IN_MODIFY | IN_CREATE);
}

/* The logs of the tasks, from their start, in the directory of the attempt. */
static void open_logs(struct watcher *w) {
    for (uint32_t rank = 0; rank < w->plan.n_tasks; rank++) {
        if (w->logs[rank].is_left_out)
            continue;
        logread_release(&w->logs[rank]);
        logread_init(&w->logs[rank], w->logs_path, task_name(&w->plan.tasks[rank]).text,
                     w->logs[rank].manner);
        if (w->options->from_end && !w->has_caught_up)
            logread_skip_to_end(&w->logs[rank]);
        w->has_skipped |= w->logs[rank].offset > 0;
    }
    look_for_logs(w);
}

static void follow_attempt(struct watcher *w) {
    if (!w->follow || w->attempt >= record_attempt(w->record))
        return;
    enter_attempt(w, record_attempt(w->record));
    w->follow->attempt = w->attempt;
    for (uint32_t rank = 0; rank < w->plan.n_tasks; rank++)
        follow_goes_on(w->follow, rank);
    open_logs(w);
}

/* The journal has said which tasks there are: their logs can be followed. */
static void begin_following(struct watcher *w) {
    const struct watch_options *options = w->options;
    const struct follow_options shown = { .out = options->out,
                                          .style = options->style,
                                          .has_status = true };

    if (w->follow || w->record->n_tasks == 0 || !(options->out || options->follow))
        return;
    w->plan = record_plan(w->record);
    w->has_news = calloc(w->plan.n_tasks, sizeof *w->has_news);
    if (!w->has_news)
        abort();
    enter_attempt(w, options->attempt);
    w->follow = options->follow;
    w->logs = options->logs;
    if (w->follow) { /* it has shown those before */
        logmerge_init(&w->merge, w->logs, w->plan.n_tasks);
        w->n_drained = options->attempt;
        look_for_logs(w);
        return;
    }
    w->follow = &w->own_follow;
    follow_init(w->follow, &w->plan, &shown);
    w->logs = w->own_logs = calloc(w->plan.n_tasks, sizeof *w->logs);
    if (!w->logs)
        abort();
    for (uint32_t rank = 0; rank < w->plan.n_tasks; rank++)
        w->logs[rank] =
            (struct logread){ .manner = w->plan.n_tasks > 1 ? LOGREAD_TIMES : LOGREAD_BYTES,
                              .fd = -1 };
    logmerge_init(&w->merge, w->logs, w->plan.n_tasks);
    open_logs(w);
}

/* ---- the journal ---- */

static void feed_line(struct watcher *w, const char *line, size_t n) {
    const char *notice;

    record_feed(w->record, line, n, &notice);
    begin_following(w);
    follow_attempt(w);
    if (notice && (w->has_caught_up || !w->options->from_end))
        say(w, "%s", notice);
}

/* Feeds the whole lines that were read, up to one that holds the others back. */
static void feed_lines(struct watcher *w) {
    size_t at = 0;
    char *end;

    while (!is_held(w) && (end = memchr(w->journal.data + at, '\n', w->journal.len - at))) {
        feed_line(w, w->journal.data + at, (size_t)(end - w->journal.data) - at);
        at = (size_t)(end - w->journal.data) + 1;
    }
    if (at == 0)
        return;
    memmove(w->journal.data, w->journal.data + at, w->journal.len - at);
    w->journal.len -= at;
    w->journal.data[w->journal.len] = '\0';
}

/* A supervisor that puts its journal back makes a new file, which begins as the old one did. Where
 * there is none the old one stays: it may be the run's directory that was removed. */
static void open_journal(struct watcher *w) {
    struct stat ours, there;
    int fd;

    if (w->journal_fd >= 0 && (fstat(w->journal_fd, &ours) < 0 || ours.st_nlink > 0 ||
                               lstat(w->rundir->journal, &there) < 0))
        return;
    fd = journal_open_to_read(w->rundir);
    if (fd < 0)
        return;
    if (w->journal_fd >= 0)
        close(w->journal_fd);
    w->journal_fd = fd;
}

static void read_journal(struct watcher *w) {
    struct error err;
    ssize_t n;

    open_journal(w);
    feed_lines(w);
    while (w->journal_fd >= 0 && !is_held(w) &&
           (n = pread(w->journal_fd, w->bytes, sizeof w->bytes, w->journal_at)) > 0) {
        w->journal_at += n;
        if (buf_append(&w->journal, w->bytes, (size_t)n, &err))
            buf_clear(&w->journal); /* no line of ours is that long */
        feed_lines(w);
    }
}

/* By the directory that was open before it was removed, too. */
static bool run_lives(const struct watcher *w, pid_t *pid) {
    switch (owner_look(w->rundir, pid)) {
    case OWNER_LIVES: return true;
    case OWNER_IS_HIDDEN:
        /* Without a descriptor to spare the directory that is open says it. */
        return w->directory < 0 || presence_is_held_at(w->directory);
    case OWNER_IS_GONE: break;
    }
    return presence_is_held_at(w->directory);
}

static bool is_removed(const struct watcher *w) {
    struct stat st;

    return w->directory >= 0 && lstat(w->rundir->path, &st) < 0 && errno == ENOENT;
}

/* The last line is written a moment before its writer is gone: nothing of a run is left only then.
 */
static void wait_for_owner(const struct watcher *w) {
    const struct timespec pause = { .tv_nsec = 500000 };
    struct pollfd bell = { .fd = w->options->listener, .events = POLLIN };
    uint32_t heard[64];
    pid_t pid;

    while (bell.fd >= 0 && poll(&bell, 1, OWNER_WAIT_MS) > 0)
        if (bell_hear(bell.fd, heard, ARRAY_LEN(heard)) < 0)
            break;
    for (int i = 0; i < OWNER_WAITS_MOST && run_lives(w, &pid); i++)
        nanosleep(&pause, NULL);
}

static void finish(struct watcher *w, enum watch_outcome outcome) {
    w->outcome = outcome;
    event_base_loopbreak(w->base);
}

/* Lines that nobody gets are no reason to leave a run whose end the caller waits for. */
static void look_at_reader(struct watcher *w) {
    struct error err;

    if (!w->follow || follow_is_read(w->follow))
        return;
    if (w->options->ends_unread)
        finish(w, WATCH_LEFT);
    else if (!w->has_told_trouble && follow_check(w->follow, &err))
        say(w, "%s; the logs are whole", err.message);
    w->has_told_trouble = true;
}

/* More than one turn's worth is read in several, with signals answered in between. */
static void look(struct watcher *w) {
    const struct timeval hold = { .tv_usec = FOLD_HOLD_US };

    read_journal(w);
    w->has_caught_up |= !is_held(w);
    if (read_logs(w)) {
        event_active(w->more_event, EV_TIMEOUT, 0);
        return;
    }
    if (is_held(w)) {
        follow_settle(w->follow);
        w->n_drained = w->record->n_over;
        event_active(w->more_event, EV_TIMEOUT, 0);
        return;
    }
    if (w->follow && follow_holds(w->follow) && !evtimer_pending(w->fold_event, NULL))
        evtimer_add(w->fold_event, &hold);
    if (!state_is_final(w->record->state))
        return;
    if (w->follow)
        follow_settle(w->follow);
    wait_for_owner(w);
    finish(w, WATCH_OVER);
}

/* ---- events ---- */

static void note_news(struct watcher *w, const struct inotify_event *event) {
    if (!w->follow)
        return;
    if (event->mask & IN_Q_OVERFLOW)
        look_for_logs(w);
    if (event->len)
        note_log(w, event->name);
}

static void on_notify(evutil_socket_t fd, short what, void *context) {
    struct watcher *w = context;
    ssize_t n;

    (void)what;
    while ((n = read(fd, w->bytes, sizeof w->bytes)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(w->bytes + at);

            note_news(w, event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    look(w);
}

/* Ends when the run has: the last of its processes held the bell. */
static void on_bell(evutil_socket_t fd, short what, void *context) {
    struct watcher *w = context;
    uint32_t *heard = (uint32_t *)(void *)w->bytes;
    const int n = bell_hear(fd, heard, sizeof w->bytes / sizeof *heard);

    (void)what;
    for (int i = 0; w->follow && i < n; i++)
        if (heard[i] == BELL_ALL)
            look_for_logs(w);
        else if (heard[i] < w->plan.n_tasks)
            w->has_news[heard[i]] = true;
    if (n < 0) {
        event_del(w->notify_event);
        event_active(w->look_event, EV_TIMEOUT, 0);
    } else
        look(w);
}

static void on_more(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    look(context);
}

static void on_resize(evutil_socket_t fd, short what, void *context) {
    struct watcher *w = context;
    pid_t pid;

    (void)fd, (void)what;
    if (w->follow && w->has_looked && owner_lives(w->rundir, &pid))
        follow_show_status(w->follow, w->record, pid);
}

/* What the journal and the logs hold was not shown whole yet. */
static bool has_more(const struct watcher *w) {
    return is_held(w) || evtimer_pending(w->more_event, NULL);
}

/* A task may have suspended those who would end the run. Who only looks leaves them alone. */
static void continue_owner(struct watcher *w, pid_t pid) {
    if (w->options->signals_stop)
        keeper_continue(pid, w->interrupts > 0 ? &w->suspension : NULL);
}

static void on_look(evutil_socket_t fd, short what, void *context) {
    const struct timeval again = clock_timeval(LOOK_EVERY_MS);
    struct watcher *w = context;
    pid_t pid;

    (void)fd, (void)what;
    if (w->key_event)
        event_add(w->key_event, NULL);
    if (w->follow)
        look_for_logs(w); /* a notification may have been lost */
    look(w);
    look_at_reader(w);
    if (has_more(w)) {
        evtimer_add(w->look_event, &again);
        return;
    }
    if (!state_is_final(w->record->state) && !run_lives(w, &pid)) {
        read_journal(w); /* the owner may have gone right after its last line */
        if (!state_is_final(w->record->state))
            supervisor_settle(w->rundir, SETTLE_PATIENTLY);
        look(w);
        if (!state_is_final(w->record->state) && !has_more(w))
            /* another host's run, or one that cannot be written to */
            finish(w, is_removed(w) ? WATCH_GONE : WATCH_LEFT);
    } else if (!state_is_final(w->record->state)) {
        continue_owner(w, pid);
        if (w->follow && w->has_looked)
            follow_show_status(w->follow, w->record, pid);
    }
    w->has_looked = true; /* a run of less than a second shows no status line */
    evtimer_add(w->look_event, &again);
}

static void stop_run(struct watcher *w, int number) {
    struct error err;
    bool again = w->interrupts++ > 0;

    say(w, again ? "%s again: killing the tasks" : "%s: stopping the tasks; once more kills them",
        signal_name(number).text);
    if (w->interrupts > 2) {
        say(w, "left while tasks are still ending");
        finish(w, WATCH_LEFT);
    } else if (owner_signal(w->rundir, again ? KEEPER_KILL : KEEPER_STOP, &err)) {
        say(w, "%s", err.message);
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

/* While no key can be read, the terminal may say all the time that there is one: the look that
 * comes once a second asks again. */
static void on_key(evutil_socket_t fd, short what, void *context) {
    struct watcher *w = context;
    const enum keys_answer answer = keys_take();

    (void)fd, (void)what;
    if (answer == KEYS_QUIT)
        finish(w, WATCH_LEFT);
    else if (answer == KEYS_GO_ON)
        event_add(w->key_event, NULL);
}

/* ---- the life of a watcher ---- */

static void listen_for_keys(struct watcher *w) {
    const int keyboard = w->options->q_leaves ? keys_begin() : -1;

    if (keyboard < 0)
        return;
    w->key_event = event_new(w->base, keyboard, EV_READ, on_key, w);
    if (!w->key_event)
        abort();
    event_add(w->key_event, NULL);
}

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

/* What the system has of these is shared with all of a user's programs, and may be used up. */
static bool is_used_up(int errnum) {
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOSPC || errnum == ENOMEM;
}

/* Without notifications the look that comes once a second finds all of it, only later. */
static int watch_files(struct watcher *w, struct error *err) {
    w->notify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->notify_fd >= 0 &&
        inotify_add_watch(w->notify_fd, w->rundir->path, IN_MODIFY | IN_CREATE) >= 0 &&
        inotify_add_watch(w->notify_fd, w->rundir->logs, IN_MODIFY | IN_CREATE) >= 0)
        return 0;
    return is_used_up(errno) ? 0
                             : error_set_errno(err, errno, "cannot watch run %s", w->rundir->id);
}

static int watcher_init(struct watcher *w, struct error *err) {
    if (descriptors_check(DESCRIPTORS_OF_LOOP, err))
        return -1;
    w->base = event_base_new();
    if (!w->base)
        abort();
    if (w->notify_fd < 0 && watch_files(w, err))
        return -1;
    /* One without a descriptor never comes. */
    w->notify_event = event_new(w->base, w->notify_fd, w->notify_fd >= 0 ? EV_READ | EV_PERSIST : 0,
                                w->options->listener >= 0 ? on_bell : on_notify, w);
    w->look_event = evtimer_new(w->base, on_look, w);
    w->more_event = evtimer_new(w->base, on_more, w);
    w->fold_event = evtimer_new(w->base, on_more, w);
    w->resize_event = evsignal_new(w->base, SIGWINCH, on_resize, w);
    if (!w->notify_event || !w->look_event || !w->more_event || !w->fold_event || !w->resize_event)
        abort();
    event_add(w->notify_event, NULL);
    event_add(w->resize_event, NULL);
    event_active(w->look_event, EV_TIMEOUT, 0);
    add_signals(w);
    listen_for_keys(w); /* behind the signals, whose handlers it leaves alone */
    return 0;
}

static void watcher_release(struct watcher *w) {
    keys_end();
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        if (w->signal_events[i])
            event_free(w->signal_events[i]);
    struct event *const events[] = { w->notify_event, w->look_event,   w->more_event,
                                     w->fold_event,   w->resize_event, w->key_event };

    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (events[i])
            event_free(events[i]);
    if (w->notify_fd >= 0)
        close(w->notify_fd);
    if (w->journal_fd >= 0)
        close(w->journal_fd);
    if (w->directory >= 0)
        close(w->directory);
    if (w->follow) {
        follow_settle(w->follow);
        follow_hide_status(w->follow);
        look_at_reader(w);
    }
    for (uint32_t rank = 0; w->own_logs && rank < w->plan.n_tasks; rank++)
        logread_release(&w->own_logs[rank]);
    if (w->follow == &w->own_follow)
        follow_release(w->follow);
    logmerge_release(&w->merge);
    free(w->own_logs);
    free(w->has_news);
    arena_release(&w->arena);
    buf_release(&w->journal);
    if (w->base)
        event_base_free(w->base);
}

int watch_run(const struct rundir *rundir, const struct watch_options *options,
              struct run_record *record, struct watch_end *end, struct error *err) {
    struct watcher w = { .rundir = rundir,
                         .options = options,
                         .record = record,
                         .directory = presence_open(rundir),
                         .journal_fd = -1,
                         .notify_fd = options->listener,
                         .journal = BUF_INIT(UNREAD_LINE_MOST) };
    int status;

    record_init(record, rundir);
    status = watcher_init(&w, err);
    if (status == 0)
        event_base_dispatch(w.base);
    end->outcome = w.outcome;
    end->has_shown_all = w.follow && !w.follow->is_broken && !w.has_skipped;
    if (w.interrupts > 0)
        watch_hold_signals(SIG_BLOCK);
    watcher_release(&w);
    if (w.interrupts > 0) { /* whoever pressed once too often still learns how the run ended */
        signal(SIGINT, SIG_IGN);
        watch_hold_signals(SIG_UNBLOCK);
    }
    return status;
}
