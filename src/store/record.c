/* SPDX-License-Identifier: Apache-2.0 */
#include "store/record.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"
#include "codec/json_read.h"
#include "model/uuid.h"
#include "store/host.h"
#include "store/journal.h"

enum { TASKS_MAX_READ = 1000000, ATTEMPTS_MAX_READ = 2000, TRACKED_BYTES_MAX = 1 << 20 };

#define SECONDS_MOST 1e10 /* three hundred years */

void record_init(struct run_record *record, const struct rundir *rundir) {
    *record = (struct run_record){ .exit_status = EXIT_STATUS_NONE,
                                   .first_failed = -1,
                                   .monotonic_s = -1 };
    record->rundir = rundir_copy(rundir, &record->arena);
}

void record_release(struct run_record *record) {
    arena_release(&record->arena);
    *record = (struct run_record){ 0 };
}

/* ---- members of a line ---- */

static const char *text_of(const struct node *line, const char *key) {
    const struct node *node = node_get(line, key);

    return node && node->kind == NODE_TEXT ? node->text : NULL;
}

/* A member's text, kept as long as the record. */
static const char *kept(struct run_record *record, const struct node *line, const char *key) {
    const char *text = text_of(line, key);

    return text ? arena_text(&record->arena, text, strlen(text)) : NULL;
}

static int64_t int_of(const struct node *line, const char *key, int64_t fallback) {
    const struct node *node = node_get(line, key);

    return node && node->kind == NODE_INT ? node->integer : fallback;
}

/* A span of time; 0 for what is none. */
static double seconds_of(const struct node *line, const char *key) {
    const struct node *node = node_get(line, key);
    double seconds = 0;

    if (node && node->kind == NODE_FLOAT)
        seconds = node->number;
    else if (node && node->kind == NODE_INT)
        seconds = (double)node->integer;
    return seconds > 0 && seconds < SECONDS_MOST ? seconds : 0;
}

/* ---- events ---- */

/* As they are before anything is started. */
static void reset_tasks(struct run_record *record) {
    for (uint32_t rank = 0; rank < record->n_tasks; rank++)
        record->tasks[rank] =
            (struct task_record){ .exit_code = -1, .started_s = -1, .ended_s = -1 };
}

static void make_tasks(struct run_record *record, const struct node *counts) {
    uint32_t rank = 0;
    int64_t total = 0;

    for (enum role role = 0; role < ROLE_COUNT; role++) {
        int64_t n = int_of(counts, role_name(role), 0);

        if (n < 0 || n > TASKS_MAX_READ - total)
            n = 0;
        record->n_role[role] = (uint32_t)n;
        total += n;
    }
    record->n_tasks = (uint32_t)total;
    record->task_names = ARENA_ARRAY(&record->arena, struct task, record->n_tasks);
    record->tasks = ARENA_ARRAY(&record->arena, struct task_record, record->n_tasks);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        for (uint32_t i = 0; i < record->n_role[role]; i++, rank++)
            record->task_names[rank] = (struct task){ .role = role, .index = i };
    reset_tasks(record);
}

static void read_origin(struct run_record *record, const struct node *origin) {
    const char *manner = origin ? text_of(origin, "manner") : NULL;

    if (!manner || !origin_manner_named(manner, &record->origin.manner))
        return;
    record->origin.id = (unsigned long)int_of(origin, "id", 0);
    record->origin.uuid = kept(record, origin, "uuid");
}

static void read_machine(struct run_record *record, const struct node *machine) {
    if (!machine)
        return;
    record->machine.kernel = kept(record, machine, "kernel");
    record->machine.python = kept(record, machine, "python");
    record->machine.cpus = int_of(machine, "cpus", 0);
}

static bool on_created(struct run_record *record, const struct node *line) {
    if (record->tasks || !uuid_is_valid(text_of(line, "uuid")))
        return false;
    record->uuid = kept(record, line, "uuid");
    record->name = kept(record, line, "name");
    record->owner = kept(record, line, "owner");
    record->host = kept(record, line, "host");
    record->boot_id = kept(record, line, "boot_id");
    record->framework = kept(record, line, "framework");
    record->command = kept(record, line, "command");
    record->directory = kept(record, line, "directory");
    record->made_by = kept(record, line, "made_by");
    record->backend = kept(record, line, "backend");
    record->cluster = kept(record, line, "cluster");
    record->namespace = kept(record, line, "namespace");
    record->image = kept(record, line, "image");
    record->volume = kept(record, line, "volume");
    record->created_at = kept(record, line, "time");
    record->created_s = seconds_of(line, "elapsed");
    if (node_get(line, "monotonic"))
        record->monotonic_s = seconds_of(line, "monotonic");
    read_origin(record, node_get(line, "origin"));
    read_machine(record, node_get(line, "machine"));
    make_tasks(record, node_get(line, "counts"));
    return true;
}

