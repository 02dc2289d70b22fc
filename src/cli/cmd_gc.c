/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tree.h"
#include "cli/amounts.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "cli/removing.h"
#include "cli/runs.h"
#include "cli/sweeping.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "search/query.h"

enum { NAME_SHOWN = 30 };
#define SIZE_MOST_BYTES 0x1p60

/* What the command line asks for. */
struct wishes {
    struct arena arena;
    struct query query;
    struct sweep_rules rules;
    bool is_meant; /* a rule was given: else no run goes */
    bool is_done;  /* --yes */
};

/* What came of the removal of a run, or of what was left behind. */
struct outcome {
    bool is_removed;
    uint64_t freed;
    struct error err; /* of one that is not */
};

/* By the index of the runs, and of the leftovers. */
struct outcomes {
    struct outcome *runs, *leftovers;
};

/* ---- the command line ---- */

static const struct {
    const char *option, *field;
} shorthands[] = { { "status", "status" }, { "tags", "tags" } };

/* Adds the conditions of one text to those before it. */
static int add_query(struct wishes *wishes, const char *name, const char *text,
                     struct sources *sources, struct diags *diags) {
    struct query more = { 0 };
    struct query_condition *all;

    if (query_parse(text, strlen(text), sources_add(sources, name, text, strlen(text)),
                    &wishes->arena, diags, &more))
        return -1;
    all = ARENA_ARRAY(&wishes->arena, struct query_condition, wishes->query.n + more.n + 1);
    if (wishes->query.n)
        memcpy(all, wishes->query.conditions, wishes->query.n * sizeof *all);
    if (more.n)
        memcpy(all + wishes->query.n, more.conditions, more.n * sizeof *all);
    wishes->query.conditions = all;
    wishes->query.n += more.n;
    return 0;
}

/* --query as it is; --status and --tags are conditions of the same language. */
static int parse_queries(const struct invocation *in, struct wishes *wishes,
                         struct sources *sources, struct diags *diags) {
    int status = 0;

    for (size_t i = 0; i < in->n_given; i++) {
        const struct given_option *given = &in->given[i];

        if (strcmp(given->option->name, "query") == 0)
            status |= add_query(wishes, "--query", given->value, sources, diags);
        for (size_t j = 0; j < ARRAY_LEN(shorthands); j++)
            if (strcmp(given->option->name, shorthands[j].option) == 0)
                status |= add_query(
                    wishes, arena_printf(&wishes->arena, "--%s", shorthands[j].option),
                    arena_printf(&wishes->arena, "%s:%s", shorthands[j].field, given->value),
                    sources, diags);
    }
    return status;
}

static int read_queries(const struct invocation *in, struct wishes *wishes) {
    AUTO_PTR(diags) diags = diags_new();
    AUTO(sources) sources = { 0 };

    if (parse_queries(in, wishes, &sources, diags) == 0)
        return 0;
    complain_diags(diags, &sources);
    return STATUS_MISUSE;
}

static int read_rules(const struct invocation *in, struct sweep_rules *rules) {
    const char *older = invocation_value(in, "older"), *keep = invocation_value(in, "keep");
    const char *size = invocation_value(in, "size");
    int64_t span_us = 0;
    char *end = NULL;

    *rules = (struct sweep_rules){ .has_older = older, .has_keep = keep, .has_size = size };
    if (older && !amount_span(older, &span_us))
        return invocation_misuse(in,
                                 "--older takes an age with a unit, such as 12h, 30d or 8w; '%s' "
                                 "%s",
                                 older, amount_lacks_unit(older) ? "has none" : "is no such age");
    rules->older_s = (double)span_us / 1e6;
    errno = 0;
    if (keep)
        rules->keep = strtoull(keep, &end, 10);
    if (keep && (!keep[0] || keep[strspn(keep, "0123456789")] || errno))
        return invocation_misuse(in, "--keep takes a number of runs, not '%s'", keep);
    if (size && !amount_bytes(size, SIZE_MOST_BYTES, &rules->size))
        return invocation_misuse(in,
                                 "--size takes a size with a unit, such as 500M or 20G; '%s' %s",
                                 size, amount_lacks_unit(size) ? "has none" : "is no such size");
    return 0;
}

