/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/descendants.h"

#define NO_TASK UINT32_MAX

/* A process with the task that it belongs to. */
struct member {
    const struct process *process;
    uint32_t task;
};

struct picture {
    struct processes all;
    struct member *members; /* by pid, as the list of all */
};

static int by_pid(const void *a, const void *b) {
    const pid_t x = ((const struct member *)a)->process->pid;
    const pid_t y = ((const struct member *)b)->process->pid;

    return (x > y) - (x < y);
}

static struct member *find(const struct picture *picture, pid_t pid) {
    const struct process process = { .pid = pid };
    const struct member key = { .process = &process };

    return bsearch(&key, picture->members, picture->all.list.len, sizeof key, by_pid);
}

/* Walks up to the task's process, or to one whose task is known. Bounded: a picture may hold a
 * ring. */
static uint32_t task_of(const struct picture *picture, const struct member *member) {
    for (size_t steps = 0; member && steps <= picture->all.list.len; steps++) {
        if (member->task != NO_TASK)
            return member->task;
        member = find(picture, member->process->parent);
    }
    return NO_TASK;
}

/* "rchar: 123\nwchar: 45\n…". */
static void add_io(pid_t pid, struct task_usage *usage) {
    unsigned long long in, out;
    char path[32], text[512];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    if (sscanf(text, "rchar: %llu wchar: %llu", &in, &out) != 2)
        return;
    usage->read_bytes += in;
    usage->written_bytes += out;
}

static void add_process(const struct process *process, struct task_usage *usage) {
    usage->is_known = true;
    usage->cpu_seconds += (double)process->ticks / (double)sysconf(_SC_CLK_TCK);
    usage->memory_bytes += (uint64_t)process->pages * (uint64_t)sysconf(_SC_PAGESIZE);
    usage->n_processes++;
    add_io(process->pid, usage);
}

void usage_look(const pid_t *roots, uint32_t n, struct task_usage *out) {
    struct picture picture = { 0 };
    size_t n_all;

    memset(out, 0, n * sizeof *out);
    descendants_scan(&picture.all, NULL);
    n_all = picture.all.list.len;
    picture.members = calloc(n_all ? n_all : 1, sizeof *picture.members);
    if (!picture.members)
        abort();
    for (size_t i = 0; i < n_all; i++)
        picture.members[i] = (struct member){ &picture.all.list.items[i], NO_TASK };
    for (uint32_t i = 0; i < n; i++) {
        struct member *member = roots[i] ? find(&picture, roots[i]) : NULL;

        if (member)
            member->task = i;
    }
    for (size_t i = 0; i < n_all; i++) {
        const uint32_t task = task_of(&picture, &picture.members[i]);

        if (task != NO_TASK && !picture.members[i].process->is_zombie)
            add_process(picture.members[i].process, &out[task]);
    }
    free(picture.members);
    processes_release(&picture.all);
}
