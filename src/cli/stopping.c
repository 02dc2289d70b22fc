/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stopping.h"

#include <stdio.h>

#include "cli/report.h"
#include "cli/runs.h"
#include "store/owner.h"
#include "supervise/keeper.h"

/* The supervisor is only reachable some moments after its lock is taken. */
enum { TELL_TRIES = 200, TELL_AGAIN_MS = 10 };

/* Sends the signal; no error when the run is over meanwhile. */
static int tell(const struct rundir *rundir, int number, bool *was_living, struct error *err) {
    pid_t pid;

    for (int i = 0; i < TELL_TRIES; i++) {
        if (!owner_lives(rundir, &pid)) {
            *was_living = i > 0;
            return 0;
        }
        if (owner_signal(rundir, number, err) == 0) {
            *was_living = true;
            return 0;
        }
        if (err->code == ERROR_DENIED)
            return -1;
        runs_wait(rundir, TELL_AGAIN_MS / 1e3);
    }
    return -1;
}

int stopping_tell(const struct rundir *rundir, const struct stopping *stopping, bool *was_living,
                  struct error *err) {
    return tell(rundir, stopping->signal, was_living, err);
}

int stopping_wait(const struct rundir *rundir, const struct stopping *stopping, struct error *err) {
    bool was_living;

    if (runs_wait(rundir, stopping->timeout_s))
        return 0;
    fprintf(stderr, "myelin: run %s: killing the tasks that are left\n", rundir->id);
    if (tell(rundir, KEEPER_KILL, &was_living, err))
        return -1;
    runs_wait(rundir, -1);
    return 0;
}

/* ---- the commands ---- */

/* A RUN of the command line. It is looked up once: @ may mean another run a moment later. */
struct target {
    struct rundir rundir;
    bool is_told, was_living;
};

static int tell_target(const char *text, const struct stopping *stopping, struct arena *arena,
                       struct target *target, struct error *err) {
    struct run_record run;
    int status = 0;

    if (runs_find(text, arena, &target->rundir, err) || runs_read(&target->rundir, &run, err))
        return -1;
    if (!state_is_final(run.state)) {
        fprintf(stderr, "myelin: run %s: %s %u task%s\n", run.rundir.id,
                stopping->signal == KEEPER_KILL ? "killing" : "stopping", run.n_tasks,
                run.n_tasks == 1 ? "" : "s");
        status = stopping_tell(&target->rundir, stopping, &target->was_living, err);
    }
    record_release(&run);
    target->is_told = status == 0;
    return status;
}

static void report_target(const struct run_record *run, bool was_living) {
    AUTO(arena) arena = ARENA_INIT;

    if (was_living)
        report_end(stderr, run);
    else
        fprintf(stderr, "run %s is over already: it %s%s %s\n", run->rundir.id,
                run->state == STATE_STOPPED ? "was " : "", state_name(run->state),
                runs_ago(&arena, run->updated_at));
}

static int wait_for_target(const struct target *target, const struct stopping *stopping,
                           struct error *err) {
    const struct rundir *rundir = &target->rundir;
    struct run_record run;
    int status = 0;

    if (stopping_wait(rundir, stopping, err) || runs_read(rundir, &run, err))
        return -1;
    if (state_is_final(run.state))
        report_target(&run, target->was_living);
    else if (!run.uuid)
        status = error_set(err, ERROR_INVALID, "run %s never began; 'myelin rm %s' removes it",
                           rundir->id, rundir->id);
    else
        status = error_set(err, ERROR_UNAVAILABLE,
                           "run %s cannot be stopped from here: it belongs to %s", rundir->id,
                           run.host ? run.host : "a host that is not known");
    record_release(&run);
    return status;
}

static int fail(struct arena *arena, const struct error *err) {
    fprintf(stderr, "myelin: %s\n", runs_text(arena, err->message, 0));
    return STATUS_INVALID;
}

int stopping_main(const struct invocation *invocation, const struct stopping *stopping) {
    const size_t n = invocation->n_operands;
    AUTO(arena) arena = ARENA_INIT;
    struct target *targets = ARENA_ARRAY(&arena, struct target, n);
    int status = STATUS_OK;
    struct error err;

    if (n == 0)
        return runs_misuse_without_run(invocation);
    /* All are told before one is waited for: many runs end in the time of one. */
    for (size_t i = 0; i < n; i++)
        if (tell_target(invocation->operands[i], stopping, &arena, &targets[i], &err))
            status = fail(&arena, &err);
    for (size_t i = 0; i < n; i++)
        if (targets[i].is_told && wait_for_target(&targets[i], stopping, &err))
            status = fail(&arena, &err);
    return status;
}