/* Nothing of a run outlives it: a task that was not told to have ended did so with the run. */
static void end_tasks(struct run_record *record, double elapsed_s) {
    for (uint32_t rank = 0; rank < record->n_tasks; rank++) {
        struct task_record *task = &record->tasks[rank];

        if (state_is_final(task->state))
            continue;
        task->reason = task->started_s >= 0 ? "ended with the run" : "was not started";
        if (task->started_s >= 0)
            task->ended_s = elapsed_s;
        task->state = STATE_STOPPED;
    }
}

/* ---- attempts ---- */

/* What the line says of how an attempt ended. */
static void end_attempt(struct run_record *record, const struct node *line, enum state state) {
    struct attempt_record *attempt;

    if (record->n_over == record->n_attempts)
        return;
    attempt = &record->attempts[record->n_over++];
    attempt->state = state;
    attempt->ended_s = seconds_of(line, "elapsed");
    attempt->reason = kept(record, line, "reason");
    attempt->exit_status = (int)int_of(line, "exit_status", EXIT_STATUS_NONE);
    attempt->first_failed = int_of(line, "first_failed", -1);
    if (attempt->first_failed < 0 || attempt->first_failed >= record->n_tasks)
        attempt->first_failed = -1;
}

static void begin_attempt(struct run_record *record, const struct node *line) {
    /* Whenever the number is a power of two, there is room for as many more. */
    if ((record->n_attempts & (record->n_attempts - 1)) == 0) {
        const uint32_t n = record->n_attempts;
        struct attempt_record *grown =
            ARENA_ARRAY(&record->arena, struct attempt_record, n ? 2 * n : 1);

        if (n)
            memcpy(grown, record->attempts, n * sizeof *grown);
        record->attempts = grown;
    }
    record->attempts[record->n_attempts++] =
        (struct attempt_record){ .state = STATE_STARTING,
                                 .started_s = seconds_of(line, "elapsed"),
                                 .ended_s = -1,
                                 .first_failed = -1,
                                 .exit_status = EXIT_STATUS_NONE };
    if (record->n_attempts > 1)
        reset_tasks(record);
    record->left_nothing = false;
    record->left = NULL;
}

/* Attempts come one after the other: the next begins when the one before has failed. */
static bool on_attempt(struct run_record *record, const struct node *line) {
    const char *name = text_of(line, "status");
    const int64_t number = int_of(line, "attempt", -1);
    const bool goes_on = record->n_over < record->n_attempts;
    enum state state;

    if (!name || !state_named(name, &state) || !record->tasks)
        return false;
    if (state == STATE_STARTING && !goes_on && number == record->n_attempts &&
        number < ATTEMPTS_MAX_READ)
        begin_attempt(record, line);
    else if (state == STATE_FAILED && goes_on && number == record->n_over)
        end_attempt(record, line, state);
    else
        return false;
    return true;
}

uint32_t record_attempt(const struct run_record *record) {
    return record->n_attempts > 0 ? record->n_attempts - 1 : 0;
}

/* ---- the run and its tasks ---- */

static bool on_status(struct run_record *record, const struct node *line) {
    const char *name = text_of(line, "status");
    enum state state;

    if (!name || !state_named(name, &state))
        return false;
    if (state == record->state && !state_is_final(state)) {
        record->reason = kept(record, line, "reason"); /* it waits for something else by now */
        return true;
    }
    if (!run_state_can_become(record->state, state))
        return false;
    record->state = state;
    record->reason = kept(record, line, "reason");
    record->place = kept(record, line, "place");
    record->hint = kept(record, line, "hint");
    record->exit_status = (int)int_of(line, "exit_status", EXIT_STATUS_NONE);
    record->first_failed = int_of(line, "first_failed", -1);
    if (record->first_failed < 0 || record->first_failed >= record->n_tasks)
        record->first_failed = -1;
    if (state_is_final(state)) {
        end_attempt(record, line, state);
        end_tasks(record, seconds_of(line, "elapsed"));
    } else if (state == STATE_RUNNING && record->n_over < record->n_attempts) {
        record->attempts[record->n_over].state = state;
    }
    return true;
}

