/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/history.h"
#include "cli/media_rows.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/tracked.h"
#include "plan/fold.h"

enum { FOLDED_MOST = 1 << 20, METRICS_SHOWN = 8, CPUS_SHOWN = 8 };

/* ---- tasks that fare alike ---- */

/* Tasks of one role that ended, or go on, in the same way. */
struct group {
    uint32_t first; /* rank */
    uint32_t n;
    double shortest, longest; /* seconds; negative: not started */
    uint64_t log_lost;
};

struct groups {
    const struct run_record *run;
    VEC(struct group) list;
    uint32_t *of;    /* the group of each rank */
    uint32_t wanted; /* the one that is being printed */
};

static double task_seconds(const struct run_record *run, uint32_t rank) {
    const struct task_record *task = &run->tasks[rank];

    if (task->started_s < 0)
        return -1;
    return (task->ended_s >= 0 ? task->ended_s : run->elapsed_s) - task->started_s;
}

static bool fare_alike(const struct run_record *run, uint32_t a, uint32_t b) {
    const struct task_record *x = &run->tasks[a], *y = &run->tasks[b];

    return run->task_names[a].role == run->task_names[b].role && x->state == y->state &&
           x->exit_code == y->exit_code && x->signal == y->signal && !x->log_lost == !y->log_lost &&
           text_is_same(x->reason, y->reason);
}

static void group_ranks(struct groups *groups, const struct run_record *run) {
    groups->run = run;
    groups->of = calloc(run->n_tasks + 1, sizeof *groups->of);
    if (!groups->of)
        abort();
    for (uint32_t rank = 0; rank < run->n_tasks; rank++) {
        double seconds = task_seconds(run, rank);
        struct group *group;
        uint32_t g = 0;

        while (g < groups->list.len && !fare_alike(run, groups->list.items[g].first, rank))
            g++;
        if (g == groups->list.len)
            *VEC_PUSH(&groups->list) =
                (struct group){ .first = rank, .shortest = seconds, .longest = seconds };
        group = &groups->list.items[g];
        group->n++;
        group->shortest = seconds < group->shortest ? seconds : group->shortest;
        group->longest = seconds > group->longest ? seconds : group->longest;
        group->log_lost += run->tasks[rank].log_lost;
        groups->of[rank] = g;
    }
}

static bool is_wanted(const void *context, uint32_t rank) {
    const struct groups *groups = context;

    return groups->of[rank] == groups->wanted;
}

static void add_names(struct table *table, const struct groups *groups) {
    const struct plan plan = record_plan(groups->run);
    AUTO(buf) text = BUF_INIT(FOLDED_MOST);
    struct error err;

    if (fold_tasks(&plan, is_wanted, groups, &text, &err))
        table_cell(table, "%u tasks", groups->list.items[groups->wanted].n);
    else
        table_cell(table, "%s", text.data);
}

static void add_seconds(struct table *table, const struct group *group) {
    const struct duration_text shortest = duration_text(group->shortest > 0 ? group->shortest : 0);
    const struct duration_text longest = duration_text(group->longest > 0 ? group->longest : 0);

    if (group->longest < 0)
        table_cell(table, "%s", "");
    else if (strcmp(shortest.text, longest.text) == 0)
        table_cell(table, "%s", longest.text);
    else
        table_cell(table, "%s to %s", shortest.text, longest.text);
}

/* The CPUs of each task of the group, in rank order. */
static const char *own_cpus(struct table *table, const struct groups *groups) {
    const char *text = "";
    uint32_t shown = 0;

    for (uint32_t rank = 0; rank < groups->run->n_tasks; rank++) {
        const char *cpus = groups->run->tasks[rank].cpus;

        if (groups->of[rank] != groups->wanted || !cpus)
            continue;
        if (++shown > CPUS_SHOWN)
            return arena_printf(&table->arena, "%s ...", text);
        text = arena_printf(&table->arena, "%s%s%s", text, *text ? " " : "",
                            runs_text(&table->arena, cpus, 0));
    }
    return text;
}

