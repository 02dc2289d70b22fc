/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/statusline.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/report.h"

enum {
    LOOK_EVERY_US = 1000 * 1000,
    LOOK_SHARE = 50, /* a look takes at most one part in so many of the time */
};

/* ---- what processes use ---- */

struct entry {
    pid_t pid, parent;
    uint64_t ticks, born;
    int64_t pages;
    enum { UNKNOWN, BELOW, ELSEWHERE } place;
};

typedef VEC(struct entry) entries;

static bool read_entry(pid_t pid, struct entry *out) {
    char path[32], text[1024], *after;
    long long user, system, user_below, system_below;
    int parent, fd;
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
    after = strrchr(text, ')'); /* the name before it may hold anything */
    *out = (struct entry){ .pid = pid };
    /* Fields 4, 14 to 17, 22 and 24. What reaped children used is counted with their parent. */
    if (!after ||
        sscanf(after + 1,
               " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d "
               "%*d %*d %lu %*u %ld",
               &parent, &user, &system, &user_below, &system_below, &out->born, &out->pages) != 7)
        return false;
    out->parent = parent;
    out->ticks = (uint64_t)(user + system + user_below + system_below);
    return true;
}

static int by_pid(const void *a, const void *b) {
    const pid_t x = ((const struct entry *)a)->pid, y = ((const struct entry *)b)->pid;

    return (x > y) - (x < y);
}

static void read_all(entries *all) {
    DIR *proc = opendir("/proc");
    struct dirent *dirent;
    struct entry entry;

    while (proc && (dirent = readdir(proc)))
        if (isdigit((unsigned char)dirent->d_name[0]) &&
            read_entry((pid_t)atoi(dirent->d_name), &entry))
            *VEC_PUSH(all) = entry;
    if (proc)
        closedir(proc);
    if (all->len)
        qsort(all->items, all->len, sizeof *all->items, by_pid);
}

/* Walks up to the root or to what is known, and remembers for the whole way. The steps are
 * bounded: a picture taken while numbers are reused may hold a ring. */
static bool is_below(entries *all, struct entry *entry, pid_t root) {
    struct entry *at = entry;

    for (size_t steps = 0; at && at->place == UNKNOWN && at->pid != root && steps < all->len;
         steps++) {
        const struct entry key = { .pid = at->parent };

        at = bsearch(&key, all->items, all->len, sizeof key, by_pid);
    }
    entry->place = at && (at->pid == root || at->place == BELOW) ? BELOW : ELSEWHERE;
    return entry->place == BELOW;
}

void usage_below(pid_t root, struct usage *out) {
    const double ticks_per_s = (double)sysconf(_SC_CLK_TCK);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct timespec now;
    entries all = { 0 };

    *out = (struct usage){ .root_age_s = -1 };
    clock_gettime(CLOCK_BOOTTIME, &now);
    read_all(&all);
    for (size_t i = 0; i < all.len; i++) {
        struct entry *entry = &all.items[i];

        if (entry->pid == root)
            out->root_age_s =
                (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)entry->born / ticks_per_s;
        if (!is_below(&all, entry, root))
            continue;
        out->ticks += entry->ticks;
        out->memory += (uint64_t)entry->pages * page;
    }
    VEC_RELEASE(&all);
}

/* ---- the line ---- */

void statusline_init(struct statusline *status, int fd) {
    *status = (struct statusline){ .fd = fd, .cpu_percent = -1 };
}

static int64_t now_us(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void look(struct statusline *status, pid_t owner) {
    const int64_t before = now_us();
    struct usage usage;
    int64_t cost;

    if (before < status->next_look_us || owner <= 0)
        return;
    usage_below(owner, &usage);
    if (status->looked_us && usage.ticks >= status->cpu_ticks)
        status->cpu_percent = (double)(usage.ticks - status->cpu_ticks) * 1e8 /
                              (double)sysconf(_SC_CLK_TCK) / (double)(before - status->looked_us);
    status->cpu_ticks = usage.ticks;
    status->memory = usage.memory;
    if (usage.root_age_s >= 0)
        status->elapsed_s = usage.root_age_s;
    status->looked_us = before;
    cost = now_us() - before;
    status->next_look_us =
        before + (cost * LOOK_SHARE > LOOK_EVERY_US ? cost * LOOK_SHARE : LOOK_EVERY_US * 9 / 10);
}

static void word_memory(uint64_t bytes, char *out, size_t size) {
    const double mib = (double)bytes / (1 << 20);

    if (mib < 1024)
        snprintf(out, size, "%.0f MiB", mib);
    else
        snprintf(out, size, "%.1f GiB", mib / 1024);
}

void statusline_update(struct statusline *status, const struct run_record *record, pid_t owner) {
    char cpu[32] = "", memory[32];
    uint32_t running = 0;
    int n;

    look(status, owner);
    for (uint32_t rank = 0; rank < record->n_tasks; rank++)
        running += record->tasks[rank].state == STATE_RUNNING;
    if (status->cpu_percent >= 0)
        snprintf(cpu, sizeof cpu, "CPU %.0f%% · ", status->cpu_percent);
    word_memory(status->memory, memory, sizeof memory);
    n = snprintf(status->text, sizeof status->text, "%s · %u/%u task%s · %s%s · %s",
                 record->phase ? record->phase : state_name(record->state), running,
                 record->n_tasks, record->n_tasks == 1 ? "" : "s", cpu, memory,
                 duration_text(status->elapsed_s).text);
    status->columns = 0;
    for (int i = 0; i < n && i < (int)sizeof status->text; i++)
        status->columns += (status->text[i] & 0xc0) != 0x80;
}

size_t statusline_erase(struct statusline *status, char out[static STATUSLINE_BYTES]) {
    if (!status->is_drawn)
        return 0;
    status->is_drawn = false;
    return (size_t)snprintf(out, STATUSLINE_BYTES, "\r\x1b[K");
}

/* One column stays free: a line that fills the last one would wrap in some terminals. */
size_t statusline_draw(struct statusline *status, char out[static STATUSLINE_BYTES]) {
    struct winsize size = { 0 };

    if (status->columns == 0 || ioctl(status->fd, TIOCGWINSZ, &size) != 0 ||
        size.ws_col < STATUSLINE_NARROWEST || status->columns >= size.ws_col)
        return 0;
    status->is_drawn = true;
    return (size_t)snprintf(out, STATUSLINE_BYTES, "\x1b[2m%s\x1b[0m", status->text);
}
