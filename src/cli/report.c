/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/signals.h"
#include "cli/history.h"
#include "cli/lines.h"
#include "cli/media_rows.h"
#include "cli/runs.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "codec/visible.h"
#include "plan/fold.h"
#include "plan/plan.h"
#include "supervise/tasklog.h"

enum { FOLDED_MOST = 1 << 20 };

static bool any_task(const void *run, uint32_t rank) {
    (void)run, (void)rank;
    return true;
}

static bool stopped_task(const void *run, uint32_t rank) {
    const struct task_record *task = &((const struct run_record *)run)->tasks[rank];

    return task->state == STATE_STOPPED && task->started_s >= 0;
}

static bool unstarted_task(const void *run, uint32_t rank) {
    const struct task_record *task = &((const struct run_record *)run)->tasks[rank];

    return task->state == STATE_STOPPED && task->started_s < 0;
}

/* A run that failed while it waited for its turn has nothing to show of its tasks. */
static bool came_to_tasks(const struct run_record *run) {
    for (uint32_t rank = 0; rank < run->n_tasks; rank++)
        if (run->tasks[rank].started_s >= 0)
            return true;
    return run->first_failed >= 0;
}

/* "before master.0, worker[0-2,5] after", or nothing when no task is wanted. */
static void print_folded(FILE *out, const char *before, const struct plan *plan,
                         bool (*want)(const void *context, uint32_t rank), const void *context,
                         const char *after) {
    AUTO(buf) text = BUF_INIT(FOLDED_MOST);
    struct error err;

    if (fold_tasks(plan, want, context, &text, &err))
        fprintf(out, "%s(%s)%s", before, err.message, after);
    else if (text.len)
        fprintf(out, "%s%s%s", before, text.data, after);
}

struct duration_text duration_text(double seconds) {
    const unsigned long whole = (unsigned long)seconds;
    struct duration_text out;

    if (seconds < 60)
        snprintf(out.text, sizeof out.text, "%.1fs", seconds);
    else if (seconds < 3600)
        snprintf(out.text, sizeof out.text, "%lum%02lus", whole / 60, whole % 60);
    else
        snprintf(out.text, sizeof out.text, "%luh%02lum", whole / 3600, whole % 3600 / 60);
    return out;
}

void describe_end(const struct task_record *task, char *out, size_t size) {
    if (!state_is_final(task->state))
        snprintf(out, size, "%s", "");
    else if (task->exit_code >= 0)
        snprintf(out, size, "exited with code %d", task->exit_code);
    else if (task->signal)
        snprintf(out, size, "was ended by %s", signal_text(task->signal).text);
    else
        snprintf(out, size, "%s", task->reason ? task->reason : "did not start");
}

void report_start(FILE *out, const struct plan *plan, const struct rundir *rundir) {
    fprintf(out, "run %s: %u task%s", rundir->id, plan->n_tasks, plan->n_tasks == 1 ? "" : "s");
    print_folded(out, " (", plan, any_task, NULL, ")");
    fprintf(out, "%s%s, logs in %s\n", plan->framework_label ? ", " : "",
            plan->framework_label ? plan->framework_label : "", rundir->logs);
}

/* ---- the last lines of a task ---- */

/* Calls sink with the last lines that a task wrote. */
static void last_lines(const struct run_record *run, uint32_t rank, line_sink *sink,
                       void *context) {
    AUTO(buf) output = BUF_INIT(TAIL_BYTES);
    AUTO(arena) arena = ARENA_INIT;

    tasklog_tail(NULL, rundir_attempt_logs(&run->rundir, record_attempt(run), &arena),
                 task_name(&run->task_names[rank]).text, &output);
    tail_lines(output.data, output.len, sink, context);
}

struct shown_lines {
    FILE *out;
    const char *heading; /* before the first line; NULL: was printed */
};

static void print_tail_line(void *context, const char *line, size_t n) {
    struct shown_lines *shown = context;
    AUTO(buf) text = BUF_INIT(TAIL_BYTES * VISIBLE_GROWTH + VISIBLE_EXTRA);
    const unsigned flags = terminal_colour(shown->out) ? 0 : VISIBLE_BARE;
    struct error err;

    if (shown->heading)
        fprintf(shown->out, "  last lines of %s:\n", shown->heading);
    shown->heading = NULL;
    if (line_append_harmless(&text, line, n, terminal_visible(shown->out) | flags, &err) == 0)
        fprintf(shown->out, "    %s\n", text.data);
}

