/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "codec/visible.h"
#include "store/find.h"
#include "store/host.h"
#include "store/owner.h"
#include "store/unbegun.h"
#include "supervise/supervisor.h"
#include "supervise/tracker.h"

/* ---- runs ---- */

int runs_home(struct arena *arena, const char **out, struct error *err) {
    char real[PATH_MAX];
    const char *home;

    if (rundir_home(arena, &home, err))
        return -1;
    *out = realpath(home, real) ? arena_text(arena, real, strlen(real)) : home;
    return 0;
}

int runs_find(const char *text, struct arena *arena, struct rundir *out, struct error *err) {
    const char *home;

    return runs_home(arena, &home, err) || find_run(home, text, FIND_NEWEST, arena, out, err) ? -1
                                                                                              : 0;
}

int runs_find_living(const char *text, struct arena *arena, struct rundir *out, struct error *err) {
    const char *home;

    return runs_home(arena, &home, err) || find_run(home, text, FIND_LIVING, arena, out, err) ? -1
                                                                                              : 0;
}

int64_t runs_now_us(const struct run_record *record) {
    int64_t created_us;

    if (!record_is_of_this_boot(record) || !time_read(record->created_at, &created_us))
        return clock_wall_us();
    return created_us + (int64_t)((record_elapsed(record) - record->created_s) * 1e6);
}

static bool is_here(const struct run_record *record) {
    char host[HOST_TEXT];

    return record->host && strcmp(record->host, host_name(host)) == 0;
}

/* A run without an owner is over, also where nobody may write that to its journal; one whose tasks
 * are elsewhere goes on there. */
static void tell_lost(struct run_record *record) {
    if (record->backend) {
        record->reason =
            arena_printf(&record->arena, "nobody watches it here; 'myelin attach %s' does so again",
                         record->rundir.id);
        return;
    }
    record->state = STATE_FAILED;
    record->reason = "its supervisor is gone; its end cannot be written here";
    record->exit_status = STATUS_RUN_OWN_FAILURE;
}

static void tell_unbegun(struct run_record *record) {
    const enum unbegun unbegun = unbegun_look(&record->rundir, UNBEGUN_MOMENT_S);

    if (unbegun == UNBEGUN_STARTS)
        return;
    record->state = STATE_FAILED;
    record->reason = unbegun == UNBEGUN_NEVER
                         ? "it never began: the command that started it was killed"
                         : "its journal does not say how it began: it was removed or damaged";
    record->exit_status = STATUS_RUN_OWN_FAILURE;
}

int runs_read(const struct rundir *rundir, struct run_record *record, struct error *err) {
    pid_t pid;

    tracker_settle(rundir);
    if (record_read(record, rundir, err))
        return -1;
    if (!record->uuid)
        tell_unbegun(record);
    if (!record->uuid || state_is_final(record->state))
        return 0;
    if (owner_lives(rundir, &pid)) {
        record->elapsed_s = record_elapsed(record);
        return 0;
    }
    record_release(record);
    supervisor_settle(rundir, SETTLE_PATIENTLY);
    if (record_read(record, rundir, err))
        return -1;
    if (!state_is_final(record->state) && is_here(record) && !owner_lives(rundir, &pid))
        tell_lost(record);
    return 0;
}

int runs_misuse_without_run(const struct invocation *invocation) {
    return invocation_misuse(invocation, "which RUN? 'myelin ps -a' lists them; @ is the newest");
}

/* ---- in few words ---- */

const char *runs_status(const struct run_record *run) {
    if (!state_is_final(run->state) && run->phase &&
        (strcmp(run->phase, "stopping") == 0 || strcmp(run->phase, "waiting") == 0))
        return run->phase;
    return state_name(run->state);
}

const char *runs_colour(enum state state) {
    static const char *const colours[STATE_COUNT] = {
        [STATE_RUNNING] = "36",   [STATE_STARTING] = "36",        [STATE_SUCCEEDED] = "32",
        [STATE_FAILED] = "1;31",  [STATE_UPSTREAM_FAILED] = "31", [STATE_STOPPED] = "33",
        [STATE_SCHEDULED] = "33", [STATE_UNSCHEDULABLE] = "33",   [STATE_WARNING] = "33",
        [STATE_UNKNOWN] = "33",
    };

    return colours[state];
}