static bool on_task(struct run_record *record, const struct node *line) {
    const char *name = text_of(line, "status");
    int64_t rank = int_of(line, "rank", -1);
    struct task_record *task;
    enum state state;

    if (rank < 0 || rank >= record->n_tasks || !name || !state_named(name, &state))
        return false;
    task = &record->tasks[rank];
    if (!task_state_can_become(task->state, state))
        return false;
    task->state = state;
    task->reason = kept(record, line, "reason");
    task->pid = int_of(line, "pid", task->pid);
    if (state == STATE_RUNNING) {
        task->started_s = seconds_of(line, "elapsed");
        task->cpus = kept(record, line, "cpus");
    }
    if (state_is_final(state)) {
        task->ended_s = seconds_of(line, "elapsed");
        task->exit_code = (int)int_of(line, "exit_code", -1);
        task->signal = (int)int_of(line, "signal", 0);
        task->log_lost = (uint64_t)int_of(line, "log_lost", 0);
    }
    return true;
}

static bool on_checked(struct run_record *record, const struct node *line) {
    record->left = kept(record, line, "left");
    record->left_nothing = int_of(line, "processes", -1) == 0 &&
                           int_of(line, "listeners", 0) == 0 && int_of(line, "cgroups", 0) == 0;
    return true;
}

static bool on_phase(struct run_record *record, const struct node *line) {
    static const char *const phases[] = { "launching", "submitted", "running",
                                          "lingering", "stopping",  "waiting" };
    const char *name = text_of(line, "phase");

    for (size_t i = 0; name && i < ARRAY_LEN(phases); i++)
        if (strcmp(phases[i], name) == 0) {
            record->phase = phases[i];
            return true;
        }
    return false;
}

static bool on_notice(struct run_record *record, const struct node *line) {
    (void)record;
    return text_of(line, "message") != NULL;
}

/* For the ledger (claim.h), not for people. */
static bool on_claim(struct run_record *record, const struct node *line) {
    (void)record, (void)line;
    return true;
}

/* ---- what tasks say of the run ---- */

const char *tracked_kind_name(int kind) {
    static const char *const names[] = { [TRACKED_PARAMS] = "params",
                                         [TRACKED_TAGS] = "tags",
                                         [TRACKED_SUMMARY] = "summary",
                                         [TRACKED_ARTIFACTS] = "artifacts" };

    return names[kind];
}

/* The place of this key, made if it is new. NULL when there are too many. */
static struct tracked_value *tracked_place(struct run_record *record, struct tracked *tracked,
                                           const char *key) {
    for (size_t i = 0; i < tracked->n; i++)
        if (strcmp(tracked->values[i].key, key) == 0)
            return &tracked->values[i];
    if (tracked->n >= TRACKED_MOST)
        return NULL;
    /* Whenever the number is a power of two, there is room for as many more. */
    if ((tracked->n & (tracked->n - 1)) == 0) {
        struct tracked_value *grown =
            ARENA_ARRAY(&record->arena, struct tracked_value, tracked->n ? 2 * tracked->n : 1);

        if (tracked->n)
            memcpy(grown, tracked->values, tracked->n * sizeof *grown);
        tracked->values = grown;
    }
    tracked->values[tracked->n].key = arena_text(&record->arena, key, strlen(key));
    return &tracked->values[tracked->n++];
}

static bool track(struct run_record *record, struct tracked *tracked, const char *key,
                  const struct node *value) {
    AUTO(buf) text = BUF_INIT(TRACKED_BYTES_MAX);
    struct tracked_value *place;
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    json_node(&json, value);
    if (json_finish(&json, &err) || !(place = tracked_place(record, tracked, key)))
        return false;
    place->json = arena_text(&record->arena, text.data, text.len);
    return true;
}

static bool on_tracked(struct run_record *record, const struct node *line) {
    const char *name = text_of(line, "kind"), *key;
    const struct node *values = node_get(line, "values");

    if (!name || !values || values->kind != NODE_MAP)
        return false;
    if (strcmp(name, "artifact") == 0)
        return (key = text_of(values, "name")) &&
               track(record, &record->tracked[TRACKED_ARTIFACTS], key, values);
    for (int kind = 0; kind < TRACKED_ARTIFACTS; kind++) {
        if (strcmp(name, tracked_kind_name(kind)) != 0)
            continue;
        for (size_t i = 0; i < values->count; i++)
            if (!track(record, &record->tracked[kind], values->members[i].key,
                       &values->members[i].value))
                return false;
        return true;
    }
    return false;
}

