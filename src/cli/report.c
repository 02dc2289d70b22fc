/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/json.h"
#include "plan/fold.h"

enum { FOLDED_MOST = 1 << 20, SENTENCE_MOST = 640 };

static bool any_task(const void *run, uint32_t rank) {
    (void)run, (void)rank;
    return true;
}

static bool stopped_task(const void *run, uint32_t rank) {
    return ((const struct run_state *)run)->tasks[rank].fate == FATE_STOPPED;
}

/* "before master.0, worker[0-2,5] after", or nothing when no task is wanted. */
static void print_folded(FILE *out, const char *before, const struct run_state *run,
                         bool (*want)(const void *run, uint32_t rank), const char *after) {
    AUTO(buf) text = BUF_INIT(FOLDED_MOST);
    struct error err;

    if (fold_tasks(run->plan, want, run, &text, &err))
        fprintf(out, "%s(%s)%s", before, err.message, after);
    else if (text.len)
        fprintf(out, "%s%s%s", before, text.data, after);
}

static void print_duration(FILE *out, double seconds) {
    const unsigned long whole = (unsigned long)seconds;

    if (seconds < 60)
        fprintf(out, "%.1fs", seconds);
    else if (seconds < 3600)
        fprintf(out, "%lum%02lus", whole / 60, whole % 60);
    else
        fprintf(out, "%luh%02lum", whole / 3600, whole % 3600 / 60);
}

/* "worker.1 exited with code 3". */
static void end_sentence(const struct run_state *run, uint32_t rank, char *out, size_t size) {
    const struct task_name name = task_name(&run->plan->tasks[rank]);
    const struct task_end *end = &run->tasks[rank].end;
    const char *signal_name;

    switch (end->kind) {
    case TASK_EXITED: snprintf(out, size, "%s exited with code %d", name.text, end->detail); break;
    case TASK_SIGNALLED:
        signal_name = sigabbrev_np(end->detail);
        snprintf(out, size, "%s was ended by signal %d%s%s%s", name.text, end->detail,
                 signal_name ? " (SIG" : "", signal_name ? signal_name : "",
                 signal_name ? ")" : "");
        break;
    case TASK_NOT_STARTED: snprintf(out, size, "%s", end->message); break;
    }
}

static void reason_sentence(const struct run_state *run, char *out, size_t size) {
    switch (run->verdict.state) {
    case VERDICT_FAILED: end_sentence(run, run->verdict.first_failed, out, size); break;
    case VERDICT_STOPPED: snprintf(out, size, "it was stopped by the user"); break;
    case VERDICT_SUCCEEDED:
        snprintf(out, size, "%s",
                 run->verdict.rule == SUCCESS_OF_CHIEF     ? "the chief exited with code 0"
                 : run->verdict.rule == SUCCESS_OF_WORKERS ? "every worker exited with code 0"
                                                           : "every task exited with code 0");
        break;
    case VERDICT_RUNNING:
    case VERDICT_STATE_COUNT: snprintf(out, size, "it was left before it ended"); break;
    }
}

void report_start(FILE *out, const struct run_state *run) {
    const struct plan *plan = run->plan;

    fprintf(out, "run %s: %u task%s", run->directory.id, plan->n_tasks,
            plan->n_tasks == 1 ? "" : "s");
    print_folded(out, " (", run, any_task, ")");
    fprintf(out, "%s%s, logs in %s\n", plan->framework_label ? ", " : "",
            plan->framework_label ? plan->framework_label : "", run->directory.logs);
}

static void print_tail_line(void *context, const char *line, size_t n) {
    AUTO(buf) text = BUF_INIT(TAIL_BYTES * 4);
    struct error err;

    if (line_append_harmless(&text, line, n, &err) == 0)
        fprintf(context, "    %s\n", text.data);
}

static void report_failure(FILE *out, const struct run_state *run, const struct tail *tails) {
    const uint32_t rank = run->verdict.first_failed;
    const struct task_name name = task_name(&run->plan->tasks[rank]);

    if (tails[rank].len) {
        fprintf(out, "  last lines of %s:\n", name.text);
        tail_lines(&tails[rank], print_tail_line, out);
    } else if (run->tasks[rank].was_started) {
        fprintf(out, "  %s wrote nothing\n", name.text);
    }
    print_folded(out, "  stopped because of it: ", run, stopped_task, "\n");
}