static int read_wishes(const struct invocation *in, struct wishes *wishes) {
    int status;

    status = read_rules(in, &wishes->rules);
    if (status == 0)
        status = read_queries(in, wishes);
    if (status)
        return status;
    wishes->is_done = invocation_has(in, "yes");
    wishes->is_meant = wishes->rules.has_older || wishes->rules.has_keep ||
                       wishes->rules.has_size || wishes->query.n > 0;
    /* Without a rule no run is meant: all of them are among those that stay. */
    if (!wishes->is_meant)
        wishes->rules = (struct sweep_rules){ .has_keep = true, .keep = UINT64_MAX };
    return 0;
}

/* ---- removing ---- */

/* The newest first: those that share outputs are newer than the run that has them. */
static bool remove_runs(const struct sweeping *sweeping, struct outcome *outcomes) {
    bool all = true;

    for (size_t i = sweeping->runs.len; i-- > 0;) {
        struct outcome *outcome = &outcomes[i];

        if (sweeping->runs.items[i].verdict != SWEEP_GOES)
            continue;
        if (interrupts_came())
            error_set(&outcome->err, ERROR_CONFLICT, "run %lu is not removed: interrupted before",
                      sweeping->runs.items[i].id);
        else
            outcome->is_removed =
                removing_remove(&sweeping->shown.items[i].rundir, REMOVING_IF_OVER, &outcome->freed,
                                &outcome->err) == 0 ||
                removing_is_gone(&sweeping->shown.items[i].rundir);
        all &= outcome->is_removed;
    }
    return all;
}

static void remove_leftover(const struct leftover *left, struct outcome *outcome) {
    uint64_t rest;
    struct stat st;

    if (left->rundir.path) {
        outcome->is_removed =
            removing_remove(&left->rundir, REMOVING_IF_OVER, &outcome->freed, &outcome->err) == 0 ||
            removing_is_gone(&left->rundir);
        return;
    }
    tree_remove(left->path);
    outcome->is_removed = lstat(left->path, &st) < 0;
    rest = outcome->is_removed ? 0 : tree_weigh(left->path);
    outcome->freed = left->bytes > rest ? left->bytes - rest : 0;
    if (!outcome->is_removed)
        error_set(&outcome->err, ERROR_IO, "'%.300s' cannot be removed whole", left->path);
}

static bool remove_leftovers(const struct sweeping *sweeping, struct outcome *outcomes) {
    bool all = true;

    for (size_t i = 0; i < sweeping->leftovers.len; i++) {
        const struct leftover *left = &sweeping->leftovers.items[i];
        struct outcome *outcome = &outcomes[i];

        if (interrupts_came())
            error_set(&outcome->err, ERROR_CONFLICT, "'%.300s' is not removed: interrupted before",
                      left->path);
        else
            remove_leftover(left, outcome);
        all &= outcome->is_removed;
    }
    return all;
}

/* ---- what is counted ---- */

struct tally {
    size_t n[SWEEP_VERDICT_COUNT];
    size_t n_removed;
    uint64_t bytes; /* that are free now, or would be */
};

static struct tally count(const struct sweeping *sweeping, const struct outcomes *outcomes) {
    struct tally tally = { 0 };

    for (size_t i = 0; i < sweeping->runs.len; i++) {
        const struct sweep_run *run = &sweeping->runs.items[i];

        tally.n[run->verdict]++;
        if (run->verdict == SWEEP_GOES)
            tally.bytes += !outcomes ? run->bytes : outcomes->runs[i].freed;
        tally.n_removed += outcomes && outcomes->runs[i].is_removed;
    }
    for (size_t i = 0; i < sweeping->leftovers.len; i++)
        tally.bytes +=
            !outcomes ? sweeping->leftovers.items[i].bytes : outcomes->leftovers[i].freed;
    return tally;
}

static const char *reason_of(struct arena *arena, const struct sweep_run *run) {
    return run->user ? arena_printf(arena, "run %lu, which stays, has its outputs", run->user)
                     : run->needed;
}

/* ---- for people ---- */