enum report_lines report_lines_after(FILE *out, FILE *lines, bool has_shown_all) {
    return has_shown_all && terminal_is_shared(out, lines) ? REPORT_LINES_ARE_ABOVE : REPORT_LINES;
}

/* Takes what is there, and shows nothing of it. */
static void count_line(void *context, const char *line, size_t n) {
    (void)line, (void)n;
    ++*(size_t *)context;
}

/* The last lines of the task that failed first, or where the reader finds them. */
static void report_last_lines(FILE *out, const struct run_record *run, enum report_lines lines) {
    const uint32_t rank = (uint32_t)run->first_failed;
    const struct task_name name = task_name(&run->task_names[rank]);
    struct shown_lines shown = { out, name.text };
    size_t n = 0;

    if (lines == REPORT_LINES_ARE_ABOVE)
        last_lines(run, rank, count_line, &n);
    else
        last_lines(run, rank, print_tail_line, &shown);
    if (n > 0)
        fprintf(out, "  what %s wrote is above; 'myelin logs %s %s' shows it again\n", name.text,
                run->rundir.id, name.text);
    else if (shown.heading && run->tasks[rank].started_s >= 0)
        fprintf(out,
                run->tasks[rank].log_lost ? "  nothing that %s wrote could be kept\n"
                                          : "  %s wrote nothing\n",
                name.text);
}

void report_failure(FILE *out, const struct run_record *run, enum report_lines lines) {
    const struct plan plan = record_plan(run);

    if (run->hint)
        fprintf(out, "  hint: %s\n", run->hint);
    if (run->first_failed >= 0)
        report_last_lines(out, run, lines);
    if (!came_to_tasks(run))
        return;
    print_folded(out, "  stopped because of it: ", &plan, stopped_task, run, "\n");
    print_folded(out, "  not started because of it: ", &plan, unstarted_task, run, "\n");
    if (access(run->rundir.logs, F_OK) == 0)
        fprintf(out, "  logs: %s\n", run->rundir.logs);
}

void report_end(FILE *out, const struct run_record *run, enum report_lines lines) {
    AUTO(arena) arena = ARENA_INIT;

    fprintf(out, "run %s %s%s %s", run->rundir.id, run->state == STATE_STOPPED ? "was " : "",
            runs_painted(&arena, out, run->state, state_name(run->state)),
            history_span(run, &arena));
    if (run->state != STATE_FAILED) {
        fputs("\n", out);
    } else {
        fprintf(out, ": %s\n",
                run->reason ? runs_text(&arena, run->reason, 0) : "the reason is not known");
        report_failure(out, run, lines);
    }
    if (run->left)
        fprintf(out, "left behind: %s\n", runs_text(&arena, run->left, 0));
    if (losses_any(&run->losses))
        fprintf(out, "not kept: %s\n", losses_text(&run->losses, &arena));
}

void report_gone(FILE *out, const struct rundir *rundir) {
    fprintf(out,
            "myelin: run %s failed: its directory %s was removed while it was going on, and its "
            "supervisor is gone, too. Find out what removes it, and start the run again\n",
            rundir->id, rundir->path);
}

/* ---- JSON ---- */

struct time_text time_after(const char *start, double seconds) {
    int64_t us;

    if (!time_read(start, &us))
        return (struct time_text){ "?" };
    return time_text(us + (int64_t)(seconds * 1e6), TIME_MILLISECONDS);
}

void json_time_after(struct json *json, const char *start, double seconds) {
    int64_t us;

    json_text(json, time_read(start, &us) ? time_after(start, seconds).text : NULL);
}

