/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cli/terminal.h"
#include "codec/json.h"
#include "codec/visible.h"
#include "plan/fold.h"

/* Colours that can be told apart on dark and light grounds, handed out by rank. */
static const char *const colours[] = { "36", "33", "32", "35", "34", "96", "93", "92", "95", "94" };
static const char colour_of_several[] = "1";

enum {
    WRITE_AT = 256 * 1024,
    /* What a line can become; behind WRITE_AT there is always room for one. */
    HARMLESS_MOST = LINE_MOST * VISIBLE_GROWTH + VISIBLE_EXTRA,
    OUT_SIZE = WRITE_AT + HARMLESS_MOST + 1024,
    NAMES_WIDEST = 24, /* a set of tasks that takes more is told as a number */
    NAMES_MOST = 1 << 16,
};

static_assert(OUT_SIZE >= WRITE_AT + FOLLOW_PIECE_MOST, "a piece fits behind what is not written");

/* ---- bytes out ---- */

static void give_up(struct follow *follow, int errnum) {
    follow->is_broken = true;
    follow->trouble = errnum == EPIPE ? 0 : errnum;
}

/* Past stdio: that nobody reads any more is no failure of the command. */
static void write_all(struct follow *follow, struct iovec *parts, int n) {
    while (n > 0 && !follow->is_broken) {
        ssize_t written = writev(follow->fd, parts, n);

        if (written < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ .fd = follow->fd, .events = POLLOUT }, 1, -1);
        else if (written < 0 && errno != EINTR)
            give_up(follow, errno);
        for (; n > 0 && written >= (ssize_t)parts->iov_len; parts++, n--)
            written -= (ssize_t)parts->iov_len;
        if (n > 0 && written > 0) {
            parts->iov_base = (char *)parts->iov_base + written;
            parts->iov_len -= (size_t)written;
        }
    }
}

bool follow_is_read(struct follow *follow) {
    struct pollfd out = { .fd = follow->fd };

    if (!follow->is_broken && poll(&out, 1, 0) > 0 && out.revents & (POLLERR | POLLHUP))
        give_up(follow, EPIPE);
    return !follow->is_broken;
}

int follow_check(const struct follow *follow, struct error *err) {
    if (!follow->trouble)
        return 0;
    return error_set_errno(err, follow->trouble, "cannot write what the tasks wrote");
}

/* The line that is not ended of the first task that has one: the same from look to look. */
static void look_at_unended(struct follow *follow) {
    const struct plan *plan = follow->plan;
    const struct lines *lines = NULL;
    struct error err;
    uint32_t rank;

    for (rank = 0; rank < plan->n_tasks; rank++) {
        lines = &follow->tasks[rank].lines;
        if (lines->len > 0)
            break;
    }
    buf_clear(&follow->harmless);
    if (rank == plan->n_tasks ||
        line_append_harmless(&follow->harmless, lines->partial, lines->len, follow->visible,
                             &err) ||
        follow->harmless.len == 0) {
        statusline_set_unended(&follow->status, NULL, NULL);
        return;
    }
    follow->unended_rank = rank;
    statusline_set_unended(&follow->status,
                           follow->options.is_bare ? "" : task_name(&plan->tasks[rank]).text,
                           follow->harmless.data);
}

/* The status line is taken away, and drawn again behind the lines, in one write: no flicker. */
static void flush(struct follow *follow) {
    char erased[STATUSLINE_BYTES], drawn[STATUSLINE_BYTES];
    struct iovec parts[3] = { { .iov_base = erased }, { follow->out, follow->len }, { drawn, 0 } };

    if (follow->len == 0)
        return;
    if (follow->options.has_status) {
        if (follow->tasks[follow->unended_rank].lines.len == 0) /* it is among the lines by now */
            statusline_set_unended(&follow->status, NULL, NULL);
        parts[0].iov_len = statusline_erase(&follow->status, erased);
        parts[2].iov_len = statusline_draw(&follow->status, drawn);
    }
    write_all(follow, parts, 3);
    follow->len = 0;
}

static void flush_full(struct follow *follow) {
    if (follow->len > WRITE_AT)
        flush(follow);
}

static void put(struct follow *follow, const char *bytes, size_t n) {
    memcpy(follow->out + follow->len, bytes, n);
    follow->len += n;
}

