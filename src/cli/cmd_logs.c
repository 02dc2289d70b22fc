/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/amounts.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/logmerge.h"
#include "cli/runs.h"
#include "cli/watch.h"

enum { READ_SIZE = FOLLOW_PIECE_MOST };

/* What is asked for. */
struct request {
    bool is_following, has_since, has_tail, has_attempt;
    bool is_span; /* since_us is an age, not a time */
    int64_t since_us;
    uint64_t tail, attempt;
};

struct view {
    const struct invocation *in;
    struct request request;
    struct arena arena;
    struct run_record record;
    struct plan plan;
    struct logread *logs; /* by rank */
    uint32_t n_shown;
    struct follow follow;
    char bytes[READ_SIZE];
};

/* ---- the command line ---- */

/* The moment at which the clocks of this place show that time. */
static bool as_local(time_t shown, time_t *out) {
    struct tm tm;

    if (!gmtime_r(&shown, &tm))
        return false;
    tm.tm_isdst = -1;
    tm.tm_wday = -1; /* mktime sets it, unless it fails */
    *out = mktime(&tm);
    return tm.tm_wday >= 0;
}

/* A day or what is more exact; local time where no zone is given. */
static bool read_time(const char *text, int64_t *out) {
    struct time_given given;

    if (!time_parse(text, strlen(text), &given) || given.unit < UNIT_DAY ||
        (!given.has_zone && !as_local(given.moment.tv_sec, &given.moment.tv_sec)))
        return false;
    *out = time_us(given.moment);
    return true;
}

static bool read_count(const char *text, uint64_t *out) {
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return isdigit((unsigned char)text[0]) && !*end && !errno;
}

static int read_request(const struct invocation *in, struct request *out) {
    const char *since = invocation_value(in, "since"), *tail = invocation_value(in, "tail");
    const char *attempt = invocation_value(in, "attempt");

    out->is_following = invocation_has(in, "follow");
    out->has_since = since != NULL;
    out->has_tail = tail != NULL;
    out->has_attempt = attempt != NULL;
    out->is_span = since && amount_span(since, &out->since_us);
    if (since && !out->is_span && !read_time(since, &out->since_us))
        return invocation_misuse(in,
                                 "--since takes a time span with a unit, such as 10s, 5m, 2h or "
                                 "1d, or a time such as 2026-03-01T12:00:00, not '%s'",
                                 since);
    if (tail && !read_count(tail, &out->tail))
        return invocation_misuse(in, "--tail takes a number of lines, not '%s'", tail);
    if (attempt && !read_count(attempt, &out->attempt))
        return invocation_misuse(in, "--attempt takes a number from 0, not '%s'", attempt);
    return 0;
}

/* ---- which tasks ---- */

static int choose(struct view *view, bool *wanted, const char *name, struct error *err) {
    const int64_t rank = plan_find_named(&view->plan, name);
    bool found = rank >= 0;

    if (found)
        wanted[rank] = true;
    for (enum role role = 0; !found && role < ROLE_COUNT; role++)
        if (strcmp(name, role_name(role)) == 0 && view->plan.n_role[role] > 0) {
            for (uint32_t i = 0; i < view->plan.n_tasks; i++)
                wanted[i] |= view->plan.tasks[i].role == role;
            found = true;
        }
    if (!found)
        return error_set(err, ERROR_NOT_FOUND,
                         "run %s has no task '%s'; 'myelin status %s' lists its tasks",
                         view->record.rundir.id, name, view->record.rundir.id);
    return 0;
}

static int choose_rank(struct view *view, bool *wanted, const char *text, struct error *err) {
    char *end;
    unsigned long rank;

    errno = 0;
    rank = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || rank >= view->plan.n_tasks)
        return error_set(err, ERROR_NOT_FOUND, "run %s has no rank '%s': it has ranks 0 to %u",
                         view->record.rundir.id, text, view->plan.n_tasks - 1);
    wanted[rank] = true;
    return 0;
}

static int choose_all(struct view *view, bool *wanted, struct error *err) {
    const struct invocation *in = view->in;
    bool is_asked = false;

    for (size_t i = 1; i < in->n_operands; i++, is_asked = true)
        if (choose(view, wanted, in->operands[i], err))
            return -1;
    for (size_t i = 0; i < in->n_given; i++)
        if (strcmp(in->given[i].option->name, "rank") == 0) {
            is_asked = true;
            if (choose_rank(view, wanted, in->given[i].value, err))
                return -1;
        }
    if (!is_asked)
        memset(wanted, true, view->plan.n_tasks);
    return 0;
}

/* ---- in the order of time ---- */