static void print_going(const struct sweeping *sweeping) {
    struct table table;

    table_init(&table, 5);
    table_cell(&table, "ID");
    table_cell(&table, "NAME");
    table_cell(&table, "STATUS");
    table_cell(&table, "ENDED");
    table_cell(&table, "SIZE");
    for (size_t i = 0; i < sweeping->runs.len; i++) {
        const struct sweep_run *run = &sweeping->runs.items[i];
        const struct swept *shown = &sweeping->shown.items[i];

        if (run->verdict != SWEEP_GOES)
            continue;
        table_cell(&table, "%lu", run->id);
        table_cell(&table, "%s", runs_text(&table.arena, shown->name, NAME_SHOWN));
        table_cell(&table, "%s", shown->status);
        table_cell(&table, "%s", runs_age(&table.arena, run->age_s));
        table_cell(&table, "%s", runs_bytes(&table.arena, run->bytes));
    }
    table_print(&table, stdout, terminal_colour(stdout));
    table_release(&table);
}

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

static void say_staying(const struct sweeping *sweeping, const struct wishes *wishes,
                        const struct tally *tally, const struct invocation *in,
                        struct arena *arena) {
    const char *older = invocation_value(in, "older");

    if (tally->n[SWEEP_NOT_MEANT])
        printf("stay: %zu run%s that the query does not mean\n", tally->n[SWEEP_NOT_MEANT],
               plural(tally->n[SWEEP_NOT_MEANT]));
    if (tally->n[SWEEP_AMONG_NEWEST] && wishes->is_meant)
        printf("stay: the %zu newest of those that are meant\n", tally->n[SWEEP_AMONG_NEWEST]);
    if (tally->n[SWEEP_YOUNG])
        printf("stay: %zu run%s that ended within %s\n", tally->n[SWEEP_YOUNG],
               plural(tally->n[SWEEP_YOUNG]), older);
    if (tally->n[SWEEP_HAS_ROOM])
        printf("stay: %zu newer run%s, for which there is room in %s\n", tally->n[SWEEP_HAS_ROOM],
               plural(tally->n[SWEEP_HAS_ROOM]), runs_bytes(arena, wishes->rules.size));
    for (size_t i = 0; i < sweeping->runs.len; i++)
        if (sweeping->runs.items[i].verdict == SWEEP_NEEDED)
            printf("stays: run %lu: %s\n", sweeping->runs.items[i].id,
                   runs_text(arena, reason_of(arena, &sweeping->runs.items[i]), 0));
}

static void say_refused(const struct outcome *outcome, struct arena *arena) {
    complain("%s", runs_text(arena, outcome->err.message, 0));
}

static void say_leftovers(const struct sweeping *sweeping, const struct outcomes *outcomes,
                          struct arena *arena) {
    for (size_t i = 0; i < sweeping->leftovers.len; i++) {
        const struct leftover *left = &sweeping->leftovers.items[i];

        if (outcomes && !outcomes->leftovers[i].is_removed)
            say_refused(&outcomes->leftovers[i], arena);
        else
            printf("%s %s, %s: %s\n", outcomes ? "removed" : "would remove",
                   runs_text(arena, left->path, 0), runs_bytes(arena, left->bytes), left->what);
    }
}

static void say(const struct sweeping *sweeping, const struct wishes *wishes,
                const struct outcomes *outcomes, const struct invocation *in, struct arena *arena) {
    const struct tally tally = count(sweeping, outcomes);
    const size_t n = outcomes ? tally.n_removed : tally.n[SWEEP_GOES];

    if (tally.n[SWEEP_GOES])
        print_going(sweeping);
    for (size_t i = 0; outcomes && i < sweeping->runs.len; i++)
        if (sweeping->runs.items[i].verdict == SWEEP_GOES && !outcomes->runs[i].is_removed)
            say_refused(&outcomes->runs[i], arena);
    say_staying(sweeping, wishes, &tally, in, arena);
    say_leftovers(sweeping, outcomes, arena);
    if (!wishes->is_meant)
        printf("no rule says which runs may go: --older, --keep, --size, --status, --tags or "
               "--query\n");
    if (tally.n[SWEEP_GOES] + sweeping->leftovers.len == 0)
        printf("nothing to remove\n");
    else if (outcomes)
        printf("removed %zu run%s: %s freed\n", n, plural(n), runs_bytes(arena, tally.bytes));
    else
        printf("%zu run%s would go, which frees %s; --yes removes %s\n", n, plural(n),
               runs_bytes(arena, tally.bytes), n + sweeping->leftovers.len == 1 ? "it" : "them");
}