static bool on_artifact(struct run_record *record, const struct node *line) {
    const char *name = text_of(line, "name");

    return name && track(record, &record->found, name, line);
}

static bool on_code(struct run_record *record, const struct node *line) {
    code_facts_read(line, &record->arena, &record->code);
    return true;
}

bool losses_any(const struct losses *losses) {
    return losses->dropped || losses->refused || losses->lost || losses->damaged ||
           losses->others || losses->waiting;
}

static bool on_losses(struct run_record *record, const struct node *line) {
    record->losses = (struct losses){ .dropped = node_get_count(line, "dropped"),
                                      .refused = node_get_count(line, "refused"),
                                      .lost = node_get_count(line, "lost"),
                                      .damaged = node_get_count(line, "damaged"),
                                      .others = node_get_count(line, "others"),
                                      .version = node_get_count(line, "version"),
                                      .waiting = node_get_count(line, "waiting") };
    return true;
}

/* Whether it is still told after the end. */
static bool outlasts_run(const char *event) {
    return strcmp(event, "tracked") == 0 || strcmp(event, "artifact") == 0 ||
           strcmp(event, "losses") == 0;
}

static const struct {
    const char *event;
    bool (*apply)(struct run_record *record, const struct node *line);
} events[] = {
    { "created", on_created }, { "status", on_status },     { "task", on_task },
    { "checked", on_checked }, { "notice", on_notice },     { "phase", on_phase },
    { "attempt", on_attempt }, { "queued", on_claim },      { "reserved", on_claim },
    { "tracked", on_tracked }, { "artifact", on_artifact }, { "code", on_code },
    { "losses", on_losses },
};

void record_feed(struct run_record *record, const char *line, size_t n, const char **notice) {
    AUTO(arena) scratch = ARENA_INIT;
    struct node node;
    struct error err;
    const char *event;
    const bool was_final = state_is_final(record->state);
    bool good = false;

    *notice = NULL;
    if (json_read(line, n, &scratch, &node, &err) == 0 && (event = text_of(&node, "event")) &&
        (!was_final || outlasts_run(event))) {
        for (size_t i = 0; i < ARRAY_LEN(events); i++)
            if (strcmp(events[i].event, event) == 0) {
                good = events[i].apply(record, &node);
                if (good && events[i].apply == on_notice)
                    *notice = kept(record, &node, "message");
            }
    }
    if (!good) {
        record->bad_lines++;
        return;
    }
    record->seq = (uint64_t)int_of(&node, "seq", (int64_t)record->seq);
    if (was_final)
        return; /* logged before the end, told after it */
    record->elapsed_s = seconds_of(&node, "elapsed");
    if (text_of(&node, "time"))
        snprintf(record->updated_at, sizeof record->updated_at, "%s", text_of(&node, "time"));
}

int record_read(struct run_record *record, const struct rundir *rundir, struct error *err) {
    AUTO(buf) text = BUF_INIT(JOURNAL_MOST);
    const char *line, *notice;
    size_t at = 0, n;

    if (journal_load(rundir, &text, err))
        return -1;
    record_init(record, rundir);
    while (journal_next(&text, &at, &line, &n))
        record_feed(record, line, n, &notice);
    return 0;
}

struct plan record_plan(const struct run_record *record) {
    struct plan plan = { .framework_label = record->framework,
                         .tasks = record->task_names,
                         .n_tasks = record->n_tasks };

    memcpy(plan.n_role, record->n_role, sizeof plan.n_role);
    return plan;
}

bool record_is_of_this_boot(const struct run_record *record) {
    char boot[BOOT_TEXT];

    return record->monotonic_s >= 0 && record->boot_id &&
           strcmp(record->boot_id, boot_id(boot)) == 0;
}

/* By the clock of the journal, where that is this boot's. Else by the wall clock since the newest
 * line: that may have been set back meanwhile, and a run never gets younger by it. */
double record_elapsed(const struct run_record *record) {
    double counted = 0;
    int64_t since_us;

    if (record_is_of_this_boot(record))
        counted = (double)clock_monotonic_us() / 1e6 - record->monotonic_s;
    else if (time_read(record->updated_at, &since_us))
        counted = record->elapsed_s + (double)(clock_wall_us() - since_us) / 1e6;
    return counted > record->elapsed_s ? counted : record->elapsed_s;
}