/* Shows one piece of the log that is first; drops it at its end. */
static void show_first(struct view *view, struct logmerge *merge, uint32_t rank) {
    struct log_piece piece;

    if (!logread_next(&view->logs[rank], view->bytes, sizeof view->bytes, &piece)) {
        logmerge_drop(merge);
        return;
    }
    if (piece.lost)
        follow_lost(&view->follow, rank, piece.lost);
    else
        follow_output(&view->follow, rank, piece.time_us, piece.time_us, view->bytes, piece.n);
    logmerge_read(merge);
}

/* Shows what was there when the logs were opened: one that grows faster than it is shown would
 * have no end. */
static void show_what_is_there(struct view *view) {
    struct logmerge merge;
    uint32_t rank;

    logmerge_init(&merge, view->logs, view->plan.n_tasks);
    for (rank = 0; rank < view->plan.n_tasks; rank++)
        if (!view->logs[rank].is_done && logread_open(&view->logs[rank]))
            logmerge_add(&merge, rank);
    while (logmerge_first(&merge, &rank) && !view->follow.is_broken)
        show_first(view, &merge, rank);
    logmerge_release(&merge);
    follow_settle(&view->follow);
}

/* ---- the command ---- */

/* Each log takes two descriptors. */
static void raise_file_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void open_logs(struct view *view, const bool *wanted, uint32_t attempt) {
    const bool is_over = state_is_final(view->record.state) || attempt < view->record.n_over;
    const char *directory = rundir_attempt_logs(&view->record.rundir, attempt, &view->arena);
    const bool needs_times = view->n_shown > 1 || invocation_has(view->in, "timestamps") ||
                             invocation_has(view->in, "json");
    const int64_t since_us = view->request.is_span
                                 ? runs_now_us(&view->record) - view->request.since_us
                                 : view->request.since_us;

    raise_file_limit();
    for (uint32_t rank = 0; rank < view->plan.n_tasks; rank++) {
        struct logread *log = &view->logs[rank];
        const struct task_name name = task_name(&view->plan.tasks[rank]);

        logread_init(log, directory, name.text, needs_times ? LOGREAD_TIMES : LOGREAD_BYTES);
        log->is_left_out = log->is_done = !wanted[rank];
        log->is_over = is_over || state_is_final(view->record.tasks[rank].state);
        if (log->is_done)
            continue;
        if (view->request.has_since)
            logread_skip_to_time(log, since_us);
        if (view->request.has_tail)
            logread_skip_to_tail(log, view->request.tail);
        log->limit = log->is_over ? UINT64_MAX : logread_size(log);
    }
}

/* Follows from where the view stands; returns the exit status. */
static int go_on(struct view *view, struct error *err) {
    const struct watch_options options = { .listener = -1,
                                           .follow = &view->follow,
                                           .logs = view->logs,
                                           .q_leaves = true,
                                           .ends_unread = true,
                                           .attempt = record_attempt(&view->record) };
    struct watch_end end;
    struct run_record record;
    int status;

    for (uint32_t rank = 0; rank < view->plan.n_tasks; rank++)
        view->logs[rank].limit = UINT64_MAX;
    status = watch_run(&view->record.rundir, &options, &record, &end, err);

    record_release(&record);
    return status;
}

/* Nothing more comes of this attempt: last lines may have no end. */
static void close_logs(struct view *view, const bool *wanted, bool was_followed) {
    for (uint32_t rank = 0; rank < view->plan.n_tasks; rank++) {
        if (wanted[rank] && !was_followed)
            follow_ended(&view->follow, rank);
        logread_release(&view->logs[rank]);
    }
    follow_settle(&view->follow);
    for (uint32_t rank = 0; rank < view->plan.n_tasks; rank++)
        follow_goes_on(&view->follow, rank);
}

static int check_attempt(const struct view *view, struct error *err) {
    const uint32_t newest = record_attempt(&view->record);

    if (!view->request.has_attempt || view->request.attempt <= newest)
        return 0;
    if (newest == 0)
        return error_set(err, ERROR_NOT_FOUND, "run %s has attempt 0 alone",
                         view->record.rundir.id);
    return error_set(err, ERROR_NOT_FOUND, "run %s has no attempt %s: it has 0 to %u",
                     view->record.rundir.id, invocation_value(view->in, "attempt"), newest);
}