const char *runs_painted(struct arena *arena, FILE *out, enum state state, const char *word) {
    const char *colour = terminal_colour(out) ? runs_colour(state) : NULL;

    return colour ? arena_printf(arena, "\x1b[%sm%s\x1b[0m", colour, word) : word;
}

uint32_t runs_count(const struct run_record *run, enum state state) {
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < run->n_tasks; rank++)
        n += run->tasks[rank].state == state;
    return n;
}

const char *runs_age(struct arena *arena, double seconds) {
    static const struct {
        double seconds;
        const char *unit;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (seconds >= units[i].seconds)
            return arena_printf(arena, "%.0f%s ago", floor(seconds / units[i].seconds),
                                units[i].unit);
    return "just now";
}

struct time_text runs_file_time(struct timespec at) {
    const int64_t most_s = INT64_MAX / 1000000;
    const int64_t second = at.tv_sec > most_s ? most_s : at.tv_sec < -most_s ? -most_s : at.tv_sec;

    return time_text(second * 1000000, TIME_SECONDS);
}

const char *runs_ago(struct arena *arena, const struct run_record *run, double elapsed_s) {
    return run->created_at ? runs_age(arena, record_elapsed(run) - elapsed_s) : "";
}

const char *runs_bytes(struct arena *arena, uint64_t n) {
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double size = (double)n;
    size_t i = 0;

    if (n < 1024)
        return arena_printf(arena, "%" PRIu64 " B", n);
    for (size /= 1024; size >= 1024 && i + 1 < ARRAY_LEN(units); i++)
        size /= 1024;
    return arena_printf(arena, "%.1f %s", size, units[i]);
}

const char *runs_text(struct arena *arena, const char *text, size_t most) {
    return visible_text(arena, text, most);
}

/* ---- JSON ---- */

static void write_counts(struct json *json, const struct run_record *run) {
    static const enum state shown[] = { STATE_RUNNING, STATE_SUCCEEDED, STATE_FAILED,
                                        STATE_STOPPED };

    json_key(json, "tasks");
    json_object(json);
    json_key(json, "total");
    json_int(json, run->n_tasks);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        json_key(json, state_name(shown[i]));
        json_int(json, runs_count(run, shown[i]));
    }
    json_end(json);
}

void write_run_summary_json(struct json *json, const struct run_record *run) {
    const struct {
        const char *key, *value;
    } texts[] = {
        { "uuid", run->uuid },
        { "name", run->name },
        { "owner", run->owner },
        { "framework", run->framework },
        { "status", state_name(run->state) },
        { "phase", state_is_final(run->state) ? NULL : run->phase },
        { "reason", run->reason },
        { "path", run->rundir.path },
    };

    json_object(json);
    json_key(json, "id");
    json_int(json, strtol(run->rundir.id, NULL, 10));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_key(json, texts[i].key);
        json_text(json, texts[i].value);
    }
    json_key(json, "exit_status");
    if (run->exit_status == EXIT_STATUS_NONE)
        json_null(json);
    else
        json_int(json, run->exit_status);
    json_key(json, "started_at");
    json_time_after(json, run->created_at, 0);
    json_key(json, "duration_s");
    json_number(json, floor(run->elapsed_s * 1000 + 0.5) / 1000);
    write_counts(json, run);
    json_end(json);
}

int runs_print_json(struct run_record *run) {
    struct error err;
    struct json json;

    if (!state_is_final(run->state))
        run->elapsed_s = record_elapsed(run);
    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    write_run_json(&json, run);
    return json_finish(&json, &err);
}

void write_order_json(struct json *json, const char *named, const struct rundir *rundir,
                      const char *outcome, const char *error) {
    json_object(json);
    json_key(json, "named");
    json_text(json, named);
    json_key(json, "id");
    if (rundir->path)
        json_int(json, strtol(rundir->id, NULL, 10));
    else
        json_null(json);
    json_key(json, "outcome");
    json_text(json, outcome);
    json_key(json, "error");
    json_text(json, error);
}