static void write_status(struct follow *follow, bool again) {
    char erased[STATUSLINE_BYTES], drawn[STATUSLINE_BYTES];
    struct iovec parts[2] = { { .iov_base = erased }, { .iov_base = drawn } };

    if (!follow->options.has_status)
        return;
    parts[0].iov_len = statusline_erase(&follow->status, erased);
    parts[1].iov_len = again ? statusline_draw(&follow->status, drawn) : 0;
    if (parts[0].iov_len + parts[1].iov_len)
        write_all(follow, parts, 2);
}

void follow_show_status(struct follow *follow, const struct run_record *record, pid_t owner) {
    if (!follow->options.has_status)
        return;
    statusline_update(&follow->status, record, owner);
    look_at_unended(follow);
    write_status(follow, true);
}

void follow_hide_status(struct follow *follow) {
    write_status(follow, false);
}

/* ---- what stands before a line ---- */

static size_t make_prefix(const struct follow *follow, const char *colour, const char *name,
                          char out[PREFIX_MOST]) {
    const char *bar = terminal_is_utf8() ? "│" : "|";

    if (follow->is_coloured)
        return (size_t)snprintf(out, PREFIX_MOST, "\x1b[%sm%-*s %s\x1b[0m ", colour, follow->width,
                                name, bar);
    return (size_t)snprintf(out, PREFIX_MOST, "%-*s %s ", follow->width, name, bar);
}

static struct followed *with_prefix(struct follow *follow, uint32_t rank) {
    struct followed *task = &follow->tasks[rank];

    if (task->prefix_len == 0)
        task->prefix_len = make_prefix(follow, colours[rank % ARRAY_LEN(colours)],
                                       task_name(&follow->plan->tasks[rank]).text, task->prefix);
    return task;
}

static void put_prefix(struct follow *follow, uint32_t rank) {
    const struct followed *task = with_prefix(follow, rank);

    if (!follow->options.is_bare)
        put(follow, task->prefix, task->prefix_len);
}

/* The date is worked out once for the lines of one time. */
static const char *stamp_text(struct follow *follow, int64_t stamp) {
    if (stamp != follow->told_stamp)
        follow->stamp_text = time_text(stamp, TIME_MILLISECONDS);
    follow->told_stamp = stamp;
    return follow->stamp_text.text;
}

/* "2026-03-01T12:00:00.123Z " */
static void put_stamp(struct follow *follow, int64_t stamp) {
    const char *text;

    if (!follow->options.has_stamps)
        return;
    if (stamp == FOLLOW_NO_STAMP) {
        put(follow, "-                        ", STAMP_BYTES);
        return;
    }
    text = stamp_text(follow, stamp);
    put(follow, text, strlen(text));
    put(follow, " ", 1);
}

static void put_harmless(struct follow *follow, const char *line, size_t n) {
    struct error err;

    buf_clear(&follow->harmless);
    if (line_append_harmless(&follow->harmless, line, n, follow->visible, &err))
        return; /* what it can become fits */
    put(follow, follow->harmless.data, follow->harmless.len);
}

/* ---- lines ---- */

static bool is_folded(const void *context, uint32_t rank) {
    return folded_has(context, rank);
}

/* Several tasks by their folded names, where those are short. */
static void put_names(struct follow *follow, const struct folded *folded) {
    AUTO(buf) names = BUF_INIT(NAMES_MOST);
    char prefix[PREFIX_MOST], number[NAMES_WIDEST + 1];
    const char *shown = names.data;
    struct error err;

    if (fold_tasks(follow->plan, is_folded, folded, &names, &err) || names.len > NAMES_WIDEST) {
        snprintf(number, sizeof number, "%u tasks", folded->n_ranks);
        shown = number;
    } else {
        shown = names.data;
    }
    put(follow, prefix, make_prefix(follow, colour_of_several, shown, prefix));
}

static void show_folded(void *context, const struct folded *folded) {
    struct follow *follow = context;

    flush_full(follow);
    put_stamp(follow, folded->stamp);
    if (folded->n_ranks == 1)
        put_prefix(follow, folded->first);
    else
        put_names(follow, folded);
    put_harmless(follow, folded->line, folded->n);
    put(follow, "\n", 1);
}

