/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool process_read(pid_t pid, struct process *out) {
    char path[32], text[1024], *after;
    long long user, system, user_below, system_below;
    char state;
    int parent, group, fd;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    after = strrchr(text, ')'); /* the name before it may hold anything, ')' included */
    /* Fields 3 to 5, 14 to 17 (times), 22 (start) and 24 (memory), counted from 1. */
    if (!after ||
        sscanf(after + 1,
               " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %*d %*d "
               "%llu %*u %ld",
               &state, &parent, &group, &user, &system, &user_below, &system_below, &out->born,
               &out->pages) != 9)
        return false;
    out->ticks = (uint64_t)(user + system + user_below + system_below);
    out->pid = pid;
    out->parent = parent;
    out->group = group;
    out->is_zombie = state == 'Z' || state == 'X';
    out->is_stopped = state == 'T';
    out->is_ours = false;
    return true;
}

static int by_pid(const void *a, const void *b) {
    const pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;

    return (x > y) - (x < y);
}

static struct process *find(const struct processes *all, pid_t pid) {
    const struct process key = { .pid = pid };

    if (all->list.len == 0)
        return NULL;
    return bsearch(&key, all->list.items, all->list.len, sizeof key, by_pid);
}

static bool is_among(const struct processes *some, const struct process *process) {
    for (size_t i = 0; some && i < some->list.len; i++)
        if (some->list.items[i].pid == process->pid && some->list.items[i].born == process->born)
            return true;
    return false;
}

/* Walks up to the root. The number of steps is bounded, because a picture taken while
 * pids are reused may hold a ring. */
static bool is_below(const struct processes *all, const struct processes *except,
                     const struct process *process, pid_t root) {
    for (size_t steps = 0; steps <= all->list.len; steps++) {
        if (is_among(except, process))
            return false;
        if (process->parent == root)
            return true;
        process = find(all, process->parent);
        if (!process || process->is_ours)
            return process != NULL;
    }
    return false;
}

void descendants_scan(struct processes *found, const struct processes *except) {
    descendants_of(getpid(), found, except);
}

void descendants_of(pid_t root, struct processes *found, const struct processes *except) {
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    size_t kept = 0;

    found->list.len = 0;
    if (!proc)
        return;
    while ((entry = readdir(proc))) {
        struct process process;

        if (isdigit((unsigned char)entry->d_name[0]) &&
            process_read((pid_t)atoi(entry->d_name), &process))
            *VEC_PUSH(&found->list) = process;
    }
    closedir(proc);
    if (found->list.len)
        qsort(found->list.items, found->list.len, sizeof found->list.items[0], by_pid);
    for (size_t i = 0; i < found->list.len; i++)
        found->list.items[i].is_ours = is_below(found, except, &found->list.items[i], root);
    for (size_t i = 0; i < found->list.len; i++)
        if (found->list.items[i].is_ours)
            found->list.items[kept++] = found->list.items[i];
    found->list.len = kept;
}

void processes_release(struct processes *processes) {
    VEC_RELEASE(&processes->list);
}

bool process_is_within_rights(pid_t pid) {
    char path[32];
    struct stat st;

    if (getuid() == geteuid())
        return true;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

bool process_signal(const struct process *process, int number) {
    struct process now;
    bool sent = false;
    int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

    if (fd < 0)
        return false;
    if (process_read(process->pid, &now) && now.born == process->born &&
        process_is_within_rights(process->pid))
        sent = syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
    close(fd);
    return sent;
}
