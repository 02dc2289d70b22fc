/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/affinity.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/local/descendants.h"

enum { LOOKS_MOST = 4 };

static bool move_thread(pid_t id, const struct cpus *from, const struct cpus *to) {
    struct cpus now = { 0 };

    return syscall(SYS_sched_getaffinity, id, sizeof now.words, now.words) > 0 &&
           cpus_are_equal(&now, from) &&
           syscall(SYS_sched_setaffinity, id, sizeof to->words, to->words) == 0;
}

static uint32_t move_process(pid_t pid, const struct cpus *from, const struct cpus *to) {
    struct dirent *entry;
    uint32_t n = 0;
    char path[32];
    DIR *threads;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads && (entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            n += move_thread((pid_t)atoi(entry->d_name), from, to);
    if (threads)
        closedir(threads);
    return n;
}

uint32_t affinity_move(const struct cpus *from, const struct cpus *to) {
    struct processes found = { 0 };
    uint32_t total = 0, moved = 1;

    for (int i = 0; i < LOOKS_MOST && moved > 0; i++) {
        moved = 0;
        descendants_scan(&found, NULL);
        for (size_t k = 0; k < found.list.len; k++)
            if (!found.list.items[k].is_zombie)
                moved += move_process(found.list.items[k].pid, from, to);
        total += moved;
    }
    processes_release(&found);
    return total;
}