/* In pieces of json.c's own buffer, which fit behind WRITE_AT. */
static int put_json(void *context, const char *bytes, size_t n, struct error *err) {
    (void)err;
    flush_full(context);
    put(context, bytes, n);
    return 0;
}

static void begin_json(struct follow *follow, struct json *json, int64_t stamp) {
    json_init(json, JSON_COMPACT, put_json, follow);
    json_object(json);
    json_key(json, "task");
    json_text(json, task_name(&follow->plan->tasks[follow->rank]).text);
    json_key(json, "rank");
    json_int(json, follow->rank);
    json_key(json, "attempt");
    json_int(json, follow->attempt);
    json_key(json, "time");
    json_text(json, stamp == FOLLOW_NO_STAMP ? NULL : stamp_text(follow, stamp));
    json_key(json, "text");
}

static void end_json(struct follow *follow, struct json *json) {
    struct error err;

    json_end(json);
    if (json_finish(json, &err) == 0)
        put_json(follow, "\n", 1, &err);
}

static void show_json_line(struct follow *follow, const char *line, size_t n, int64_t stamp) {
    struct json json;

    begin_json(follow, &json, stamp);
    json_text_n(&json, line, n);
    if (follow->tasks[follow->rank].lines.goes_on) {
        json_key(&json, "goes_on");
        json_bool(&json, true);
    }
    end_json(follow, &json);
}

static void show_line(void *context, const char *line, size_t n) {
    struct follow *follow = context;
    const int64_t stamp = follow->stamp;

    follow->stamp = follow->new_stamp;
    if (follow->options.style == FOLLOW_JSON) {
        show_json_line(follow, line, n, stamp);
        return;
    }
    if (follow->fold) {
        fold_lines_feed(follow->fold, follow->rank, line, n, stamp, follow->now_us);
        return;
    }
    flush_full(follow);
    if (follow->options.has_stamps)
        put_stamp(follow, stamp);
    put_prefix(follow, follow->rank);
    if (follow->is_filtered)
        put_harmless(follow, line, n);
    else
        put(follow, line, n);
    follow->out[follow->len++] = '\n';
}

/* The usual case, at the speed of memory: whole lines are copied in one sweep, and only those that
 * are cut, or too long, are gathered one by one. */
static void show_plain(struct follow *follow, uint32_t rank, const char *bytes, size_t n) {
    struct followed *task = with_prefix(follow, rank);

    while (n > 0) {
        const char *end;
        size_t taken = 0;

        flush_full(follow);
        if (task->lines.len == 0)
            follow->len +=
                lines_prefix(bytes, n, task->prefix, task->prefix_len, follow->out + follow->len,
                             OUT_SIZE - LINES_SLACK - follow->len, &taken);
        if (taken == 0) {
            end = memchr(bytes, '\n', n);
            taken = end ? (size_t)(end - bytes) + 1 : n;
            lines_feed(&task->lines, bytes, taken, show_line, follow);
        }
        bytes += taken;
        n -= taken;
    }
}

void follow_output(struct follow *follow, uint32_t rank, int64_t stamp, int64_t now_us,
                   const char *bytes, size_t n) {
    struct followed *task = &follow->tasks[rank];

    if (follow->is_broken)
        return;
    if (follow->is_raw) {
        flush_full(follow);
        put(follow, bytes, n);
        return;
    }
    follow->rank = rank;
    follow->now_us = now_us;
    follow->stamp = task->lines.len ? task->stamp : stamp;
    follow->new_stamp = stamp;
    if (follow->is_plain) {
        show_plain(follow, rank, bytes, n);
        return;
    }
    lines_feed(&task->lines, bytes, n, show_line, follow);
    task->stamp = follow->stamp;
}

/* What comes behind the gap is no part of the line before it. */
void follow_lost(struct follow *follow, uint32_t rank, uint64_t lost) {
    struct followed *task = &follow->tasks[rank];
    char sentence[80];
    struct json json;

    follow->rank = rank;
    follow->stamp = follow->new_stamp = task->stamp;
    lines_flush(&task->lines, show_line, follow);
    if (follow->options.style == FOLLOW_JSON) {
        begin_json(follow, &json, task->stamp);
        json_null(&json);
        json_key(&json, "lost_bytes");
        json_int(&json, (int64_t)lost);
        end_json(follow, &json);
        return;
    }
    if (follow->is_raw && follow->len > 0 && follow->out[follow->len - 1] != '\n')
        put(follow, "\n", 1);
    show_line(follow, sentence,
              (size_t)snprintf(sentence, sizeof sentence, "[… %llu bytes were lost here …]",
                               (unsigned long long)lost));
}

