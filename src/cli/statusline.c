/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/statusline.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend/local/descendants.h"
#include "base/clock.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "codec/utf8.h"

enum {
    LOOK_EVERY_US = 1000 * 1000,
    LOOK_SHARE = 50, /* a look takes at most one part in so many of the time */
};

/* ---- what processes use ---- */

/* `ticks` only grows as long as the root lives. */
struct usage {
    uint64_t ticks, memory;
};

static void add_usage(struct usage *sum, const struct process *process) {
    sum->ticks += process->ticks;
    sum->memory += (uint64_t)process->pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void usage_below(pid_t root, struct usage *out) {
    struct processes below = { 0 };
    struct process process;

    *out = (struct usage){ 0 };
    if (!process_read(root, &process))
        return;
    add_usage(out, &process);
    descendants_of(root, &below, NULL);
    for (size_t i = 0; i < below.list.len; i++)
        add_usage(out, &below.list.items[i]);
    processes_release(&below);
}

/* ---- the line ---- */

static const char *separator(void) {
    return terminal_is_utf8() ? " · " : " - ";
}

void statusline_init(struct statusline *status, int fd) {
    *status = (struct statusline){ .fd = fd, .cpu_percent = -1 };
}

static void look(struct statusline *status, pid_t owner) {
    const int64_t before = clock_monotonic_us();
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
    status->looked_us = before;
    cost = clock_monotonic_us() - before;
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
    uint32_t running = 0;

    look(status, owner);
    for (uint32_t rank = 0; rank < record->n_tasks; rank++)
        running += record->tasks[rank].state == STATE_RUNNING;
    snprintf(status->fields[STATUS_PHASE], sizeof status->fields[0], "%s",
             record->phase ? record->phase : state_name(record->state));
    snprintf(status->fields[STATUS_TASKS], sizeof status->fields[0], "%u/%u task%s", running,
             record->n_tasks, record->n_tasks == 1 ? "" : "s");
    if (status->cpu_percent >= 0)
        snprintf(status->fields[STATUS_CPU], sizeof status->fields[0], "CPU %.0f%%",
                 status->cpu_percent);
    word_memory(status->memory, status->fields[STATUS_MEMORY], sizeof status->fields[0]);
    snprintf(status->fields[STATUS_ELAPSED], sizeof status->fields[0], "%s",
             duration_text(record_elapsed(record)).text);
}

size_t statusline_erase(struct statusline *status, char out[static STATUSLINE_BYTES]) {
    if (!status->is_drawn)
        return 0;
    status->is_drawn = false;
    return (size_t)snprintf(out, STATUSLINE_BYTES, "\r\x1b[J");
}

/* All fields but the first `n_left_out` of those that are given up. */
static size_t join(const struct statusline *status, size_t n_left_out, char *out, size_t size) {
    static const enum status_field given_up[] = { STATUS_CPU, STATUS_MEMORY, STATUS_ELAPSED,
                                                  STATUS_TASKS };
    size_t len = 0;

    static_assert(ARRAY_LEN(given_up) == STATUS_FIELDS - 1, "the phase stays");
    out[0] = '\0';
    for (enum status_field field = 0; field < STATUS_FIELDS; field++) {
        bool is_out = !status->fields[field][0];

        for (size_t i = 0; i < n_left_out; i++)
            is_out |= given_up[i] == field;
        if (!is_out)
            len += (size_t)snprintf(out + len, size - len, "%s%s", len ? separator() : "",
                                    status->fields[field]);
    }
    return utf8_count(out);
}

/* Copies up to so many characters of the text, in whole characters and without colours. */
static size_t copy_bare(char *out, size_t size, const char *text, size_t columns) {
    size_t len = 0;

    while (*text) {
        size_t n = 1;

        if (text[0] == '\x1b' && text[1] == '[') {
            text += strcspn(text, "m");
            text += *text == 'm';
            continue;
        }
        while ((text[n] & 0xc0) == 0x80)
            n++;
        if (len + n >= size || columns-- == 0)
            break;
        memcpy(out + len, *text == '\t' ? " " : text, n);
        len += n;
        text += n;
    }
    out[len] = '\0';
    return len;
}

void statusline_set_unended(struct statusline *status, const char *name, const char *text) {
    const size_t size = sizeof status->unended;
    size_t len;

    status->unended[0] = '\0';
    if (!text)
        return;
    len = copy_bare(status->unended, size, name, size);
    if (len > 0 && len + sizeof " │ " < size)
        len +=
            (size_t)snprintf(status->unended + len, size - len, terminal_is_utf8() ? " │ " : " | ");
    copy_bare(status->unended + len, size - len, text, size);
}

/* The terminal is told to cut what is wider than it seems, as some characters are: one that goes on
 * in the next row would be one row too many to go back. */
static size_t draw_unended(const struct statusline *status, size_t columns, char *out,
                           size_t size) {
    char text[STATUSLINE_UNENDED];

    if (!status->unended[0] || columns < 2)
        return 0;
    copy_bare(text, sizeof text, status->unended, columns - 1);
    return (size_t)snprintf(out, size, "\x1b[?7l%s\x1b[?7h\r\n", text);
}

/* One column stays free: a line that fills the last one would wrap in some terminals. */
size_t statusline_draw(struct statusline *status, char out[static STATUSLINE_BYTES]) {
    char text[STATUS_FIELDS * (sizeof status->fields[0] + sizeof " · ")];
    struct winsize size = { 0 };
    size_t n_left_out = 0, len;

    if (!status->fields[STATUS_PHASE][0] || ioctl(status->fd, TIOCGWINSZ, &size) != 0)
        return 0;
    while (join(status, n_left_out, text, sizeof text) >= size.ws_col)
        if (++n_left_out == STATUS_FIELDS)
            return 0;
    status->is_drawn = true;
    len = draw_unended(status, size.ws_col, out, STATUSLINE_BYTES);
    return len + (size_t)snprintf(out + len, STATUSLINE_BYTES - len, "\x1b[2m%s\x1b[0m\r%s", text,
                                  len ? "\x1b[A" : "");
}
