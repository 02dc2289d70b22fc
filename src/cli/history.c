/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/history.h"

#include <string.h>

#include "cli/report.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "store/find.h"

/* Whether the id means another run here: the run was imported, without the one it was made from or
 * under another id. */
static bool is_of_another_home(const struct run_record *run) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_identity identity;
    struct rundir origin;
    struct error gone;

    if (!run->origin.uuid ||
        rundir_open(rundir_home_of(&run->rundir, &arena), run->origin.id, &arena, &origin, &gone))
        return false;
    identify_run(&origin, &arena, &identity);
    return identity.uuid && strcmp(identity.uuid, run->origin.uuid) != 0;
}

const char *history_origin(const struct run_record *run, struct arena *arena) {
    if (run->origin.manner == ORIGIN_NONE)
        return NULL;
    return arena_printf(arena, "%s from run %lu%s", origin_manner_name(run->origin.manner),
                        run->origin.id, is_of_another_home(run) ? " of another home" : "");
}

const char *history_span(const struct run_record *run, struct arena *arena) {
    const struct duration_text duration = duration_text(run->elapsed_s);
    const bool has_restarted = run->n_attempts > 1;

    if (run->state == STATE_FAILED && has_restarted)
        return arena_printf(arena, "after %u attempts (%s)", run->n_attempts, duration.text);
    return arena_printf(arena, "%s %s%s",
                        run->state == STATE_SUCCEEDED ? "in"
                        : state_is_final(run->state)  ? "after"
                                                      : "for",
                        duration.text,
                        has_restarted ? arena_printf(arena, ", at attempt %u", record_attempt(run))
                                      : "");
}

static double seconds_of(const struct run_record *run, const struct attempt_record *attempt) {
    return (attempt->ended_s >= 0 ? attempt->ended_s : run->elapsed_s) - attempt->started_s;
}

void history_print(FILE *out, const struct run_record *run) {
    static const char *const columns[] = { "ATTEMPT", "STATUS", "STARTED AT", "DURATION",
                                           "REASON" };
    struct table table;

    if (run->n_attempts < 2)
        return;
    table_init(&table, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        table_cell(&table, "%s", columns[i]);
    for (uint32_t i = 0; i < run->n_attempts; i++) {
        const struct attempt_record *attempt = &run->attempts[i];

        table_cell(&table, "%u", i);
        table_cell(&table, "%s", state_name(attempt->state));
        table_paint(&table, runs_colour(attempt->state));
        table_cell(&table, "%s", duration_text(attempt->started_s).text);
        table_cell(&table, "%s", duration_text(seconds_of(run, attempt)).text);
        table_cell(&table, "%s", runs_text(&table.arena, attempt->reason, 0));
    }
    fputs("\n", out);
    table_print(&table, out, terminal_colour(out));
    table_release(&table);
}

static void json_exit_status(struct json *json, int exit_status) {
    json_key(json, "exit_status");
    if (exit_status == EXIT_STATUS_NONE)
        json_null(json);
    else
        json_int(json, exit_status);
}

static void json_attempt(struct json *json, const struct run_record *run, uint32_t i) {
    const struct attempt_record *attempt = &run->attempts[i];
    const int64_t first = attempt->first_failed;

    json_object(json);
    json_key(json, "attempt");
    json_int(json, i);
    json_key(json, "status");
    json_text(json, state_name(attempt->state));
    json_key(json, "started_at");
    json_time_after(json, run->created_at, attempt->started_s);
    json_key(json, "duration_s");
    json_number(json, (double)(int64_t)(seconds_of(run, attempt) * 1000 + 0.5) / 1000);
    json_exit_status(json, attempt->exit_status);
    json_key(json, "reason");
    json_text(json, attempt->reason);
    json_key(json, "first_failed");
    json_text(json, first >= 0 ? task_name(&run->task_names[first]).text : NULL);
    json_end(json);
}

void history_json(struct json *json, const struct run_record *run) {
    json_key(json, "origin");
    if (run->origin.manner == ORIGIN_NONE) {
        json_null(json);
    } else {
        json_object(json);
        json_key(json, "manner");
        json_text(json, origin_manner_name(run->origin.manner));
        json_key(json, "id");
        json_int(json, (int64_t)run->origin.id);
        json_key(json, "uuid");
        json_text(json, run->origin.uuid);
        json_end(json);
    }
    json_key(json, "attempts");
    json_array(json);
    for (uint32_t i = 0; i < run->n_attempts; i++)
        json_attempt(json, run, i);
    json_end(json);
}