void follow_ended(struct follow *follow, uint32_t rank) {
    struct followed *task = &follow->tasks[rank];

    follow->rank = rank;
    follow->stamp = follow->new_stamp = task->stamp;
    lines_flush(&task->lines, show_line, follow);
    lines_release(&task->lines);
    if (follow->fold)
        fold_lines_ended(follow->fold, rank);
}

void follow_goes_on(struct follow *follow, uint32_t rank) {
    if (follow->fold)
        fold_lines_goes_on(follow->fold, rank);
}

void follow_tick(struct follow *follow, int64_t now_us) {
    follow->now_us = now_us;
    if (follow->fold)
        fold_lines_tick(follow->fold, now_us);
    flush(follow);
}

void follow_settle(struct follow *follow) {
    if (follow->fold)
        fold_lines_flush(follow->fold);
    flush(follow);
}

bool follow_holds(const struct follow *follow) {
    return follow->fold && fold_lines_holds(follow->fold);
}

/* ---- life ---- */

static bool any_task(const void *context, uint32_t rank) {
    (void)context, (void)rank;
    return true;
}

/* As wide as the longest name, and where lines fold, as the names of all. */
static int width_of_names(const struct follow *follow) {
    AUTO(buf) names = BUF_INIT(NAMES_MOST);
    size_t width = 0;
    struct error err;

    for (uint32_t rank = 0; rank < follow->plan->n_tasks; rank++) {
        const size_t n = strlen(task_name(&follow->plan->tasks[rank]).text);

        width = n > width ? n : width;
    }
    if (follow->fold && fold_tasks(follow->plan, any_task, NULL, &names, &err) == 0 &&
        names.len > width && names.len <= NAMES_WIDEST)
        width = names.len;
    return (int)width;
}

void follow_init(struct follow *follow, const struct plan *plan,
                 const struct follow_options *options) {
    const bool is_terminal = terminal_is(options->out);
    const unsigned bare = options->style == FOLLOW_PLAIN  ? VISIBLE_COLOURS
                          : terminal_colour(options->out) ? 0
                                                          : VISIBLE_BARE;

    *follow = (struct follow){
        .plan = plan,
        .options = *options,
        .fd = terminal_fd(options->out),
        .is_terminal = options->style == FOLLOW_AS_IT_IS && is_terminal,
        .is_filtered = options->style != FOLLOW_JSON && is_terminal,
        .visible = terminal_visible(options->out) | bare,
        .is_coloured = options->style == FOLLOW_AS_IT_IS && terminal_colour(options->out),
        .harmless = BUF_INIT(HARMLESS_MOST),
        .told_stamp = FOLLOW_NO_STAMP,
        .tasks = calloc(plan->n_tasks, sizeof *follow->tasks),
        .out = malloc(OUT_SIZE),
    };
    if (!follow->tasks || !follow->out)
        abort();
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        follow->tasks[rank].stamp = FOLLOW_NO_STAMP;
    fflush(options->out);
    follow->options.has_status &= follow->is_terminal;
    if (options->style != FOLLOW_JSON && !options->has_stamps && !follow->is_filtered) {
        follow->is_raw = options->is_bare;
        follow->is_plain = !options->is_bare;
    }
    if (follow->is_terminal && plan->n_tasks > 1 && !options->is_bare)
        follow->fold = fold_lines_new(plan->n_tasks, show_folded, follow);
    follow->width = width_of_names(follow);
    statusline_init(&follow->status, follow->fd);
}

void follow_release(struct follow *follow) {
    for (uint32_t rank = 0; follow->tasks && rank < follow->plan->n_tasks; rank++)
        lines_release(&follow->tasks[rank].lines);
    fold_lines_free(follow->fold);
    free(follow->tasks);
    free(follow->out);
    buf_release(&follow->harmless);
}