/* ---- for programs ---- */

/* NULL: nothing was to be removed. */
static void write_outcome(struct json *json, const struct outcome *outcome) {
    json_key(json, "outcome");
    json_text(json, !outcome ? "would be removed" : outcome->is_removed ? "removed" : "refused");
    json_key(json, "error");
    json_text(json, outcome && !outcome->is_removed ? outcome->err.message : NULL);
}

static void write_going(struct json *json, const struct sweeping *sweeping, size_t i,
                        const struct outcome *outcome) {
    const struct sweep_run *run = &sweeping->runs.items[i];
    const char *name = sweeping->shown.items[i].name;

    json_object(json);
    json_key(json, "id");
    json_int(json, (int64_t)run->id);
    json_key(json, "name");
    json_text(json, name[0] ? name : NULL);
    json_key(json, "status");
    json_text(json, sweeping->shown.items[i].status);
    json_key(json, "bytes");
    json_int(json, (int64_t)run->bytes);
    write_outcome(json, outcome);
    json_end(json);
}

static void write_kept(struct json *json, const struct tally *tally) {
    static const char *const names[] = { [SWEEP_NOT_MEANT] = "not_meant",
                                         [SWEEP_YOUNG] = "young",
                                         [SWEEP_AMONG_NEWEST] = "among_newest",
                                         [SWEEP_HAS_ROOM] = "has_room",
                                         [SWEEP_NEEDED] = "needed" };

    json_key(json, "kept");
    json_object(json);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i]) {
            json_key(json, names[i]);
            json_int(json, (int64_t)tally->n[i]);
        }
    json_end(json);
}

static void write_needed(struct json *json, const struct sweeping *sweeping) {
    AUTO(arena) arena = ARENA_INIT;

    json_key(json, "needed");
    json_array(json);
    for (size_t i = 0; i < sweeping->runs.len; i++) {
        if (sweeping->runs.items[i].verdict != SWEEP_NEEDED)
            continue;
        json_object(json);
        json_key(json, "id");
        json_int(json, (int64_t)sweeping->runs.items[i].id);
        json_key(json, "reason");
        json_text(json, reason_of(&arena, &sweeping->runs.items[i]));
        json_end(json);
    }
    json_end(json);
}

static void write_leftovers(struct json *json, const struct sweeping *sweeping,
                            const struct outcomes *outcomes) {
    json_key(json, "leftovers");
    json_array(json);
    for (size_t i = 0; i < sweeping->leftovers.len; i++) {
        json_object(json);
        json_key(json, "path");
        json_text(json, sweeping->leftovers.items[i].path);
        json_key(json, "what");
        json_text(json, sweeping->leftovers.items[i].what);
        json_key(json, "bytes");
        json_int(json, (int64_t)sweeping->leftovers.items[i].bytes);
        write_outcome(json, outcomes ? &outcomes->leftovers[i] : NULL);
        json_end(json);
    }
    json_end(json);
}

