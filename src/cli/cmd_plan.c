/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "backend/local/unenforced.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/load.h"
#include "cli/program_note.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/venue.h"
#include "plan/environment.h"
#include "plan/fold.h"
#include "plan/plan.h"
#include "store/rundir.h"

enum { ROWS_SHOWN_MAX = 200, FOLDED_MAX = 1 << 20, FOLDED_SHOWN = 60 };

/* ---- the table ---- */

/* "1/2": requests and limits; "1" where they are equal; "-/2" where one is missing. */
static void range_cell(struct table *table, const struct resource_range *range) {
    struct milli_text requests = { "-" }, limits = { "-" };

    if (range->requests == ABSENT && range->limits == ABSENT) {
        table_cell(table, "%s", "");
        return;
    }
    if (range->requests != ABSENT)
        requests = milli_text(range->requests);
    if (range->limits != ABSENT)
        limits = milli_text(range->limits);
    if (range->requests == range->limits)
        table_cell(table, "%s", requests.text);
    else
        table_cell(table, "%s/%s", requests.text, limits.text);
}

static void resource_cells(struct table *table, const struct resources *resources) {
    for (enum resource i = 0; i < RESOURCE_COUNT; i++)
        range_cell(table, &resources->of[i]);
}

static void attributes_cell(struct table *table, const struct plan *plan, uint32_t rank) {
    const struct profile *profile = plan->tasks[rank].profile;
    const char *list = plan_pinned(plan, rank) > 0 ? "own CPUs" : "";

    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
        if (profile->given[i])
            list =
                arena_printf(&table->arena, "%s%s%s", list, *list ? ", " : "", attribute_name(i));
    table_cell(table, "%s", list);
}

/* A set of numbers as text, cut where it is too long to read. */
static void folded_cell(struct table *table, struct buf *text) {
    if (text->len > FOLDED_SHOWN)
        table_cell(table, "%.*s...", FOLDED_SHOWN - 3, text->data);
    else
        table_cell(table, "%s", text->data);
}

static int group_row(struct table *table, const struct plan *plan, const struct task_group *group,
                     struct error *err) {
    const struct profile *profile = plan->tasks[group->ranks[0]].profile;
    AUTO(buf) names = BUF_INIT(FOLDED_MAX);
    AUTO(buf) ranks = BUF_INIT(FOLDED_MAX);

    if (fold_group(plan, group, &names, err) || fold_numbers(group->ranks, group->n, &ranks, err))
        return -1;
    folded_cell(table, &names);
    table_cell(table, "%u", group->n);
    folded_cell(table, &ranks);
    resource_cells(table, &profile->resources);
    attributes_cell(table, plan, group->ranks[0]);
    return 0;
}

