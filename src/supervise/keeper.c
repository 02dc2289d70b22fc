/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/descendants.h"
#include "base/clock.h"

static_assert(KEEPER_STOP == SIGTERM && KEEPER_KILL == SIGQUIT, "signals are as the header says");

enum {
    SWEEP_FIRST_MS = 5,   /* between two looks at what is left; doubles up to the last */
    SWEEP_LAST_MS = 1000, /* what sleeps in the kernel may do so for hours */
    SUPERVISOR_DONE = 0,
    SUPERVISOR_GAVE_UP = 1,
};

static const char keeper_name[] = "myelin-keeper", supervisor_name[] = "myelin-super";

/* Leaves the terminal and the caller's files: a run outlives both. */
static void detach(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}

/* Forgets what a terminal sent before, and takes signals again, those of `held` still not. Orders
 * are not forgotten: they may come as soon as the keeper's number is known. */
static void begin_anew(const sigset_t *held) {
    static const int numbers[] = { SIGINT, SIGHUP, SIGPIPE, SIGCHLD };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        signal(numbers[i], SIG_IGN); /* which drops a pending one */
        signal(numbers[i], SIG_DFL);
    }
    signal(KEEPER_STOP, SIG_DFL);
    signal(KEEPER_KILL, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_SETMASK, held, NULL);
}

/* Ends all that descends from us, also what forks meanwhile: as long as something ends, the next
 * look comes soon. */
static void sweep(void) {
    for (long ms = SWEEP_FIRST_MS;; ms = ms * 2 < SWEEP_LAST_MS ? ms * 2 : SWEEP_LAST_MS) {
        struct processes left = { 0 };

        while (waitpid(-1, NULL, WNOHANG) > 0)
            ms = SWEEP_FIRST_MS;
        if (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
            return;
        descendants_scan(&left, NULL);
        for (size_t i = 0; i < left.list.len; i++)
            if (!left.list.items[i].is_zombie)
                process_signal(&left.list.items[i], SIGKILL);
        processes_release(&left);
        clock_pause_ms(ms);
    }
}

/* What a keeper knows of its supervisor. */
struct charge {
    pid_t supervisor;
    int order;                    /* the severest so far, 0: none */
    struct suspension suspension; /* since the first order */
    enum keeper_loss loss;
};

/* A supervisor that sleeps takes no order. */
static void hand_on(struct charge *charge, int number) {
    if (charge->order == 0)
        charge->suspension = (struct suspension){ 0 };
    charge->order = charge->order == KEEPER_KILL ? KEEPER_KILL : number;
    kill(charge->supervisor, number);
    kill(charge->supervisor, SIGCONT);
}

/* Without an order, a supervisor that is suspended in a loop still has the moments in between. */
static void continue_supervisor(struct charge *charge) {
    const bool is_over = suspension_seen(&charge->suspension, clock_monotonic_us());

    if (charge->order && is_over)
        charge->loss = KEEPER_SUSPENDED;
    kill(charge->supervisor, charge->loss == KEEPER_SUSPENDED ? SIGKILL : SIGCONT);
}

/* Hands signals on and reaps until the supervisor is gone; returns how it ended. */
static int watch(struct charge *charge, const sigset_t *signals) {
    for (;;) {
        int status, number = sigwaitinfo(signals, NULL);
        pid_t pid;

        if (number == KEEPER_STOP || number == KEEPER_KILL)
            hand_on(charge, number);
        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
            if (pid == charge->supervisor && !WIFSTOPPED(status))
                return status;
            if (pid == charge->supervisor)
                continue_supervisor(charge);
        }
    }
}

static void fill_orders(sigset_t *orders) {
    sigemptyset(orders);
    sigaddset(orders, KEEPER_STOP);
    sigaddset(orders, KEEPER_KILL);
}

void keeper_take_orders(void) {
    sigset_t orders;

    fill_orders(&orders);
    sigprocmask(SIG_UNBLOCK, &orders, NULL);
}

static void supervisor_main(const struct keeper_work *work, pid_t keeper) {
    sigset_t orders;
    int status;

    prctl(PR_SET_NAME, supervisor_name);
    fill_orders(&orders);
    sigprocmask(SIG_SETMASK, &orders, NULL);
    prctl(PR_SET_PDEATHSIG, KEEPER_STOP);
    if (getppid() != keeper)
        raise(KEEPER_STOP); /* it was gone before the kernel could be asked to tell */
    status = work->supervise(work->context, keeper) ? SUPERVISOR_GAVE_UP : SUPERVISOR_DONE;
    if (getppid() == keeper)
        kill(keeper, SIGCONT); /* one that is suspended would never learn of the end */
    _exit(status);
}

static void keeper_main(const struct keeper_work *work) {
    const pid_t keeper = getpid();
    struct charge charge = { 0 };
    sigset_t signals;
    int status;

    prctl(PR_SET_NAME, keeper_name);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fill_orders(&signals);
    sigaddset(&signals, SIGCHLD);
    begin_anew(&signals);
    do {
        charge.supervisor = fork();
        charge.loss = KEEPER_LOST;
        if (charge.supervisor == 0)
            supervisor_main(work, keeper);
        if (charge.supervisor > 0 && charge.order)
            kill(charge.supervisor, charge.order); /* the one before may have died with it */
        status = SUPERVISOR_GAVE_UP << 8;          /* as of waitpid, as if it had exited */
        if (charge.supervisor > 0)
            status = watch(&charge, &signals);
        if (status == SUPERVISOR_DONE)
            _exit(0);
        sweep();
    } while (work->revives && work->revives(work->context, status));
    work->orphaned(work->context, status, charge.loss);
    _exit(1);
}

int keeper_start(const struct keeper_work *work, pid_t *pid, struct error *err) {
    sigset_t all, before;
    pid_t keeper;
    int errnum;

    /* An interrupt at the terminal is the caller's to answer, also one that comes before the
     * keeper has left the caller's process group. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    keeper = fork();
    errnum = errno;
    if (keeper == 0) {
        detach();
        keeper_main(work);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (keeper < 0)
        return error_set_errno(err, errnum, "cannot make a process for the supervisor");
    *pid = keeper;
    return 0;
}

/* ---- from outside ---- */

static bool is_named(pid_t pid, const char *wanted) {
    char path[32], name[32] = "";
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, name, sizeof name - 1);
    close(fd);
    if (n > 0 && name[n - 1] == '\n')
        name[n - 1] = '\0';
    return strcmp(name, wanted) == 0;
}

bool keeper_is_supervisor(pid_t pid) {
    return is_named(pid, supervisor_name);
}

void keeper_kill_below(pid_t pid) {
    struct processes below = { 0 };

    descendants_of(pid, &below, NULL);
    for (size_t i = 0; i < below.list.len; i++)
        if (!below.list.items[i].is_zombie)
            process_signal(&below.list.items[i], SIGKILL);
    processes_release(&below);
}

void keeper_continue(pid_t keeper, struct suspension *suspension) {
    struct process process;

    /* The number comes from a file, and may be that of any process by now. */
    if (keeper <= 1 || !process_read(keeper, &process) || !process.is_stopped ||
        !is_named(keeper, keeper_name))
        return;
    if (suspension && suspension_seen(suspension, clock_monotonic_us()))
        keeper_kill_below(keeper);
    process_signal(&process, SIGCONT);
}