static int print_json(const struct sweeping *sweeping, const struct outcomes *outcomes) {
    const struct tally tally = count(sweeping, outcomes);
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_object(&json);
    json_key(&json, "dry_run");
    json_bool(&json, !outcomes);
    json_key(&json, "bytes");
    json_int(&json, (int64_t)tally.bytes);
    json_key(&json, "runs");
    json_array(&json);
    for (size_t i = 0; i < sweeping->runs.len; i++)
        if (sweeping->runs.items[i].verdict == SWEEP_GOES)
            write_going(&json, sweeping, i, outcomes ? &outcomes->runs[i] : NULL);
    json_end(&json);
    write_kept(&json, &tally);
    write_needed(&json, sweeping);
    write_leftovers(&json, sweeping, outcomes);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

/* ---- all of it ---- */

/* An interrupt ends it between two of them. */
static int remove_all(const struct sweeping *sweeping, const struct outcomes *outcomes) {
    const struct interrupts held = interrupts_hold();
    int status = STATUS_OK;

    if (!remove_runs(sweeping, outcomes->runs) | !remove_leftovers(sweeping, outcomes->leftovers))
        status = interrupts_came() ? STATUS_INTERRUPTED : STATUS_INVALID;
    interrupts_release(&held);
    return status;
}

static int sweep_home(const struct invocation *in, struct wishes *wishes) {
    struct sweeping sweeping = { 0 };
    struct outcomes outcomes;
    int status = STATUS_OK;
    struct error err;

    if (sweeping_look(&sweeping, &wishes->query, &wishes->rules, &err)) {
        complain("%s", runs_text(&wishes->arena, err.message, 0));
        sweeping_release(&sweeping);
        return STATUS_INVALID;
    }
    outcomes = (struct outcomes){
        .runs = ARENA_ARRAY(&wishes->arena, struct outcome, sweeping.runs.len + 1),
        .leftovers = ARENA_ARRAY(&wishes->arena, struct outcome, sweeping.leftovers.len + 1),
    };
    if (wishes->is_done)
        status = remove_all(&sweeping, &outcomes);
    if (!invocation_has(in, "json"))
        say(&sweeping, wishes, wishes->is_done ? &outcomes : NULL, in, &wishes->arena);
    else if (print_json(&sweeping, wishes->is_done ? &outcomes : NULL))
        status = STATUS_INVALID;
    sweeping_release(&sweeping);
    return status;
}

static int gc(const struct invocation *in) {
    struct wishes wishes = { 0 };
    int status = read_wishes(in, &wishes);

    if (status == 0)
        status = sweep_home(in, &wishes);
    arena_release(&wishes.arena);
    return status;
}

static const struct option options[] = {
    { .name = "older",
      .argument = "AGE",
      .help = "remove runs that ended so long ago, with a unit: 12h, 30d, 8w" },
    { .name = "keep", .argument = "N", .help = "keep the N newest of those that are meant" },
    { .name = "size",
      .argument = "SIZE",
      .help = "remove the oldest, until all runs together take at most this much, with a unit: "
              "500M, 20G" },
    { .name = "status",
      .argument = "STATUS",
      .help = "mean runs of that status alone, as failed|stopped" },
    { .name = "tags",
      .argument = "TAG",
      .repeats = true,
      .help = "mean runs with that tag alone; given twice, with both" },
    { .name = "query",
      .letter = 'q',
      .argument = "QUERY",
      .repeats = true,
      .help = "mean runs that fulfil it alone (see `myelin runs`)" },
    { .name = "yes", .help = "remove them; without it they are only shown" },
    { .name = "json", .help = "print a JSON object" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "all that is shown is removed, or would be" },
    { "1", "something of it cannot be removed" },
    { "2", "the command line is wrong" },
    { "130", "an interrupt ended it; what is left is whole" },
    { 0 },
};

const struct command command_gc = {
    .name = "gc",
    .summary = "remove runs by age, number, size, status, tags or a query",
    .description =
        "Shows which runs would go, how much space that frees, and why the others stay; with "
        "`--yes` it removes them. A run goes when all rules that are given hold for it: with "
        "`--status failed --older 30d` the failed ones that ended 30 days ago or earlier.\n"
        "\n"
        "Never removed is a run that goes on or waits, one with a model that has an alias, one "
        "that a run which goes on was made from, and one whose outputs are shared by a run that "
        "stays.\n"
        "\n"
        "What interrupted work has left in the home (imports, and runs that never began) goes "
        "too, also when no rule is given.",
    .options = options,
    .examples =
        "myelin gc --older 30d --keep 20             # what would go\n"
        "myelin gc --status failed --older 7d --yes  # remove what failed a week ago\n"
        "myelin gc --size 20G -q '~tags:keep' --yes  # make room, but not of runs with that tag\n",
    .statuses = statuses,
    .run = gc,
};
