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

/* What became of each operand: one after the other is told, then one after the other is waited
 * for, so that many runs end in the time of one. */
struct told {
    const struct stopping *stopping;
    bool is_waiting; /* the second turn */
    VEC(unsigned char) failed;
    VEC(unsigned char) was_living;
    size_t at;
};

static int tell_one(const struct invocation *in, const struct rundir *rundir, void *context,
                    struct error *err) {
    const bool kills = ((struct told *)context)->stopping->signal == KEEPER_KILL;
    struct told *told = context;
    struct run_record run;
    bool was_living = false;

    (void)in;
    if (runs_read(rundir, &run, err))
        return -1;
    if (!state_is_final(run.state)) {
        fprintf(stderr, "myelin: run %s: %s %u task%s\n", rundir->id,
                kills ? "killing" : "stopping", run.n_tasks, run.n_tasks == 1 ? "" : "s");
        if (stopping_tell(rundir, told->stopping, &was_living, err)) {
            record_release(&run);
            return -1;
        }
    }
    record_release(&run);
    told->was_living.items[told->at] = was_living;
    return 0;
}

static void report_one(const struct run_record *run, bool was_living, FILE *out) {
    AUTO(arena) arena = ARENA_INIT;

    if (was_living)
        report_end(out, run);
    else
        fprintf(out, "run %s is over already: it %s%s %s\n", run->rundir.id,
                run->state == STATE_STOPPED ? "was " : "", state_name(run->state),
                runs_ago(&arena, run->updated_at));
}

static int wait_for_one(const struct invocation *in, const struct rundir *rundir, void *context,
                        struct error *err) {
    struct told *told = context;
    struct run_record run;
    int status = 0;

    (void)in;
    if (stopping_wait(rundir, told->stopping, err) || runs_read(rundir, &run, err))
        return -1;
    if (state_is_final(run.state))
        report_one(&run, told->was_living.items[told->at], stderr);
    else
        status = error_set(err, ERROR_UNAVAILABLE,
                           "run %s cannot be stopped from here: it belongs to %s", rundir->id,
                           run.host ? run.host : "a host that is not known");
    record_release(&run);
    return status;
}

int stopping_main(const struct invocation *invocation, const struct stopping *stopping) {
    struct told told = { .stopping = stopping };
    struct invocation one = *invocation;
    int status = STATUS_OK;

    if (invocation->n_operands == 0)
        return runs_each(invocation, tell_one, &told); /* says what is missing */
    for (size_t i = 0; i < invocation->n_operands; i++) {
        *VEC_PUSH(&told.failed) = 0;
        *VEC_PUSH(&told.was_living) = 0;
    }
    one.n_operands = 1;
    for (told.at = 0; told.at < invocation->n_operands; told.at++) {
        one.operands = invocation->operands + told.at;
        told.failed.items[told.at] = runs_each(&one, tell_one, &told) != STATUS_OK;
    }
    for (told.at = 0; told.at < invocation->n_operands; told.at++) {
        one.operands = invocation->operands + told.at;
        if (told.failed.items[told.at] || runs_each(&one, wait_for_one, &told) != STATUS_OK)
            status = STATUS_INVALID;
    }
    VEC_RELEASE(&told.failed);
    VEC_RELEASE(&told.was_living);
    return status;
}
