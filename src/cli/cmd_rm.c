/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/removing.h"
#include "cli/runs.h"
#include "cli/stopping.h"
#include "cli/takeover.h"
#include "store/owner.h"
#include "supervise/keeper.h"

/* Pods that nobody watches would outlive all that is known of them. */
static int watch_again(const struct rundir *rundir, struct error *err) {
    struct run_record run;
    int status;

    if (runs_read(rundir, &run, err))
        return -1;
    status = take_over_if_alone(&run, err);
    record_release(&run);
    return status;
}

/* Ends a living run. */
static int end_run(const struct rundir *rundir, struct error *err) {
    static const struct stopping stopping = { .signal = KEEPER_STOP, .timeout_s = -1 };
    bool was_living;
    pid_t pid;
    int status;

    if (watch_again(rundir, err))
        return -1;
    if (!owner_lives(rundir, &pid))
        return 0;
    fprintf(stderr, "myelin: run %s: stopping it\n", rundir->id);
    stopping_catch();
    status = stopping_tell(rundir, &stopping, &was_living, err);
    if (status == 0)
        status = stopping_wait(rundir, &stopping, err);
    stopping_release();
    if (status && stopping_was_interrupted())
        return error_wrap(err, "run %s is not removed", rundir->id);
    return status;
}

static int remove_one(const struct rundir *rundir, bool force, uint64_t *freed, struct error *err) {
    if (force && end_run(rundir, err))
        return -1;
    return removing_remove(rundir, force ? REMOVING_FOREIGN_TOO : REMOVING_IF_OVER, freed, err);
}

/* A RUN of the command line, and what came of it. */
struct target {
    const char *named;
    struct rundir rundir; /* path NULL: there is none */
    bool is_removed;
    uint64_t freed;
    struct error err; /* of what was not removed */
};

static void fail(const struct target *target, struct arena *arena) {
    complain("%s", runs_text(arena, target->err.message, 0));
}

static void remove_target(struct target *target, bool force, struct arena *arena) {
    struct error *err = &target->err;

    if (stopping_was_interrupted())
        error_set(err, ERROR_CONFLICT, "run %s is not removed: interrupted before",
                  target->rundir.id);
    else
        target->is_removed = remove_one(&target->rundir, force, &target->freed, err) == 0;
    if (!target->is_removed)
        fail(target, arena);
}

static int print_json(const struct target *targets, size_t n) {
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < n; i++) {
        const struct target *target = &targets[i];

        write_order_json(&json, target->named, &target->rundir,
                         target->is_removed ? "removed" : "refused",
                         target->is_removed ? NULL : target->err.message);
        json_key(&json, "freed_bytes");
        json_int(&json, (int64_t)target->freed);
        json_end(&json);
    }
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

static int rm(const struct invocation *in) {
    const bool as_json = invocation_has(in, "json");
    const size_t n = in->n_operands;
    AUTO(arena) arena = ARENA_INIT;
    struct target *targets = ARENA_ARRAY(&arena, struct target, n);
    int status = STATUS_OK;

    if (n == 0)
        return runs_misuse_without_run(in);
    /* All are looked up first: once a run is gone, its name or @ would mean another one. */
    for (size_t i = 0; i < n; i++) {
        targets[i].named = in->operands[i];
        if (runs_find(targets[i].named, &arena, &targets[i].rundir, &targets[i].err))
            fail(&targets[i], &arena);
    }
    for (size_t i = 0; i < n; i++) {
        if (targets[i].rundir.path)
            remove_target(&targets[i], invocation_has(in, "force"), &arena);
        if (!targets[i].is_removed)
            status = STATUS_INVALID;
        else if (!as_json)
            printf("removed run %s, %s freed\n", targets[i].rundir.id,
                   runs_bytes(&arena, targets[i].freed));
    }
    if (as_json && print_json(targets, n))
        status = STATUS_INVALID;
    return stopping_was_interrupted() ? STATUS_INTERRUPTED : status;
}

static const struct option options[] = {
    { .name = "force", .help = "stop a run that is going on, then remove it" },
    { .name = "json", .help = "print what came of it as a list of JSON objects" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "all of them are removed" },
    { "1", "one of them does not exist, is going on, is needed, or cannot be removed" },
    { "2", "the command line is wrong" },
    { "130", "an interrupt ended the waiting for a run's end: it goes on ending, and is kept" },
    { 0 },
};

const struct command command_rm = {
    .name = "rm",
    .arguments = "RUN...",
    .summary = "remove runs with their logs and outputs",
    .description = "Removes the directory of each run and says how much space that has freed. "
                   "Symbolic links in it are removed, not followed. A run that is going on is not "
                   "removed unless `--force` is given; one whose outputs a resumed run goes on "
                   "with is not removed before that run, and one with a model that has an alias "
                   "not before that alias is taken away (`myelin model alias`).\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin rm 12 13 14     # three runs\n"
                "myelin rm @ --force    # the newest run, even if it is going on\n",
    .statuses = statuses,
    .run = rm,
};
