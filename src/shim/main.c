/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of a task's container: docs/shim.md. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/gang.h"
#include "shim/routes.h"
#include "shim/shim.h"

enum {
    GRACE_MS = 30000,
    GANG_MS = 5000,
    LEAVING_MS = 1000, /* for answers and the live view, on their way out */
    LEAVING_LOOK_MS = 20,
    CONNECTIONS = 128, /* besides those of the gang */
};

/* Those that are passed on to the task, besides the real-time ones, which an image may have as its
 * STOPSIGNAL. */
static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

static void say(const char *what, const char *why) {
    fprintf(stderr, "shim: %s: %s\n", what, why);
}

/* How the task ended, so far as that is known. */
static struct ending ending_of(const struct shim *shim) {
    return (struct ending){ .has_run = shim->task.phase >= TASK_ENDED && !shim->task.error,
                            .status = shim->task.status,
                            .error = shim->task.error,
                            .refused = shim->refused,
                            .gave_up = shim->gave_up,
                            .log = shim->log.size + shim->log.lost,
                            .lost = shim->log.lost,
                            .unsent = shim->is_released ? 0 : shim->unsent };
}

bool shim_is_watched(const struct shim *shim) {
    return shim->stream.connection != NULL;
}

/* ---- the end */

/* How much of log, spool and outputs nobody has. */
static uint64_t count_unsent(struct shim *shim) {
    const uint64_t log = acks_get(&shim->acks, "log");
    uint64_t sum = shim->log.size > log ? shim->log.size - log : 0;

    sum += spool_unsent(shim->settings.spool, &shim->acks);
    if (shim->settings.sends_outputs)
        sum += outputs_unsent(shim->settings.outputs, &shim->acks);
    return sum;
}

static void write_message(struct shim *shim) {
    const struct ending ending = ending_of(shim);

    ending_print(&ending, shim->message);
    ending_write(shim->settings.message, shim->message);
}

static void leave(struct shim *shim) {
    if (shim->phase == SHIM_LEAVING)
        return;
    shim->phase = SHIM_LEAVING;
    stream_finish(&shim->stream);
    if (!shim->is_released)
        shim->unsent = count_unsent(shim);
    write_message(shim);
    shim->leaving_ms = loop_now_ms();
    loop_after(&shim->loop, &shim->leave, 0);
}

static void on_leave(struct loop_timer *timer) {
    struct shim *shim = loop_owner(timer, struct shim, leave);

    if ((server_is_quiet(&shim->server) && log_is_shown(&shim->log)) ||
        loop_now_ms() - shim->leaving_ms > LEAVING_MS)
        loop_end(&shim->loop);
    else
        loop_after(&shim->loop, timer, LEAVING_LOOK_MS);
}

void shim_release(struct shim *shim) {
    shim->is_released = true;
    if (shim->phase == SHIM_LEAVING)
        write_message(shim); /* which said that something was left */
    else
        leave(shim);
}

/* How long somebody is waited for who takes what is left, or who says farewell. */
static int64_t patience_ms(const struct shim *shim) {
    const struct ending ending = ending_of(shim);
    const int64_t linger = shim->settings.key ? shim->settings.linger_ms : 0;
    const int64_t farewell = ending_code(&ending) == 0 ? shim->farewell_ms : 0;

    return linger > farewell ? linger : farewell;
}

static void on_linger(struct loop_timer *timer) {
    struct shim *shim = loop_owner(timer, struct shim, linger);
    const int64_t left = shim->stream.moved_ms + patience_ms(shim) - loop_now_ms();

    if (left <= 0)
        leave(shim);
    else
        loop_after(&shim->loop, timer, left);
}

/* Everything is there that will ever be: from now on it is only handed over. */
static void settle(struct shim *shim) {
    if (shim->phase >= SHIM_LINGERING)
        return;
    shim->phase = SHIM_LINGERING;
    gang_end(shim->member);
    shim->unsent = count_unsent(shim);
    write_message(shim);
    shim_tell_gang(shim, NULL);
    shim->stream.message = shim->message;
    shim->stream.moved_ms = loop_now_ms();
    stream_wake(&shim->stream);
    loop_after(&shim->loop, &shim->linger, patience_ms(shim));
}

static void on_task(struct task *task) {
    struct shim *shim = loop_owner(task, struct shim, task);

    if (task->phase == TASK_ENDED) {
        loop_cancel(&shim->loop, &shim->last_resort);
        gang_end(shim->member);
        shim->unsent = shim->log.size; /* settle knows more */
        write_message(shim);
        shim_tell_gang(shim, NULL);
    }
    if (task->phase == TASK_ALONE) {
        log_close(&shim->log);
        settle(shim);
    }
    stream_wake(&shim->stream);
}

static void on_log(struct log *log) {
    stream_wake(&loop_owner(log, struct shim, log)->stream);
}

/* ---- the gang */

void shim_tell_gang(struct shim *shim, struct connection *newcomer) {
    const struct ending ending = ending_of(shim);
    const bool is_over = shim->phase >= SHIM_LINGERING || shim->task.phase >= TASK_ENDED;
    const enum server_line which = is_over ? SERVER_LAST_LINE : SERVER_LINE;
    char line[32] = "running";

    if (is_over)
        snprintf(line, sizeof line, "ended %d", ending_code(&ending));
    if (newcomer)
        server_tell(newcomer, which, line);
    else
        server_tell_all(&shim->server, which, line);
    if (!shim->gang.is_set)
        loop_after(&shim->loop, &shim->gang, GANG_MS);
}

