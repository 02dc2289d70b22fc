/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/runs.h"
#include "cli/stopping.h"
#include "store/owner.h"
#include "store/remove.h"
#include "supervise/keeper.h"

/* Ends a living run. */
static int end_run(const struct rundir *rundir, struct error *err) {
    static const struct stopping stopping = { .signal = KEEPER_STOP, .timeout_s = -1 };
    bool was_living;
    pid_t pid;

    if (!owner_lives(rundir, &pid))
        return 0;
    fprintf(stderr, "myelin: run %s: stopping it\n", rundir->id);
    return stopping_tell(rundir, &stopping, &was_living, err) ||
                   stopping_wait(rundir, &stopping, err)
               ? -1
               : 0;
}

/* Another host's run may be living there, where its lock is not seen here. */
static int check_over(const struct rundir *rundir, struct error *err) {
    struct run_record run;
    int status = 0;

    if (runs_read(rundir, &run, err))
        return -1;
    if (run.uuid && !state_is_final(run.state))
        status = error_set(err, ERROR_CONFLICT,
                           "run %s may still be going on at %s: remove it there, or use --force",
                           rundir->id, run.host ? run.host : "another host");
    record_release(&run);
    return status;
}

/* Removes under the run's lock: nobody settles or removes it at the same time. */
static int remove_one(const struct rundir *rundir, bool force, uint64_t *freed, struct error *err) {
    pid_t pid;
    int lock, status;

    if (force && end_run(rundir, err))
        return -1;
    if (owner_lives(rundir, &pid))
        return error_set(err, ERROR_CONFLICT,
                         "run %s is going on: stop it first (myelin stop %s), or use --force",
                         rundir->id, rundir->id);
    if ((!force && check_over(rundir, err)) || owner_take(rundir, &lock, err))
        return -1;
    status = remove_run(rundir, freed, err);
    close(lock);
    return status;
}

static int fail(struct arena *arena, const struct error *err) {
    fprintf(stderr, "myelin: %s\n", runs_text(arena, err->message, 0));
    return STATUS_INVALID;
}

static int rm(const struct invocation *in) {
    const bool force = invocation_has(in, "force");
    const size_t n = in->n_operands;
    AUTO(arena) arena = ARENA_INIT;
    struct rundir *rundirs = ARENA_ARRAY(&arena, struct rundir, n);
    int status = STATUS_OK;
    struct error err;
    uint64_t freed;

    if (n == 0)
        return runs_misuse_without_run(in);
    /* All are looked up first: once a run is gone, its name or @ would mean another one. */
    for (size_t i = 0; i < n; i++)
        if (runs_find(in->operands[i], &arena, &rundirs[i], &err))
            status = fail(&arena, &err);
    for (size_t i = 0; i < n; i++) {
        if (!rundirs[i].path)
            continue;
        if (remove_one(&rundirs[i], force, &freed, &err))
            status = fail(&arena, &err);
        else
            printf("removed run %s, %s freed\n", rundirs[i].id, runs_bytes(&arena, freed));
    }
    return status;
}

static const struct option options[] = {
    { .name = "force", .help = "stop a run that is going on, then remove it" },
    { 0 },
};

static const struct status_help statuses[] = {
    { "0", "all of them are removed" },
    { "1", "one of them does not exist, is going on, or cannot be removed" },
    { "2", "the command line is wrong" },
    { 0 },
};

const struct command command_rm = {
    .name = "rm",
    .arguments = "RUN...",
    .summary = "remove runs with their logs and outputs",
    .description = "Removes the directory of each run and says how much space that has freed. "
                   "Symbolic links in it are removed, not followed. A run that is going on is not "
                   "removed unless `--force` is given.\n"
                   "\n" RUN_NAMES,
    .options = options,
    .examples = "myelin rm 12 13 14     # three runs\n"
                "myelin rm @ --force    # the newest run, even if it is going on\n",
    .statuses = statuses,
    .run = rm,
};
