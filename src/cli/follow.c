/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

/* Colours that can be told apart on dark and light grounds, handed out by rank. */
static const char *const colours[] = { "36", "33", "32", "35", "34", "96", "93", "92", "95", "94" };

enum {
    SHOWN_MOST = 4 * 1024 * 1024,
    FLUSH_AT = 64 * 1024, /* so that one piece of many short lines is not gathered whole */
};

void follow_init(struct follow *follow, const struct plan *plan, enum follow_style style,
                 FILE *out) {
    *follow = (struct follow){
        .plan = plan,
        .out = out,
        .is_terminal = style != FOLLOW_PLAIN && isatty(fileno(out)) == 1,
        .is_coloured = style != FOLLOW_PLAIN && terminal_colour(out),
        .shown = BUF_INIT(SHOWN_MOST),
        .lines = calloc(plan->n_tasks, sizeof *follow->lines),
    };
    if (!follow->lines)
        abort();
    fflush(out);
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
        const struct task_name name = task_name(&plan->tasks[rank]);
        const int width = (int)strlen(name.text);

        follow->width = width > follow->width ? width : follow->width;
    }
}

/* Past stdio: that nobody reads any more is no failure of the command. */
static void flush(struct follow *follow) {
    const char *bytes = follow->shown.data;
    size_t n = follow->shown.len;

    while (n > 0 && !follow->is_broken) {
        const ssize_t written = write(fileno(follow->out), bytes, n);

        if (written < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = fileno(follow->out), .events = POLLOUT }, 1, -1);
        else if (written < 0 && errno != EINTR)
            follow->is_broken = true;
        if (written > 0) {
            bytes += written;
            n -= (size_t)written;
        }
    }
    buf_clear(&follow->shown);
}

static int append_prefix(struct follow *follow, struct error *err) {
    const struct task_name name = task_name(&follow->plan->tasks[follow->rank]);
    const char *colour = colours[follow->rank % ARRAY_LEN(colours)];

    if (follow->is_coloured)
        return buf_printf(&follow->shown, err, "\x1b[%sm%-*s │\x1b[0m ", colour, follow->width,
                          name.text);
    return buf_printf(&follow->shown, err, "%-*s │ ", follow->width, name.text);
}

static int append_line(struct follow *follow, const char *line, size_t n, struct error *err) {
    if (!follow->is_terminal)
        return buf_append(&follow->shown, line, n, err);
    if (line_append_harmless(&follow->shown, line, n, err))
        return -1;
    /* A colour that a task leaves on would run into the next task's line. */
    return memchr(line, '\x1b', n) ? buf_append(&follow->shown, "\x1b[0m", 4, err) : 0;
}

static void show_line(void *context, const char *line, size_t n) {
    struct follow *follow = context;
    struct error err;

    if (follow->shown.len > FLUSH_AT)
        flush(follow);
    /* A line is at most LINE_MOST bytes and the buffer has room for many times that. */
    if (append_prefix(follow, &err) || append_line(follow, line, n, &err) ||
        buf_append(&follow->shown, "\n", 1, &err))
        assert(!"a line fits");
}

void follow_output(struct follow *follow, uint32_t rank, const char *bytes, size_t n) {
    if (follow->is_broken)
        return;
    follow->rank = rank;
    lines_feed(&follow->lines[rank], bytes, n, show_line, follow);
    flush(follow);
}

void follow_ended(struct follow *follow, uint32_t rank) {
    follow->rank = rank;
    lines_flush(&follow->lines[rank], show_line, follow);
    flush(follow);
    lines_release(&follow->lines[rank]);
}

void follow_release(struct follow *follow) {
    for (uint32_t rank = 0; follow->lines && rank < follow->plan->n_tasks; rank++)
        lines_release(&follow->lines[rank]);
    free(follow->lines);
    buf_release(&follow->shown);
}
