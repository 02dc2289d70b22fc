/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stopping.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/report.h"
#include "cli/runs.h"
#include "cli/takeover.h"
#include "store/owner.h"
#include "store/rights.h"
#include "supervise/keeper.h"
#include "supervise/stranded.h"

enum {
    LOOK_EVERY_MS = 10,
    /* The supervisor is only reachable some moments after its lock is taken. */
    TELL_TRIES = 200,
    TELL_AGAIN_MS = 10,
};

/* ---- interrupts ---- */

static const int interrupts[] = { SIGINT, SIGTERM };
static struct sigaction before[ARRAY_LEN(interrupts)];
static volatile sig_atomic_t was_interrupted;

static void note_interrupt(int number) {
    (void)number;
    was_interrupted = true;
}

void stopping_catch(void) {
    for (size_t i = 0; i < ARRAY_LEN(interrupts); i++) {
        const struct sigaction noting = { .sa_handler = note_interrupt };

        /* What whoever started us ignores stays ignored: a script's background job. */
        if (sigaction(interrupts[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(interrupts[i], &noting, NULL);
    }
}

void stopping_release(void) {
    for (size_t i = 0; i < ARRAY_LEN(interrupts); i++)
        sigaction(interrupts[i], &before[i], NULL);
}

bool stopping_was_interrupted(void) {
    return was_interrupted;
}

/* ---- one run ---- */

/* Waits until nobody owns the run any more; false when it still is after `seconds` (negative:
 * as long as it takes), or on an interrupt. A task may suspend the processes that are to end the
 * run, even again and again: they are continued, and that is bounded. */
static bool wait_for_end(const struct rundir *rundir, double seconds) {
    const int64_t start_us = clock_monotonic_us();
    struct suspension suspension = { 0 };
    pid_t pid;

    while (owner_lives(rundir, &pid)) {
        if (is_stranded(pid))
            stranded_continue(rundir, &suspension);
        else
            keeper_continue(pid, &suspension);
        if (was_interrupted ||
            (seconds >= 0 && (double)(clock_monotonic_us() - start_us) / 1e6 >= seconds))
            return false;
        clock_pause_ms(LOOK_EVERY_MS);
    }
    return true;
}

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
        if (is_stranded(pid) && stranded_signal(rundir, number)) {
            *was_living = true;
            return 0;
        }
        clock_pause_ms(TELL_AGAIN_MS);
    }
    return -1;
}

int stopping_tell(const struct rundir *rundir, const struct stopping *stopping, bool *was_living,
                  struct error *err) {
    return tell(rundir, stopping->signal, was_living, err);
}

static int left(const struct rundir *rundir, const struct stopping *stopping, struct error *err) {
    return error_set(err, ERROR_CONFLICT,
                     "run %s goes on ending%s; 'myelin attach %s' follows it, 'myelin kill %s' "
                     "ends it at once",
                     rundir->id, stopping->timeout_s >= 0 ? ", within its own grace time" : "",
                     rundir->id, rundir->id);
}

int stopping_wait(const struct rundir *rundir, const struct stopping *stopping, struct error *err) {
    const struct stopping killing = { .signal = KEEPER_KILL, .timeout_s = -1 };
    bool was_living;

    if (wait_for_end(rundir, stopping->timeout_s))
        return 0;
    if (was_interrupted)
        return left(rundir, stopping, err);
    fprintf(stderr, "myelin: run %s: killing the tasks that are left\n", rundir->id);
    if (stopping_tell(rundir, &killing, &was_living, err))
        return -1;
    return wait_for_end(rundir, -1) ? 0 : left(rundir, &killing, err);
}

/* ---- the commands ---- */

enum outcome {
    OUTCOME_ENDED,
    OUTCOME_WAS_OVER,
    OUTCOME_LEFT,
    OUTCOME_REFUSED,
    OUTCOME_COUNT,
};
static const char *const outcome_names[] = {
    [OUTCOME_ENDED] = "ended",
    [OUTCOME_WAS_OVER] = "was_over",
    [OUTCOME_LEFT] = "left",
    [OUTCOME_REFUSED] = "refused",
};
static_assert(ARRAY_LEN(outcome_names) == OUTCOME_COUNT, "every outcome has a name");

/* A RUN of the command line. It is looked up once: @ may mean another run a moment later. */
struct target {
    const char *named;
    struct rundir rundir; /* path NULL: there is none */
    bool was_living;
    struct run_record run; /* uuid NULL: not read */
    enum outcome outcome;
    struct error err; /* of what was left or refused */
};

static int tell_as_owner(struct target *target, const struct stopping *stopping,
                         struct error *err) {
    struct run_record run;
    int status = 0;

    if (runs_read(&target->rundir, &run, err))
        return -1;
    if (!state_is_final(run.state)) {
        if (rights_check(&target->rundir, err)) {
            record_release(&run);
            return -1;
        }
        fprintf(stderr, "myelin: run %s: %s %u task%s\n", run.rundir.id,
                stopping->signal == KEEPER_KILL ? "killing" : "stopping", run.n_tasks,
                run.n_tasks == 1 ? "" : "s");
        status = take_over_if_alone(&run, err) ||
                 stopping_tell(&target->rundir, stopping, &target->was_living, err);
    }
    record_release(&run);
    return status ? -1 : 0;
}

static int tell_target(struct target *target, const struct stopping *stopping, struct arena *arena,
                       struct error *err) {
    struct rights rights;
    int status;

    if (runs_find_living(target->named, arena, &target->rundir, err) ||
        rights_take(&target->rundir, &rights, err))
        return -1;
    status = tell_as_owner(target, stopping, err);
    rights_return(&rights);
    return status;
}

/* What came of it, by the record that was read when the waiting was over. */
static int judge_target(struct target *target, struct error *err) {
    const struct rundir *rundir = &target->rundir;
    const struct run_record *run = &target->run;

    if (!run->uuid)
        return error_set(err, ERROR_INVALID, "run %s never began; 'myelin rm %s' removes it",
                         rundir->id, rundir->id);
    if (state_is_final(run->state)) {
        target->outcome = target->was_living ? OUTCOME_ENDED : OUTCOME_WAS_OVER;
        return 0;
    }
    return error_set(err, ERROR_UNAVAILABLE, "run %s cannot be stopped from here: it belongs to %s",
                     rundir->id, run->host ? run->host : "a host that is not known");
}

static void wait_as_owner(struct target *target, const struct stopping *stopping) {
    struct error *err = &target->err, unread;
    const int status = stopping_wait(&target->rundir, stopping, err);

    if (status && was_interrupted) {
        target->outcome = OUTCOME_LEFT;
        if (runs_read(&target->rundir, &target->run, &unread))
            target->run = (struct run_record){ 0 };
    } else if (status || runs_read(&target->rundir, &target->run, err) ||
               judge_target(target, err)) {
        target->outcome = OUTCOME_REFUSED;
    }
}

static void wait_for_target(struct target *target, const struct stopping *stopping) {
    struct rights rights;

    if (rights_take(&target->rundir, &rights, &target->err)) {
        target->outcome = OUTCOME_REFUSED;
        return;
    }
    wait_as_owner(target, stopping);
    rights_return(&rights);
}

static void report_target(const struct target *target) {
    const struct run_record *run = &target->run;
    AUTO(arena) arena = ARENA_INIT;

    switch (target->outcome) {
    case OUTCOME_ENDED: report_end(stderr, run, REPORT_LINES); return;
    case OUTCOME_WAS_OVER:
        fprintf(stderr, "run %s is over already: it %s%s %s\n", run->rundir.id,
                run->state == STATE_STOPPED ? "was " : "", state_name(run->state),
                runs_ago(&arena, run, run->elapsed_s));
        return;
    case OUTCOME_LEFT:
    case OUTCOME_REFUSED: complain("%s", runs_text(&arena, target->err.message, 0)); return;
    case OUTCOME_COUNT: break;
    }
}

static void write_target(struct json *json, const struct target *target) {
    const bool is_done = target->outcome == OUTCOME_ENDED || target->outcome == OUTCOME_WAS_OVER;

    write_order_json(json, target->named, &target->rundir, outcome_names[target->outcome],
                     is_done ? NULL : target->err.message);
    json_key(json, "run");
    if (target->run.uuid && target->outcome != OUTCOME_REFUSED)
        write_run_summary_json(json, &target->run);
    else
        json_null(json);
    json_end(json);
}

/* All are told before one is waited for: many runs end in the time of one. */
static void end_targets(struct target *targets, size_t n, const struct stopping *stopping,
                        struct arena *arena) {
    for (size_t i = 0; i < n; i++)
        if (tell_target(&targets[i], stopping, arena, &targets[i].err)) {
            targets[i].outcome = OUTCOME_REFUSED;
            report_target(&targets[i]);
        }
    for (size_t i = 0; i < n; i++)
        if (targets[i].outcome != OUTCOME_REFUSED) {
            wait_for_target(&targets[i], stopping);
            report_target(&targets[i]);
        }
}

static int print_json(const struct target *targets, size_t n) {
    struct json json;
    struct error err;

    json_init(&json, JSON_PRETTY, json_to_stdout, NULL);
    json_array(&json);
    for (size_t i = 0; i < n; i++)
        write_target(&json, &targets[i]);
    json_end(&json);
    return json_finish(&json, &err) ? STATUS_INVALID : STATUS_OK;
}

int stopping_main(const struct invocation *invocation, const struct stopping *stopping) {
    const size_t n = invocation->n_operands;
    AUTO(arena) arena = ARENA_INIT;
    struct target *targets = ARENA_ARRAY(&arena, struct target, n);
    int status = STATUS_OK;

    if (n == 0)
        return runs_misuse_without_run(invocation);
    for (size_t i = 0; i < n; i++)
        targets[i].named = invocation->operands[i];
    stopping_catch();
    end_targets(targets, n, stopping, &arena);
    stopping_release();
    if (invocation_has(invocation, "json"))
        status = print_json(targets, n);
    for (size_t i = 0; i < n; i++) {
        if (targets[i].outcome == OUTCOME_LEFT)
            status = STATUS_INTERRUPTED;
        else if (targets[i].outcome == OUTCOME_REFUSED && status != STATUS_INTERRUPTED)
            status = STATUS_INVALID;
        record_release(&targets[i].run);
    }
    return status;
}