static int show(struct view *view, const bool *wanted, struct error *err) {
    const struct follow_options options = {
        .out = stdout,
        .style = invocation_has(view->in, "json")    ? FOLLOW_JSON
                 : invocation_has(view->in, "plain") ? FOLLOW_PLAIN
                                                     : FOLLOW_AS_IT_IS,
        .is_bare = view->n_shown == 1,
        .has_stamps = invocation_has(view->in, "timestamps"),
        .has_status = view->request.is_following,
    };
    const uint32_t newest = record_attempt(&view->record);
    uint32_t attempt = view->request.has_tail ? newest : 0, last = newest;
    int status = 0;

    if (view->request.has_attempt)
        attempt = last = (uint32_t)view->request.attempt;
    follow_init(&view->follow, &view->plan, &options);
    for (const uint32_t first = attempt; attempt <= last && !view->follow.is_broken; attempt++) {
        const bool goes_on =
            view->request.is_following && attempt == newest && !state_is_final(view->record.state);

        if (first < last)
            fprintf(stderr, "myelin: attempt %u\n", attempt);
        view->follow.attempt = attempt;
        open_logs(view, wanted, attempt);
        show_what_is_there(view);
        if (goes_on)
            status = go_on(view, err);
        close_logs(view, wanted, goes_on);
    }
    if (status == 0)
        status = follow_check(&view->follow, err);
    follow_release(&view->follow);
    return status;
}

static int show_run(struct view *view, const char *name, struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    struct rundir rundir;
    uint32_t n_tasks;
    bool *wanted;
    int status;

    if ((view->request.is_following ? runs_find_living : runs_find)(name, &arena, &rundir, err) ||
        runs_read(&rundir, &view->record, err))
        return -1;
    view->plan = record_plan(&view->record);
    n_tasks = view->plan.n_tasks;
    wanted = ARENA_ARRAY(&arena, bool, n_tasks);
    view->logs = ARENA_ARRAY(&arena, struct logread, n_tasks);
    status = choose_all(view, wanted, err) || check_attempt(view, err) ? -1 : 0;
    if (status == 0) {
        for (uint32_t rank = 0; rank < n_tasks; rank++)
            view->n_shown += wanted[rank];
        status = show(view, wanted, err);
    }
    record_release(&view->record);
    return status;
}

static int logs(const struct invocation *in) {
    struct view *view;
    struct request request;
    struct error err;
    int status = read_request(in, &request);

    if (status)
        return status;
    if (in->n_operands == 0)
        return runs_misuse_without_run(in);
    view = calloc(1, sizeof *view);
    if (!view)
        abort();
    view->in = in;
    view->request = request;
    status = show_run(view, in->operands[0], &err) ? STATUS_INVALID : STATUS_OK;
    if (status)
        complain("%s", err.message);
    arena_release(&view->arena);
    free(view);
    return status;
}

static const struct option options[] = {
    { .name = "follow",
      .letter = 'f',
      .help = "go on with what is written, until the run is over; on a terminal q ends it" },
    { .name = "since",
      .argument = "TIME",
      .help = "start with lines of that age (10s, 5m, 2h, 1d) or time (2026-03-01T12:00:00)" },
    { .name = "tail", .argument = "N", .help = "start with the last N lines of each task" },
    { .name = "rank", .argument = "N", .repeats = true, .help = "show the task of that rank" },
    { .name = "attempt",
      .argument = "N",
      .help = "show attempt N alone, counted from 0; all of them unless said" },
    { .name = "timestamps", .letter = 't', .help = "put before each line when it was written" },
    { .name = "plain",
      .help = "print as to a pipe, even on a terminal; controls are still shown as text" },
    { .name = "json", .help = "print a JSON object for each line" },
    { 0 },
};

const struct command command_logs = {
    .name = "logs",
    .arguments = "RUN [TASK...]",
    .summary = "print what the tasks of a run wrote",
    .description =
        "Prints the logs of a run's tasks, those of several in the order of time, each line behind "
        "the name of its task. A TASK is named as `worker.2`, by its role for all of that role, or "
        "by its rank; the log of a single task is printed as it is.\n"
        "\n" RUN_NAMES " With `-f`, the newest that is still going on comes first.\n"
        "\n"
        "Times are those at which output reached myelin, to about 20 milliseconds. A time without "
        "a zone is local; times are printed in UTC. Where output could not be kept, because the "
        "disk was full or the limit of `run --log-limit` was reached, the number of bytes is "
        "told.\n"
        "\n"
        "A run that was restarted by `max_restarts` has the logs of each attempt; they are shown "
        "one "
        "after the other, and standard error tells where each begins. `--tail` is about the newest "
        "one.\n"
        "\n"
        "On a terminal, a line that several tasks write within a moment is shown once, behind the "
        "names of all of them, at the place of the first; no line is moved. Colours pass; every "
        "other control sequence and every control character is shown as text (`^[` is ESC), so "
        "that a log cannot control the terminal, also with `--plain`. Into a pipe or a file the "
        "bytes are those that the tasks wrote; `--json` escapes controls.",
    .options = options,
    .examples = "myelin logs @                       # of the newest run\n"
                "myelin logs 12 worker.2 --tail 50   # the last lines of one task\n"
                "myelin logs 12 -f --since 5m        # the last five minutes, and on\n"
                "myelin logs 12 --attempt 0          # of the first attempt\n"
                "myelin logs 12 -f --json | jq .text # for a script, as it comes\n",
    .run = logs,
};
