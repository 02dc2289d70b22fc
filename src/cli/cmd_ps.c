/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "store/owner.h"

enum { LIMIT_USUAL = 50, LIMIT_NONE = 0, METRICS_MOST = 3 };

static const char *const columns[] = { "ID",      "NAME",     "STATUS",  "TASKS", "FRAMEWORK",
                                       "STARTED", "DURATION", "METRICS", "REASON" };

/* Where the rows go. */
struct listing {
    bool as_json;
    struct json json;
    struct table table;
    size_t n;
};

static void add_row(struct listing *listing, const struct run_record *run) {
    struct table *table = &listing->table;
    const bool is_final = state_is_final(run->state);
    struct last_values values;

    listing->n++;
    if (listing->as_json) {
        write_run_summary_json(&listing->json, run);
        return;
    }
    table_cell(table, "%s", run->rundir.id);
    table_cell(table, "%s", runs_text(&table->arena, run->name, 0));
    table_cell(table, "%s", runs_status(run));
    table_paint(table, runs_colour(run->state));
    if (is_final)
        table_cell(table, "%u", run->n_tasks);
    else
        table_cell(table, "%u/%u", runs_count(run, STATE_RUNNING), run->n_tasks);
    table_cell(table, "%s", runs_text(&table->arena, run->framework, 0));
    table_cell(table, "%s", runs_ago(&table->arena, run, 0));
    table_cell(table, "%s", duration_text(run->elapsed_s).text);
    values = last_values_read(&run->rundir, &table->arena);
    table_cell(table, "%s", last_values_text(&values, METRICS_MOST, &table->arena));
    table_cell(table, "%s", runs_text(&table->arena, run->reason, 0));
}

/* Adds one run; nothing for one that is not wanted, has not begun, or was removed meanwhile. */
static void list_run(struct listing *listing, const char *home, unsigned long id, bool all) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_record record;
    struct rundir rundir;
    struct error err;
    pid_t pid;

    if (rundir_open(home, id, &arena, &rundir, &err))
        return;
    /* Without an owner it is not living, whatever the journal says: no need to read it. */
    if (!all && !owner_lives(&rundir, &pid))
        return;
    if (runs_read(&rundir, &record, &err)) {
        fprintf(stderr, "myelin: run %lu: %s\n", id, err.message);
        return;
    }
    if (record.uuid && (all || !state_is_final(record.state)))
        add_row(listing, &record);
    record_release(&record);
}

static int read_limit(const struct invocation *in, unsigned long *limit) {
    const char *text = invocation_value(in, "limit");
    char *end;

    *limit = invocation_has(in, "json") ? LIMIT_NONE : LIMIT_USUAL;
    if (!text)
        return 0;
    *limit = strtoul(text, &end, 10);
    if (text[strspn(text, "0123456789")] || end == text || *limit == ULONG_MAX)
        return invocation_misuse(in, "--limit takes a number of runs, not '%s'; 0 is all of them",
                                 text);
    return 0;
}

/* Goes from the newest run to the oldest; returns how many were not looked at. */
static size_t list_runs(struct listing *listing, const char *home, const unsigned long *ids,
                        size_t n, bool all, unsigned long limit) {
    size_t left = n;

    while (left > 0 && (limit == LIMIT_NONE || listing->n < limit))
        list_run(listing, home, ids[--left], all);
    return left;
}

static void print_table(const struct listing *listing, size_t n_runs, size_t more, bool all) {
    if (listing->n > 0)
        table_print(&listing->table, stdout, terminal_colour(stdout));
    if (listing->n == 0)
        fputs(n_runs == 0 ? "there are no runs yet\n"
              : all       ? "there are no runs that can be shown\n"
                          : "no run is going on; 'myelin ps -a' lists all\n",
              stderr);
    if (more > 0 && all)
        fprintf(stderr, "%zu older run%s not shown; -n 0 shows all\n", more,
                more == 1 ? " is" : "s are");
}

static int ps(const struct invocation *in) {
    const bool all = invocation_has(in, "all");
    struct listing listing = { .as_json = invocation_has(in, "json") };
    AUTO(arena) arena = ARENA_INIT;
    unsigned long limit, *ids;
    struct error err;
    const char *home;
    size_t n, more;
    int status = read_limit(in, &limit);

    if (status)
        return status;
    if (runs_home(&arena, &home, &err) || rundir_list(home, &arena, &ids, &n, &err)) {
        complain("%s", err.message);
        return STATUS_INVALID;
    }
    table_init(&listing.table, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        table_cell(&listing.table, "%s", columns[i]);
    if (listing.as_json) {
        json_init(&listing.json, JSON_PRETTY, json_to_stdout, NULL);
        json_array(&listing.json);
    }
    more = list_runs(&listing, home, ids, n, all, limit);
    if (listing.as_json) {
        json_end(&listing.json);
        status = json_finish(&listing.json, &err) ? STATUS_INVALID : STATUS_OK;
    } else {
        print_table(&listing, n, more, all);
    }
    table_release(&listing.table);
    return status;
}

static const struct option options[] = {
    { .name = "all", .letter = 'a', .help = "list runs that are over too" },
    { .name = "limit",
      .letter = 'n',
      .argument = "N",
      .help = "list at most N runs, 0 for all; 50 unless said, all with --json" },
    { .name = "json", .help = "print a list of JSON objects" },
    { 0 },
};

const struct command command_ps = {
    .name = "ps",
    .summary = "list the runs that are going on, or all",
    .description = "Lists runs, the newest first. Of a living run, TASKS says how many of its "
                   "tasks are running.\n"
                   "\n"
                   "On a terminal, columns are cut so that no line is wrapped; into a pipe every "
                   "column is whole.\n"
                   "\n"
                   "A run whose supervisor was killed, or whose machine went down, is shown as "
                   "failed.",
    .options = options,
    .examples = "myelin ps              # what is going on\n"
                "myelin ps -a -n 10     # the last ten runs\n"
                "myelin ps -a --json    # for a script\n",
    .run = ps,
};
