/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/stranded.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/local/descendants.h"
#include "base/clock.h"
#include "supervise/keeper.h"

/* A dead keeper may stay as a zombie for ever: the first process of a container often reaps none.
 */
bool is_stranded(pid_t keeper) {
    const int fd = keeper > 0 ? (int)syscall(SYS_pidfd_open, keeper, 0) : -1;
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    bool is_dead;

    if (fd < 0)
        return keeper > 0 && errno == ESRCH;
    is_dead = poll(&ended, 1, 0) == 1;
    close(fd);
    return is_dead;
}

static bool has_open(pid_t pid, const struct stat *wanted) {
    const struct dirent *entry;
    struct stat st;
    bool has = false;
    char path[32];
    DIR *files;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    files = opendir(path);
    while (files && !has && (entry = readdir(files)))
        has = fstatat(dirfd(files), entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode) &&
              st.st_dev == wanted->st_dev && st.st_ino == wanted->st_ino;
    if (files)
        closedir(files);
    return has;
}

static bool find(const struct rundir *rundir, struct process *out) {
    const struct dirent *entry;
    struct stat directory;
    bool found = false;
    DIR *proc;

    if (stat(rundir->path, &directory) < 0)
        return false;
    proc = opendir("/proc");
    while (proc && !found && (entry = readdir(proc))) {
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)atoi(entry->d_name) : 0;

        found = pid > 0 && keeper_is_supervisor(pid) && process_read(pid, out) &&
                has_open(pid, &directory);
    }
    if (proc)
        closedir(proc);
    return found;
}

bool stranded_signal(const struct rundir *rundir, int number) {
    struct process supervisor;

    if (!find(rundir, &supervisor) || !process_signal(&supervisor, number))
        return false;
    process_signal(&supervisor, SIGCONT);
    return true;
}

void stranded_continue(const struct rundir *rundir, struct suspension *suspension) {
    struct process supervisor;

    if (!find(rundir, &supervisor) || !supervisor.is_stopped)
        return;
    if (suspension_seen(suspension, clock_monotonic_us())) {
        keeper_kill_below(supervisor.pid);
        process_signal(&supervisor, SIGKILL);
    } else {
        process_signal(&supervisor, SIGCONT);
    }
}