static int print_tasks(const struct plan *plan, struct error *err) {
    static const char *const heads[] = { "TASKS",  "N",   "RANKS", "CPU",
                                         "MEMORY", "GPU", "TPU",   "WITH" };
    struct task_groups groups = group_tasks(plan);
    struct table table;
    int status = 0;

    table_init(&table, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        table_cell(&table, "%s", heads[i]);
    for (size_t i = 0; i < groups.len && i < ROWS_SHOWN_MAX && status == 0; i++)
        status = group_row(&table, plan, &groups.list[i], err);
    if (status == 0) {
        table_cell(&table, "total");
        table_cell(&table, "%u", plan->n_tasks);
        table_cell(&table, "%s", "");
        resource_cells(&table, &plan->totals);
        table_cell(&table, "%s", "");
        table_print(&table, stdout, terminal_colour(stdout));
        if (groups.len > ROWS_SHOWN_MAX)
            printf("(%zu more rows; --json lists every task)\n", groups.len - ROWS_SHOWN_MAX);
    }
    table_release(&table);
    task_groups_release(&groups);
    return status;
}

static void print_note(void *context, const char *sentence) {
    (void)context;
    printf("note: %s\n", sentence);
}

/* What is to be known of the tasks where they would run. */
static void print_notes(const struct plan *plan, const struct venue *venue) {
    if (!venue->is_chosen && plan->backend == BACKEND_NATIVE)
        plan_local_notes(plan, print_note, NULL);
    for (size_t i = 0; i < venue->n_notes; i++)
        print_note(NULL, venue->notes[i]);
}

static int print_plan(const struct plan *plan, const struct venue *venue, struct error *err) {
    if (plan->name)
        printf("name       %s\n", plan->name);
    printf("framework  %s\n", plan->framework_label ? plan->framework_label : "none");
    printf("backend    %s\n", backend_kind_name(plan->backend));
    if (plan->command)
        printf("command    %s%s\n", plan->command,
               plan->command_manner == COMMAND_SHELL ? "  (by a shell)" : "");
    printf("\n");
    if (print_tasks(plan, err))
        return -1;
    print_notes(plan, venue);
    return 0;
}

/* ---- one task ---- */

static int print_task(const struct plan *plan, uint32_t rank, bool as_json, struct error *err) {
    struct environment environment = { 0 };
    struct json json;
    int status = plan_environment(plan, rank, &facts_symbolic, &environment, err);

    if (status == 0 && !as_json)
        for (size_t i = 0; i < environment.len; i++)
            puts(environment.items[i]);
    if (status == 0 && as_json) {
        json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
        json_object(&json);
        json_key(&json, "task");
        plan_write_task_json(plan, rank, &json);
        json_key(&json, "command");
        json_text(&json, plan->command);
        json_key(&json, "environment");
        json_object(&json);
        for (size_t i = 0; i < environment.len; i++) {
            char *equals = strchr(environment.items[i], '=');

            *equals = '\0';
            json_key(&json, environment.items[i]);
            json_text(&json, equals + 1);
        }
        json_end(&json);
        json_end(&json);
        status = json_finish(&json, err);
    }
    environment_release(&environment);
    return status;
}

static int show(const struct invocation *invocation, const struct plan *plan,
                const struct venue *venue, struct error *err) {
    const char *task = invocation_value(invocation, "task");
    bool as_json = invocation_has(invocation, "json");
    struct json json;

    if (task) {
        int64_t rank = plan_find_named(plan, task);

        if (rank < 0)
            return error_set(err, ERROR_NOT_FOUND,
                             "the plan has no task `%s`: tasks are named as worker.2, or by rank",
                             task);
        return print_task(plan, (uint32_t)rank, as_json, err);
    }
    if (!as_json)
        return print_plan(plan, venue, err);
    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    plan_write_json(plan, &json);
    return json_finish(&json, err);
}

/* The plan is the same on any machine; what this one lacks for it is told beside it. */
static void tell_of_machine(const struct plan *plan) {
    const struct unenforced_text unenforced = unenforced_foresee(plan);
    char note[PROGRAM_NOTE_MOST];

    if (unenforced.text[0])
        fprintf(stderr, "myelin: %s\n", unenforced.text);
    if (program_note(plan, note))
        fprintf(stderr, "myelin: note: %s\n", note);
}

/* The tasks are the same everywhere; only the table says what is to be known of them there. */
static int foresee(const struct invocation *invocation, struct loaded *loaded, struct venue *venue,
                   struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home;

    if (invocation_has(invocation, "json") || invocation_value(invocation, "task"))
        return 0;
    return rundir_home(&arena, &home, err) || venue_foresee(invocation, loaded, home, venue, err)
               ? -1
               : 0;
}

static int plan_command(const struct invocation *invocation) {
    struct venue venue = { 0 };
    struct loaded loaded;
    struct error err;
    int status;

    if (invocation->n_operands > 1)
        return invocation_misuse(invocation, "one FILE is planned at a time");
    load(invocation, invocation->n_operands > 0 ? invocation->operands[0] : NULL, &loaded);
    status = loaded.plan ? foresee(invocation, &loaded, &venue, &err)
                         : error_set(&err, ERROR_INVALID, "%s", "");
    print_diags(&loaded);
    if (status == 0)
        status = show(invocation, loaded.plan, &venue, &err);
    if (status && err.message[0])
        complain("%s", err.message);
    if (status == 0 && loaded.plan->backend == BACKEND_NATIVE && !venue.is_chosen &&
        !invocation_has(invocation, "task"))
        tell_of_machine(loaded.plan);
    venue_release(&venue);
    loaded_release(&loaded);
    return status ? STATUS_INVALID : STATUS_OK;
}

static const struct option options[] = {
    LOAD_OPTIONS,
    { .name = "task",
      .argument = "TASK",
      .help = "show the environment of one task: worker.2, or a rank" },
    VENUE_FORESEEN_OPTIONS("note what is lost there: "),
    { .name = "json", .help = "print the whole plan as JSON" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "the plan was made" },
    { "1", "the file is not valid, or it has no such task" },
    { "2", "the command line is wrong" },
    { 0 },
};

const struct command command_plan = {
    .name = "plan",
    .arguments = "[FILE]",
    .summary = "show the tasks that a polyaxonfile comes to",
    .description =
        "Prints what would be started: roles, ranks and resources, tasks that are "
        "given the same on one line. Nothing is started, and the plan is the same on any "
        "machine. Notes say what of the file has no effect where it would run, or is "
        "lost there: on this machine, with the limits that it cannot enforce, or on a "
        "cluster, with `--on kubernetes` or by the settings.\n"
        "\n"
        "Resources are shown as requests/limits; memory is in MiB. In the environment "
        "of a task, what is known only when it runs is shown as a symbol such as "
        "<worker.0.port>.",
    .options = options,
    .operand_kind = ARGUMENT_FILE,
    .examples = "myelin plan polyaxonfile.yml                  # the table\n"
                "myelin plan polyaxonfile.yml --task worker.2  # what worker 2 sees\n"
                "myelin plan polyaxonfile.yml --on kubernetes  # what to know of it on a cluster\n",
    .statuses = statuses,
    .run = plan_command,
};