static void on_gang(struct loop_timer *timer) {
    shim_tell_gang(loop_owner(timer, struct shim, gang), NULL);
}

/* ---- the beginning */

void shim_refuse(struct shim *shim, const char *cause) {
    if (shim->phase != SHIM_WAITING)
        return;
    shim->refused = cause;
    say(shim->command[0], cause);
    settle(shim);
}

void shim_start(struct shim *shim) {
    int output;

    if (shim->phase != SHIM_WAITING)
        return;
    output = log_open(&shim->log);
    if (output < 0 || task_start(&shim->task, shim->command, shim->settings.environment, output)) {
        shim_refuse(shim, strerror(errno));
        return;
    }
    close(output);
    shim->phase = SHIM_RUNNING;
}

/* ---- signals */

void shim_signal(struct shim *shim, int number) {
    if (shim->phase == SHIM_WAITING && number != SIGUSR1 && number != SIGUSR2 && number != SIGWINCH)
        shim_refuse(shim, "it was ended before it was started");
    task_signal(&shim->task, number);
}

static void on_last_resort(struct loop_timer *timer) {
    struct shim *shim = loop_owner(timer, struct shim, last_resort);

    task_signal(&shim->task, SIGKILL);
}

void shim_give_up(struct shim *shim, const char *why) {
    if (shim->gave_up || shim->phase == SHIM_LINGERING)
        return;
    shim->gave_up = why;
    shim_signal(shim, SIGTERM);
    loop_after(&shim->loop, &shim->last_resort, GRACE_MS);
}

static void on_signals(struct loop_watch *watch, uint32_t events) {
    struct shim *shim = loop_owner(watch, struct shim, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(watch->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGCHLD)
        task_reap(&shim->task);
    else
        shim_signal(shim, (int)info.ssi_signo);
}

/* ---- the server */

static void on_asked(struct server *server, struct connection *connection,
                     const struct request *request, const char *body, size_t n) {
    routes_ask(loop_owner(server, struct shim, server), connection, request, body, n);
}

static void on_writable(struct server *server, struct connection *connection) {
    (void)connection;
    stream_pump(&loop_owner(server, struct shim, server)->stream);
}

static void on_closed(struct server *server, struct connection *connection) {
    (void)connection;
    stream_closed(&loop_owner(server, struct shim, server)->stream);
}

/* ---- setting up */

static int take_signals(struct shim *shim) {
    sigset_t set;

    signal(SIGCHLD, SIG_DFL); /* who started us may ignore it, and then nothing could be reaped */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full volume to us */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&set, passed_on[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        sigaddset(&set, number);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;
    shim->signals = (struct loop_watch){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                         .ready = on_signals };
    return shim->signals.fd < 0 ? -1 : loop_watch(&shim->loop, &shim->signals, EPOLLIN);
}

/* The directories are the pod's volumes; where one is missing it is made, and where that fails the
 * task runs without. */
static void make_directories(const struct settings *settings) {
    char logs[PATH_MAX];

    snprintf(logs, sizeof logs, "%s/logs", settings->directory);
    mkdir(settings->directory, 0755);
    mkdir(logs, 0755);
}

static void set_up(struct shim *shim) {
    const struct settings *settings = &shim->settings;

    shim->last_resort.fire = on_last_resort;
    shim->gang.fire = on_gang;
    shim->linger.fire = on_linger;
    shim->leave.fire = on_leave;
    make_directories(settings);
    log_init(&shim->log, &shim->loop, settings->log, settings->log_limit, on_log);
    spool_init(&shim->spool, settings->spool, &shim->acks);
    shim->stream =
        (struct stream){ .loop = &shim->loop,
                         .log = &shim->log,
                         .task = &shim->task,
                         .acks = &shim->acks,
                         .spool = &shim->spool,
                         .outputs_path = settings->sends_outputs ? settings->outputs : NULL };
    stream_init(&shim->stream);
    shim->server = (struct server){ .loop = &shim->loop,
                                    .key = settings->key,
                                    .port = settings->port,
                                    .limit = CONNECTIONS + settings->n_tasks,
                                    .asked = on_asked,
                                    .writable = on_writable,
                                    .closed = on_closed };
    if (settings->key)
        server_open(&shim->server);
}

int main(int argc, char **argv, char **environment) {
    static struct shim shim;
    static struct gang gang;
    const char *wrong;
    struct ending ending;

    if (argc < 2) {
        fprintf(stderr, "usage: shim COMMAND [ARGUMENT]...\n");
        return ENDING_OWN_FAILURE;
    }
    shim.command = argv + 1;
    if (settings_read(&shim.settings, environment, &wrong)) {
        fprintf(stderr, "shim: %s\n", wrong);
        shim.refused = wrong;
        write_message(&shim);
        return ENDING_OWN_FAILURE;
    }
    task_init(&shim.task, &shim.loop, on_task);
    if (loop_init(&shim.loop) || take_signals(&shim)) {
        say("cannot begin", strerror(errno));
        shim.refused = "the shim cannot begin";
        write_message(&shim);
        return ENDING_OWN_FAILURE;
    }
    set_up(&shim);
    gang_begin(&gang, &shim);
    loop_run(&shim.loop);
    ending = ending_of(&shim);
    return ending_code(&ending);
}