static double to_milliseconds(double seconds) {
    return (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
}

static const char *end_kind(const struct task_record *task) {
    return task->exit_code >= 0 ? "exited" : task->signal ? "signalled" : "not_started";
}

static void json_end_of(struct json *json, const struct task_record *task) {
    if (task->exit_code >= 0) {
        json_key(json, "exit_code");
        json_int(json, task->exit_code);
    } else if (task->signal) {
        json_key(json, "signal");
        json_int(json, task->signal);
    } else {
        json_key(json, "message");
        json_text(json, task->reason);
    }
}

static void json_task(struct json *json, const struct run_record *run, uint32_t rank) {
    const struct task_record *task = &run->tasks[rank];

    json_object(json);
    plan_write_task_name(&run->task_names[rank], rank, json);
    json_key(json, "status");
    json_text(json, state_name(task->state));
    if (state_is_final(task->state))
        json_end_of(json, task);
    if (task->started_s >= 0) {
        double until = task->ended_s >= 0 ? task->ended_s : run->elapsed_s;

        json_key(json, "started_at");
        json_time_after(json, run->created_at, task->started_s);
        json_key(json, "duration_s");
        json_number(json, to_milliseconds(until - task->started_s));
    }
    if (task->pid && !state_is_final(task->state)) {
        json_key(json, "pid");
        json_int(json, task->pid);
    }
    if (task->cpus) {
        json_key(json, "cpus");
        json_text(json, task->cpus);
    }
    if (task->log_lost) {
        json_key(json, "log_bytes_lost");
        json_int(json, (int64_t)task->log_lost);
    }
    json_end(json);
}

static void json_line(void *json, const char *line, size_t n) {
    json_text_n(json, line, n);
}

static void json_first_failed(struct json *json, const struct run_record *run) {
    json_key(json, "first_failed");
    if (run->first_failed < 0) {
        json_null(json);
        return;
    }
    const uint32_t rank = (uint32_t)run->first_failed;

    json_object(json);
    json_key(json, "task");
    json_text(json, task_name(&run->task_names[rank]).text);
    json_key(json, "kind");
    json_text(json, end_kind(&run->tasks[rank]));
    json_end_of(json, &run->tasks[rank]);
    json_key(json, "place");
    json_text(json, run->place);
    json_key(json, "hint");
    json_text(json, run->hint);
    json_key(json, "last_lines");
    json_array(json);
    last_lines(run, rank, json_line, json);
    json_end(json);
    json_end(json);
}

static void json_paths(struct json *json, const struct rundir *directory) {
    json_key(json, "paths");
    json_object(json);
    json_key(json, "run");
    json_text(json, directory->path);
    json_key(json, "outputs");
    json_text(json, directory->outputs);
    json_key(json, "logs");
    json_text(json, directory->logs);
    json_end(json);
}

static void json_machine(struct json *json, const struct machine_record *machine) {
    json_key(json, "machine");
    json_object(json);
    json_key(json, "kernel");
    json_text(json, machine->kernel);
    json_key(json, "cpus");
    if (machine->cpus > 0)
        json_int(json, machine->cpus);
    else
        json_null(json);
    json_key(json, "python");
    json_text(json, machine->python);
    json_end(json);
}

static void json_code(struct json *json, const struct code_facts *code) {
    json_key(json, "code");
    if (!code_facts_any(code)) {
        json_null(json);
        return;
    }
    json_object(json);
    code_facts_write(json, code);
    json_end(json);
}

void write_run_json(struct json *json, const struct run_record *run) {
    json_object(json);
    json_key(json, "id");
    json_int(json, strtol(run->rundir.id, NULL, 10));
    json_key(json, "uuid");
    json_text(json, run->uuid);
    json_key(json, "name");
    json_text(json, run->name);
    json_key(json, "owner");
    json_text(json, run->owner);
    json_key(json, "framework");
    json_text(json, run->framework);
    json_key(json, "command");
    json_text(json, run->command);
    json_key(json, "directory");
    json_text(json, run->directory);
    json_key(json, "host");
    json_text(json, run->host);
    json_key(json, "backend");
    json_text(json, run->backend);
    json_key(json, "cluster");
    json_text(json, run->cluster);
    json_key(json, "namespace");
    json_text(json, run->namespace);
    json_key(json, "image");
    json_text(json, run->image);
    json_key(json, "volume");
    json_text(json, run->volume);
    json_machine(json, &run->machine);
    json_code(json, &run->code);
    json_key(json, "status");
    json_text(json, state_name(run->state));
    json_key(json, "phase");
    json_text(json, state_is_final(run->state) ? NULL : run->phase);
    json_key(json, "exit_status");
    if (run->exit_status == EXIT_STATUS_NONE)
        json_null(json);
    else
        json_int(json, run->exit_status);
    json_key(json, "reason");
    json_text(json, run->reason);
    json_key(json, "started_at");
    json_time_after(json, run->created_at, 0);
    json_key(json, "duration_s");
    json_number(json, to_milliseconds(run->elapsed_s));
    json_key(json, "left_nothing");
    json_bool(json, run->left_nothing);
    json_key(json, "left");
    json_text(json, run->left);
    json_first_failed(json, run);
    history_json(json, run);
    json_key(json, "tasks");
    json_array(json);
    for (uint32_t rank = 0; rank < run->n_tasks; rank++)
        json_task(json, run, rank);
    json_end(json);
    json_tracked(json, run);
    json_losses(json, &run->losses);
    json_last_values(json, &run->rundir);
    json_media_names(json, &run->rundir);
    json_paths(json, &run->rundir);
    json_end(json);
}
