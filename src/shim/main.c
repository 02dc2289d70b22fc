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
#include "shim/shim.h"

enum { GRACE_MS = 30000 };

/* Those that are passed on to the task, and then those that are ours. */
static const int passed_on[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

static void say(const char *what, const char *why) {
    fprintf(stderr, "shim: %s: %s\n", what, why);
}

struct ending shim_ending(const struct shim *shim) {
    return (struct ending){ .has_run = shim->task.phase >= TASK_ENDED && !shim->task.error,
                            .status = shim->task.status,
                            .error = shim->task.error,
                            .refused = shim->refused,
                            .gave_up = shim->gave_up,
                            .log = shim->log.size + shim->log.lost,
                            .lost = shim->log.lost,
                            .unsent = shim->log.size };
}

bool shim_is_watched(const struct shim *shim) {
    (void)shim;
    return false;
}

/* ---- the end */

static void leave(struct shim *shim) {
    loop_end(&shim->loop);
}

/* Everything is there that will ever be: from now on it is only handed over. */
static void settle(struct shim *shim) {
    const struct ending ending = shim_ending(shim);

    if (shim->phase == SHIM_LINGERING)
        return;
    shim->phase = SHIM_LINGERING;
    ending_write(&ending, shim->settings.message);
    leave(shim);
}

static void on_task(struct task *task) {
    struct shim *shim = loop_owner(task, struct shim, task);

    if (task->phase == TASK_ENDED) {
        const struct ending ending = shim_ending(shim);

        loop_cancel(&shim->loop, &shim->last_resort);
        ending_write(&ending, shim->settings.message);
    }
    if (task->phase == TASK_ALONE) {
        log_close(&shim->log);
        settle(shim);
    }
}

static void on_log(struct log *log) {
    (void)log;
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

static int take_signals(struct shim *shim) {
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is a full volume to us */
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&set, passed_on[i]);
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
        return ENDING_OWN_FAILURE;
    }
    if (loop_init(&shim.loop) || task_init(&shim.task, &shim.loop, on_task) ||
        take_signals(&shim)) {
        say("cannot begin", strerror(errno));
        return ENDING_OWN_FAILURE;
    }
    shim.last_resort.fire = on_last_resort;
    make_directories(&shim.settings);
    log_init(&shim.log, &shim.loop, shim.settings.log, shim.settings.log_limit, on_log);
    gang_begin(&gang, &shim);
    loop_run(&shim.loop);
    ending = shim_ending(&shim);
    return ending_code(&ending);
}
