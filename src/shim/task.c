/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REST_MS = 1000,    /* for what the command leaves behind */
    AGAIN_MS = 100,    /* between two looks at what does not die */
    GIVE_UP_MS = 10000 /* a process that SIGKILL does not end hangs in the kernel */
};

static void on_exec(struct loop_watch *watch, uint32_t events);
static void on_rest(struct loop_timer *timer);

void task_init(struct task *task, struct loop *loop, void (*changed)(struct task *task)) {
    *task = (struct task){ .loop = loop,
                           .changed = changed,
                           .exec = { .fd = -1, .ready = on_exec },
                           .rest = { .fire = on_rest } };
    /* The first process of a namespace is the reaper anyway. Where another one may not be (an
     * emulator, a filter of system calls) orphans are somebody else's, and the task runs all the
     * same. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    getrlimit(RLIMIT_NOFILE, &task->nofile);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){ task->nofile.rlim_max, task->nofile.rlim_max });
}

static void enter(struct task *task, enum task_phase phase) {
    task->phase = phase;
    task->changed(task);
}

static _Noreturn void become(const struct task *task, char **command, char **environment,
                             int output, int told) {
    sigset_t none;
    int error;

    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_NOFILE, &task->nofile);
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execvpe(command[0], command, environment);
    error = errno;
    (void)!write(told, &error, sizeof error);
    _exit(127);
}

int task_start(struct task *task, char **command, char **environment, int output) {
    int told[2];

    if (pipe2(told, O_CLOEXEC | O_NONBLOCK))
        return -1;
    task->pid = fork();
    if (task->pid < 0) {
        const int error = errno;

        close(told[0]);
        close(told[1]);
        errno = error;
        return -1;
    }
    if (task->pid == 0)
        become(task, command, environment, output, told[1]);
    /* in both, so that a signal that comes now finds the group */
    setpgid(task->pid, task->pid);
    close(told[1]);
    task->exec.fd = told[0];
    loop_watch(task->loop, &task->exec, EPOLLIN);
    enter(task, TASK_STARTING);
    return 0;
}

/* The errno of a command that could not be executed, or 0 from a pipe that has ended. */
static int read_error(int fd) {
    int error;

    return read(fd, &error, sizeof error) == (ssize_t)sizeof error ? error : 0;
}

static void learn_of_exec(struct task *task) {
    if (task->exec.fd < 0)
        return;
    task->error = read_error(task->exec.fd);
    loop_unwatch(task->loop, &task->exec);
    close(task->exec.fd);
    task->exec.fd = -1;
}

static void on_exec(struct loop_watch *watch, uint32_t events) {
    struct task *task = loop_owner(watch, struct task, exec);

    (void)events;
    learn_of_exec(task);
    if (!task->error)
        enter(task, TASK_RUNNING);
}

void task_signal(struct task *task, int number) {
    if (task->phase == TASK_STARTING || task->phase == TASK_RUNNING)
        kill(-task->pid, number);
}

/* The parent of a process, by the fourth field of its stat; the second may hold anything. */
static pid_t parent_of(const char *pid) {
    char path[64], text[512];
    const char *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return -1;
    text[n] = '\0';
    end = strrchr(text, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

/* Kills our children. What they leave becomes ours in turn, and its time comes with the next look.
 */
static void kill_children(void) {
    DIR *all = opendir("/proc");
    const struct dirent *entry;

    while (all && (entry = readdir(all)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            parent_of(entry->d_name) == getpid())
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (all)
        closedir(all);
}

static void on_rest(struct loop_timer *timer) {
    struct task *task = loop_owner(timer, struct task, rest);

    if (loop_now_ms() - task->ended_ms > GIVE_UP_MS) {
        enter(task, TASK_ALONE);
        return;
    }
    kill_children();
    loop_after(task->loop, &task->rest, AGAIN_MS);
}

void task_reap(struct task *task) {
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != task->pid || task->phase >= TASK_ENDED)
            continue;
        learn_of_exec(task);
        task->status = status;
        task->ended_ms = loop_now_ms();
        loop_after(task->loop, &task->rest, REST_MS);
        enter(task, TASK_ENDED);
    }
    if (pid < 0 && errno == ECHILD && task->phase == TASK_ENDED) {
        loop_cancel(task->loop, &task->rest);
        enter(task, TASK_ALONE);
    }
}