void report_end(FILE *out, const struct run_state *run, const struct tail *tails) {
    const enum verdict_state state = run->verdict.state;
    char reason[SENTENCE_MOST];

    fprintf(out, "run %s %s%s ", run->directory.id, state == VERDICT_STOPPED ? "was " : "",
            verdict_state_name(state));
    fputs(state == VERDICT_SUCCEEDED ? "in " : "after ", out);
    print_duration(out, run->duration_s);
    if (state != VERDICT_FAILED) {
        fputs("\n", out);
        return;
    }
    reason_sentence(run, reason, sizeof reason);
    fprintf(out, ": %s\n", reason);
    report_failure(out, run, tails);
    fprintf(out, "  logs: %s\n", run->directory.logs);
}

static void json_time(struct json *json, int64_t ms) {
    const time_t seconds = (time_t)(ms / 1000);
    char date[32], text[48];
    struct tm utc;

    gmtime_r(&seconds, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%03dZ", date, (int)(ms % 1000));
    json_text(json, text);
}

static double to_milliseconds(double seconds) {
    return (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
}

static void json_end_of(struct json *json, const struct task_end *end) {
    switch (end->kind) {
    case TASK_EXITED:
        json_key(json, "exit_code");
        json_int(json, end->detail);
        break;
    case TASK_SIGNALLED:
        json_key(json, "signal");
        json_int(json, end->detail);
        break;
    case TASK_NOT_STARTED:
        json_key(json, "message");
        json_text(json, end->message);
        break;
    }
}

static void json_task(struct json *json, const struct run_state *run, uint32_t rank) {
    const struct task *task = &run->plan->tasks[rank];
    const struct task_record *record = &run->tasks[rank];

    json_object(json);
    json_key(json, "name");
    json_text(json, task_name(task).text);
    json_key(json, "role");
    json_text(json, role_name(task->role));
    json_key(json, "index");
    json_int(json, task->index);
    json_key(json, "rank");
    json_int(json, rank);
    json_key(json, "status");
    json_text(json, task_fate_name(record->fate));
    if (record->fate != FATE_RUNNING)
        json_end_of(json, &record->end);
    if (record->was_started) {
        json_key(json, "started_at");
        json_time(json, run->started_at_ms + (int64_t)(record->started_s * 1000));
        json_key(json, "duration_s");
        json_number(json, to_milliseconds(record->ended_s - record->started_s));
    }
    if (record->log_lost) {
        json_key(json, "log_bytes_lost");
        json_int(json, (int64_t)record->log_lost);
    }
    json_end(json);
}

static void json_line(void *json, const char *line, size_t n) {
    json_text_n(json, line, n);
}

static void json_first_failed(struct json *json, const struct run_state *run,
                              const struct tail *tails) {
    static const char *const kinds[] = {
        [TASK_EXITED] = "exited",
        [TASK_SIGNALLED] = "signalled",
        [TASK_NOT_STARTED] = "not_started",
    };
    const uint32_t rank = run->verdict.first_failed;

    json_key(json, "first_failed");
    if (run->verdict.state != VERDICT_FAILED) {
        json_null(json);
        return;
    }
    json_object(json);
    json_key(json, "task");
    json_text(json, task_name(&run->plan->tasks[rank]).text);
    json_key(json, "kind");
    json_text(json, kinds[run->tasks[rank].end.kind]);
    json_end_of(json, &run->tasks[rank].end);
    json_key(json, "last_lines");
    json_array(json);
    tail_lines(&tails[rank], json_line, json);
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

int report_json(FILE *out, const struct run_state *run, const struct tail *tails,
                struct error *err) {
    char reason[SENTENCE_MOST];
    struct json json;

    reason_sentence(run, reason, sizeof reason);
    json_init(&json, JSON_PRETTY, json_to_file, out);
    json_object(&json);
    json_key(&json, "id");
    json_int(&json, strtol(run->directory.id, NULL, 10));
    json_key(&json, "uuid");
    json_text(&json, run->uuid);
    json_key(&json, "status");
    json_text(&json, verdict_state_name(run->verdict.state));
    json_key(&json, "exit_status");
    json_int(&json, verdict_exit_status(&run->verdict));
    json_key(&json, "reason");
    json_text(&json, reason);
    json_key(&json, "started_at");
    json_time(&json, run->started_at_ms);
    json_key(&json, "duration_s");
    json_number(&json, to_milliseconds(run->duration_s));
    json_first_failed(&json, run, tails);
    json_key(&json, "tasks");
    json_array(&json);
    for (uint32_t rank = 0; rank < run->plan->n_tasks; rank++)
        json_task(&json, run, rank);
    json_end(&json);
    json_paths(&json, &run->directory);
    json_end(&json);
    return json_finish(&json, err);
}