static void print_tasks(const struct run_record *run) {
    static const char *const columns[] = { "TASKS",    "STATUS",    "PID",     "END",
                                           "DURATION", "PINNED TO", "LOG LOST" };
    struct groups groups = { 0 };
    struct table table;

    group_ranks(&groups, run);
    table_init(&table, ARRAY_LEN(columns));
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        table_cell(&table, "%s", columns[i]);
    for (; groups.wanted < groups.list.len; groups.wanted++) {
        const struct group *group = &groups.list.items[groups.wanted];
        const struct task_record *task = &run->tasks[group->first];
        const bool shows_pid = group->n == 1 && task->pid && !state_is_final(task->state);
        char end[600];

        describe_end(task, end, sizeof end);
        add_names(&table, &groups);
        table_cell(&table, "%s", state_name(task->state));
        table_paint(&table, runs_colour(task->state));
        table_cell(&table, "%s",
                   shows_pid ? arena_printf(&table.arena, "%ld", (long)task->pid) : "");
        table_cell(&table, "%s", runs_text(&table.arena, end, 0));
        add_seconds(&table, group);
        table_cell(&table, "%s", own_cpus(&table, &groups));
        table_cell(&table, "%s", group->log_lost ? runs_bytes(&table.arena, group->log_lost) : "");
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
    VEC_RELEASE(&groups.list);
    free(groups.of);
}

/* ---- the head ---- */

static void print_row(const char *key, const char *value) {
    if (value && *value)
        printf("  %-12s %s\n", key, value);
}

/* "4f0c2d1 on main, with changes, 3 untracked". */
static const char *code_text(const struct code_facts *code, struct arena *arena) {
    const char *text;

    if (!code->repository)
        return NULL;
    text = code->commit ? arena_printf(arena, "%.12s", code->commit) : "no commit";
    text = arena_printf(arena, "%s%s%s", text, code->branch ? " on " : ", no branch",
                        code->branch ? runs_text(arena, code->branch, 0) : "");
    if (code->is_dirty)
        text =
            arena_printf(arena, "%s, with changes (%s of them%s)", text,
                         runs_bytes(arena, code->diff_bytes), code->is_diff_cut ? ", not all" : "");
    if (code->untracked.all)
        text = arena_printf(arena, "%s, %llu untracked", text,
                            (unsigned long long)code->untracked.all);
    if (!code->is_read)
        text = arena_printf(arena, "%s, its changes are not known", text);
    return code->is_late ? arena_printf(arena, "%s; read after the start", text) : text;
}

static void print_code(const struct run_record *run, struct arena *arena) {
    const struct code_facts *code = &run->code;

    print_row("code", code_text(code, arena));
    print_row("", code->repository ? runs_text(arena, code->trouble, 0) : NULL);
    print_row("remote", runs_text(arena, code->remote, 0));
    if (code->snapshot_root)
        print_row("snapshot", arena_printf(arena, "%llu files, %s in %s/%s",
                                           (unsigned long long)code->snapshot_files,
                                           runs_bytes(arena, code->snapshot_bytes),
                                           run->rundir.path, CODE_SNAPSHOT_FILE));
}

/* What the tasks have logged. */
static void print_tracked(const struct run_record *run, struct arena *arena) {
    const struct last_values values = last_values_read(&run->rundir, arena);

    for (int kind = 0; kind < TRACKED_ARTIFACTS; kind++)
        print_row(tracked_kind_name(kind), tracked_text(&run->tracked[kind], arena));
    print_row(tracked_kind_name(TRACKED_ARTIFACTS), artifacts_text(run, arena));
    print_row("media", media_text(&run->rundir, arena));
    print_row("metrics", last_values_text(&values, METRICS_SHOWN, arena));
    print_row("not kept", losses_text(&run->losses, arena));
    if (values.n > METRICS_SHOWN)
        print_row("", arena_printf(arena, "and %zu more: myelin metrics %s",
                                   values.n - METRICS_SHOWN, run->rundir.id));
}

static void print_head(const struct run_record *run, struct arena *arena) {
    const bool is_final = state_is_final(run->state);
    const char *name = runs_text(arena, run->name, 0);

    printf("run %s%s%s%s: %s %s\n", run->rundir.id, *name ? " (" : "", name, *name ? ")" : "",
           runs_painted(arena, stdout, run->state, runs_status(run)), history_span(run, arena));
    print_row("reason", runs_text(arena, run->reason, 0));
    print_row("place", runs_text(arena, run->place, 0));
    print_row("origin", history_origin(run, arena));
    print_row("uuid", run->uuid);
    print_row("framework", runs_text(arena, run->framework, 0));
    print_row("command", runs_text(arena, run->command, 0));
    print_row("directory", runs_text(arena, run->directory, 0));
    if (run->backend)
        print_row("where", runs_text(arena,
                                     arena_printf(arena, "%s, %s, namespace %s", run->backend,
                                                  run->cluster, run->namespace),
                                     0));
    print_code(run, arena);
    print_row("started", arena_printf(arena, "%.19sZ (%s)", run->created_at ? run->created_at : "?",
                                      runs_ago(arena, run, 0)));
    if (is_final) {
        print_row("ended", arena_printf(arena, "%.19sZ (%s)",
                                        time_after(run->created_at, run->elapsed_s).text,
                                        runs_ago(arena, run, run->elapsed_s)));
        if (run->exit_status != EXIT_STATUS_NONE) /* else the run is another user's */
            print_row("exit status", arena_printf(arena, "%d", run->exit_status));
        print_row("left behind", run->left           ? runs_text(arena, run->left, 0)
                                 : run->left_nothing ? "nothing; it was looked up"
                                                     : "not known; nobody could look");
    }
    print_tracked(run, arena);
    print_row("outputs", run->rundir.outputs);
    print_row("logs", run->rundir.logs);
}

static int status_command(const struct invocation *in) {
    AUTO(arena) arena = ARENA_INIT;
    struct run_record run;
    struct rundir rundir;
    struct error err;
    int status = STATUS_OK;

    if (in->n_operands != 1)
        return invocation_misuse(in, "one RUN is shown at a time; 'myelin ps -a' lists them");
    if (runs_find(in->operands[0], &arena, &rundir, &err) || runs_read(&rundir, &run, &err)) {
        complain("%s", runs_text(&arena, err.message, 0));
        return STATUS_INVALID;
    }
    if (invocation_has(in, "json")) {
        status = runs_print_json(&run) ? STATUS_INVALID : STATUS_OK;
    } else if (!run.uuid) {
        if (state_is_final(run.state))
            printf("run %s failed: %s; 'myelin rm %s' removes it\n", rundir.id, run.reason,
                   rundir.id);
        else
            printf("run %s has not begun: its journal is empty\n", rundir.id);
    } else {
        print_head(&run, &arena);
        fputs("\n", stdout);
        print_tasks(&run);
        history_print(stdout, &run);
        if (run.state == STATE_FAILED) {
            fputs("\n", stdout);
            report_failure(stdout, &run, REPORT_LINES);
        }
    }
    record_release(&run);
    return status;
}

static const struct option options[] = {
    { .name = "json", .help = "print all that is known as JSON" },
    { 0 },
};

const struct command command_status = {
    .name = "status",
    .arguments = "RUN",
    .summary = "show how a run and its tasks fare",
    .description =
        "Prints what is known of a run, and its tasks, those that fare alike on one "
        "line; of a run that was attempted more than once, how each attempt ended. Of a run "
        "that failed it shows the task that failed first with its last "
        "lines.\n"
        "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin status @              # the newest run\n"
                "myelin status mnist --json   # the newest run named mnist, for a script\n",
    .run = status_command,
};
