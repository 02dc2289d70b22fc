/* SPDX-License-Identifier: Apache-2.0 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/local/cgroup.h"
#include "base/descriptors.h"
#include "store/claim.h"
#include "store/inventory.h"
#include "store/owner.h"
#include "supervise/attempts.h"
#include "supervise/chronicle.h"
#include "supervise/keeper.h"
#include "supervise/queue.h"
#include "supervise/run_guard.h"
#include "supervise/supervisor_state.h"
#include "supervise/tracker.h"

extern char **environ;

enum {
    GATHER_US = 5000,  /* lines of tasks wait so long for each other: nobody sees the difference */
    GATHER_TASKS = 16, /* and only in gangs that are larger than this */
};

static const char keeper_was_killed[] = "its keeper was killed; its tasks were ended";

static bool has_limits(const struct plan *plan) {
    return plan->totals.of[RESOURCE_CPU].limits > 0 || plan->totals.of[RESOURCE_MEMORY].limits > 0;
}

/* ---- what the run tells ---- */

/* Lines of which many may come in one turn are written together. */
static void gather(struct supervisor *supervisor) {
    const struct timeval delay = { .tv_usec = GATHER_US };

    if (supervisor->plan->n_tasks <= GATHER_TASKS)
        journal_flush(&supervisor->journal);
    else if (!evtimer_pending(supervisor->gather_event, NULL))
        evtimer_add(supervisor->gather_event, &delay);
}

static void on_gathered(evutil_socket_t fd, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)fd, (void)what;
    journal_flush(&supervisor->journal);
}

static void on_started(void *context, uint32_t rank, int64_t id) {
    struct supervisor *supervisor = context;
    const struct placement *placement = supervisor->placement;

    if (supervisor->past.was_submitted && supervisor->seen.tasks[rank].started_s >= 0)
        return; /* it was told before */
    chronicle_task_started(&supervisor->journal, rank, id,
                           placement ? pinning_of(placement->pinning, rank) : NULL);
    gather(supervisor);
    tracker_task_started(supervisor->tracker, rank, id);
}

static void on_ended(void *context, uint32_t rank, const struct task_state *task) {
    struct supervisor *supervisor = context;

    chronicle_task_ended(&supervisor->journal, rank, task);
    gather(supervisor);
    tracker_task_ended(supervisor->tracker, rank);
}

static void on_output(void *context, uint32_t rank) {
    struct supervisor *supervisor = context;

    bell_ring(&supervisor->bell, rank);
}

void supervisor_journal_written(void *context) {
    struct supervisor *supervisor = context;

    bell_ring(&supervisor->bell, BELL_JOURNAL);
}

static void on_phase(void *context, enum run_phase phase) {
    static const char *const names[] = { [RUN_LAUNCHING] = "launching",
                                         [RUN_SUBMITTED] = "submitted",
                                         [RUN_RUNNING] = "running",
                                         [RUN_LINGERING] = "lingering",
                                         [RUN_STOPPING] = "stopping" };
    struct supervisor *supervisor = context;

    if (phase == RUN_RUNNING)
        chronicle_status(&supervisor->journal, STATE_RUNNING, NULL);
    chronicle_phase(&supervisor->journal, names[phase]);
}

/* Nothing follows the end. */
static void on_notice(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    if (!supervisor->has_ended)
        chronicle_notice(&supervisor->journal, sentence);
}

/* What was told before the start is not told again after it. */
static void on_run_notice(void *context, const char *sentence) {
    struct supervisor *supervisor = context;
    const char *told = supervisor->options->unenforced;

    if (!told || strcmp(told, sentence) != 0)
        on_notice(supervisor, sentence);
}

/* The original showed what keeps a run from starting as a warning. */
static void on_waits(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    chronicle_status(&supervisor->journal, sentence ? STATE_WARNING : STATE_SCHEDULED, sentence);
    if (sentence)
        on_notice(supervisor, sentence);
}

/* ---- attempts ---- */

static void on_began(void *context, uint32_t attempt) {
    struct supervisor *supervisor = context;
    struct error ignored;

    if (supervisor->past.was_submitted && supervisor->past.attempt == attempt) {
        tracker_attempt(supervisor->tracker, attempt, TRACKER_TAKEN_OVER);
        return; /* it was told before */
    }
    if (attempt > 0 && journal_reserve(&supervisor->journal, &ignored))
        on_notice(supervisor, "the disk is full: how this attempt ends may not be recorded");
    tracker_attempt(supervisor->tracker, attempt, TRACKER_NEW);
    chronicle_attempt(&supervisor->journal, attempt);
    chronicle_status(&supervisor->journal,
                     supervisor->options->elsewhere ? STATE_SCHEDULED : STATE_STARTING, NULL);
}

/* Of processes the backend says `gone` only when it has looked. */
static void on_attempt_ended(void *context, uint32_t attempt, const struct run_status *status,
                             size_t listeners) {
    struct supervisor *supervisor = context;

    (void)attempt;
    tracker_gang_over(supervisor->tracker);
    if (status->left)
        chronicle_left(&supervisor->journal, status->left);
    else
        chronicle_checked(&supervisor->journal, listeners,
                          has_limits(supervisor->plan) ? cgroups_count(supervisor->uuid) : 0);
}

static struct chronicle_end end_of_failure(const struct run_status *status) {
    return (struct chronicle_end){ .state = STATE_FAILED,
                                   .reason = status->why.sentence,
                                   .why = &status->why,
                                   .first_failed = status->verdict.first_failed,
                                   .exit_status = verdict_exit_status(&status->verdict) };
}

static void on_again(void *context, const struct run_status *status,
                     const struct next_attempt *next) {
    struct supervisor *supervisor = context;
    const struct chronicle_end end = end_of_failure(status);
    char sentence[DIAGNOSIS_SENTENCE_MOST + 160], when[48] = "now";

    if (next->delay_ms > 0)
        snprintf(when, sizeof when, "in %gs", next->delay_ms / 1000.0);
    if (next->manner == AGAIN_OTHER_PORTS)
        snprintf(sentence, sizeof sentence,
                 "attempt %u failed: %s; attempt %u starts %s, on other ports", next->number - 1,
                 status->why.sentence, next->number, when);
    else
        snprintf(sentence, sizeof sentence,
                 "attempt %u failed: %s; attempt %u (restart %u of %u) starts %s", next->number - 1,
                 status->why.sentence, next->number, next->n_restarts,
                 supervisor->plan->max_restarts, when);
    chronicle_attempt_failed(&supervisor->journal, &end, next->delay_ms);
    chronicle_status(&supervisor->journal, STATE_WARNING, sentence);
    chronicle_phase(&supervisor->journal, "waiting");
    on_notice(supervisor, sentence);
}

/* ---- the supervisor's process ---- */

/* Hashes what was logged as artifacts and gives models their version, now that nothing changes
 * their files. What goes wrong here is left to the next who looks. */
static void take_inventory(struct supervisor *supervisor) {
    const struct inventory_terms terms = { .bytes_most = INVENTORY_AT_END,
                                           .tell = on_notice,
                                           .context = supervisor };
    struct run_record record;
    char sentence[640];
    struct error err;
    int status;

    if (!tracker_has_artifacts(supervisor->tracker))
        return;
    journal_flush(&supervisor->journal);
    status = record_read(&record, &supervisor->rundir, &err);
    if (status == 0) {
        status = inventory_take(&record, &supervisor->journal, &terms, &err);
        record_release(&record);
    }
    if (status) {
        snprintf(sentence, sizeof sentence, "artifacts are not recorded yet: %.400s", err.message);
        on_notice(supervisor, sentence);
    }
}

/* The end of the run: what it reserved is given back, then the end is told. Its series are made
 * compact afterwards, which takes a moment for millions of points: nobody waits for it, and who
 * reads them meanwhile reads them as they were. */
static void end_run(struct supervisor *supervisor, const struct chronicle_end *end) {
    queue_free(supervisor->queue);
    supervisor->queue = NULL;
    take_inventory(supervisor);
    code_watch_finish(&supervisor->code);
    chronicle_end(&supervisor->journal, end);
    supervisor->has_ended = true;
    tracker_finish(supervisor->tracker);
    event_base_loopbreak(supervisor->base);
}

/* Of a run that never came to its tasks. */
static void end_early(struct supervisor *supervisor, enum state state, const char *reason,
                      int exit_status) {
    const struct chronicle_end end = {
        .state = state, .reason = reason, .first_failed = -1, .exit_status = exit_status
    };

    chronicle_checked(&supervisor->journal, 0, 0);
    code_watch_finish(&supervisor->code);
    chronicle_end(&supervisor->journal, &end);
    supervisor->has_ended = true;
    event_base_loopbreak(supervisor->base);
}

static struct chronicle_end own_failure(const char *reason) {
    return (struct chronicle_end){ .state = STATE_FAILED,
                                   .reason = reason,
                                   .first_failed = -1,
                                   .exit_status = SUPERVISOR_FAILED };
}

/* Without its directory no run has succeeded: its outputs are gone. A task that failed says more
 * than that, and who stopped the run knows why. */
static bool is_lost_with_directory(const struct supervisor *supervisor,
                                   const struct run_status *status) {
    const bool has_failed = status && status->verdict.state == VERDICT_FAILED;
    const bool has_succeeded = status && status->verdict.state == VERDICT_SUCCEEDED;

    return supervisor->gone && !has_failed && (has_succeeded || !supervisor->was_ordered);
}

static void on_over(void *context, const struct run_status *status, const char *trouble) {
    struct supervisor *supervisor = context;
    struct chronicle_end end = { .state = STATE_STOPPED,
                                 .reason = "it was stopped",
                                 .first_failed = -1,
                                 .exit_status = SUPERVISOR_STOPPED };

    supervisor->is_over = true;
    run_guard_look(supervisor->guard);
    if (supervisor->gone && (trouble || !is_lost_with_directory(supervisor, status)))
        on_notice(supervisor, supervisor->gone);
    if (trouble)
        end = own_failure(trouble);
    else if (is_lost_with_directory(supervisor, status))
        end = own_failure(supervisor->gone);
    else if (supervisor->lost_keeper && (!status || status->verdict.state == VERDICT_STOPPED))
        end = own_failure(keeper_was_killed);
    else if (!status)
        end.reason = "it was stopped before the next attempt";
    else if (status->verdict.state == VERDICT_FAILED)
        end = end_of_failure(status);
    else if (status->verdict.state == VERDICT_SUCCEEDED)
        end = (struct chronicle_end){ .state = STATE_SUCCEEDED, .first_failed = -1 };
    end_run(context, &end);
}

/* An order of the keeper, or its death, which is told by the same signal. */
static void on_signal(evutil_socket_t number, short what, void *context) {
    struct supervisor *supervisor = context;

    (void)what;
    if (getppid() == supervisor->keeper)
        supervisor->was_ordered = true;
    supervisor->lost_keeper = !supervisor->was_ordered;
    if (supervisor->attempts)
        attempts_stop(supervisor->attempts, number == KEEPER_KILL ? STOP_AT_ONCE : STOP_GRACEFULLY);
    else if (supervisor->lost_keeper && !supervisor->has_ended)
        end_early(supervisor, STATE_FAILED, keeper_was_killed, SUPERVISOR_FAILED);
    else if (!supervisor->has_ended)
        end_early(supervisor, STATE_STOPPED, "it was stopped while it waited", SUPERVISOR_STOPPED);
}

/* There is nowhere to write what the tasks do from now on. The end is written to the journal, which
 * is open: who follows the run has it open, too. */
static void on_gone(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    if (supervisor->has_ended)
        return;
    supervisor->gone = supervisor->gone_text;
    snprintf(supervisor->gone_text, sizeof supervisor->gone_text, "%s", sentence);
    if (supervisor->is_over)
        return;
    if (supervisor->attempts)
        attempts_stop(supervisor->attempts, STOP_GRACEFULLY);
    else
        end_early(supervisor, STATE_FAILED, supervisor->gone, SUPERVISOR_FAILED);
}

static void start_run(struct supervisor *supervisor) {
    const struct placement *placement = supervisor->placement;
    const struct attempts_observer observer = {
        .run = { .started = on_started,
                 .ended = on_ended,
                 .output = on_output,
                 .phase = on_phase,
                 .notice = on_run_notice,
                 .waits = on_waits,
                 .context = supervisor },
        .began = on_began,
        .ended = on_attempt_ended,
        .again = on_again,
        .over = on_over,
        .context = supervisor,
    };
    const struct run_options options = {
        .rundir = &supervisor->rundir,
        .log_origin_us = supervisor->log_origin_us,
        .log_limit = supervisor->options->log_limit,
        .uuid = supervisor->uuid,
        .owner = supervisor->owner,
        .working_directory = supervisor->working_directory,
        .environment = environ,
        .earlier_outputs = supervisor->options->earlier_outputs,
        .grace_ms = supervisor->options->grace_ms,
        .linger_ms = supervisor->options->linger_ms,
        .processes = supervisor->options->processes,
        .gpus = placement && placement->gpus ? placement->gpus : supervisor->no_gpus,
        .pinning = placement ? placement->pinning : NULL,
        .attempt = supervisor->past.attempt,
        .elsewhere = supervisor->options->elsewhere,
        .past = supervisor->past.was_submitted ? &supervisor->past.run : NULL,
    };
    const struct again_terms terms = {
        .max_restarts = supervisor->plan->max_restarts,
        .first_delay_ms = supervisor->options->backoff_ms,
    };
    struct error err;

    supervisor->code.has_started = true;
    tracker_grant(supervisor->tracker, placement ? placement->gpus : NULL);
    if (attempts_start(supervisor->plan, &options, &terms, supervisor->base, &observer,
                       &supervisor->attempts, &err))
        end_early(supervisor, STATE_FAILED, err.message, SUPERVISOR_FAILED);
}

static void on_placed(void *context, const struct placement *placement) {
    struct supervisor *supervisor = context;

    supervisor->placement = placement;
    if (placement->pinning->trouble[0])
        on_notice(supervisor, placement->pinning->trouble);
    start_run(supervisor);
}

static void on_queued(void *context, const char *sentence) {
    struct supervisor *supervisor = context;

    chronicle_status(&supervisor->journal, STATE_SCHEDULED, sentence);
    on_notice(supervisor, sentence);
}

static void on_reserves(void *context, const struct hold *holds, size_t n) {
    struct supervisor *supervisor = context;

    claim_write_reserved(&supervisor->journal, holds, n);
}

static void on_refused(void *context, const char *sentence) {
    end_early(context, STATE_FAILED, sentence, SUPERVISOR_FAILED);
}

static void wait_for_turn(struct supervisor *supervisor) {
    const struct queue_options options = {
        .home = supervisor->options->home,
        .rundir = &supervisor->rundir,
        .plan = supervisor->plan,
        .demand = supervisor->options->demand,
        .timeout_ms = supervisor->options->timeout_ms,
    };
    const struct queue_observer observer = {
        .placed = on_placed,
        .waits = on_queued,
        .refused = on_refused,
        .reserves = on_reserves,
        .context = supervisor,
    };

    supervisor->queue = queue_new(supervisor->base, &options, &observer);
}

/* Reads what those before have seen, and goes on with their journal. */
static int take_over(struct supervisor *supervisor, struct arena *arena, struct error *err) {
    journal_close(&supervisor->journal);
    if (record_read(&supervisor->seen, &supervisor->rundir, err) ||
        journal_reopen(&supervisor->journal, &supervisor->rundir, supervisor->seen.seq,
                       record_elapsed(&supervisor->seen), err))
        return -1;
    past_read(&supervisor->seen, arena, &supervisor->past);
    supervisor->journal.attempt = record_attempt(&supervisor->seen);
    supervisor->journal.n_tasks = supervisor->plan->n_tasks;
    supervisor->journal.written = supervisor_journal_written;
    supervisor->journal.context = supervisor;
    return 0;
}

static void begin(struct supervisor *supervisor) {
    if (supervisor->takes_over)
        on_notice(supervisor, "a new supervisor goes on with the run");
    else if (supervisor->options->notice)
        on_notice(supervisor, supervisor->options->notice);
    if (supervisor->options->unenforced)
        on_notice(supervisor, supervisor->options->unenforced);
    if (supervisor->notice)
        on_notice(supervisor, supervisor->notice);
    if (supervisor->is_given_too_long && !supervisor->takes_over)
        on_notice(supervisor, "what the file gives as params or tags is longer than a line of the "
                              "journal, 256 KiB: it is not recorded");
    if (supervisor->journal.lost > supervisor->journal.too_long)
        on_notice(supervisor, "the disk did not take all that was to be recorded before the start");
    if (supervisor->options->hides_gpus) {
        supervisor->no_gpus = calloc(supervisor->plan->n_tasks, sizeof *supervisor->no_gpus);
        if (!supervisor->no_gpus)
            abort();
    }
    if (supervisor->options->demand)
        wait_for_turn(supervisor);
    else
        start_run(supervisor);
}

/* A run whose tasks are elsewhere goes on there, and the next supervisor may have more luck. */
static int end_without_loop(struct supervisor *supervisor, const char *reason) {
    const struct chronicle_end end = own_failure(reason);

    if (supervisor->options->elsewhere)
        return -1;
    chronicle_checked(&supervisor->journal, 0, 0);
    chronicle_end(&supervisor->journal, &end);
    return 0;
}

int supervisor_supervise(void *context, pid_t keeper) {
    struct supervisor *supervisor = context;
    AUTO(arena) arena = ARENA_INIT;
    struct event *stop, *kill;
    struct error err;
    const struct tracker_options tracking = { .rundir = &supervisor->rundir,
                                              .plan = supervisor->plan,
                                              .journal = &supervisor->journal,
                                              .is_elsewhere = supervisor->options->elsewhere,
                                              .notice = on_notice,
                                              .context = supervisor };

    supervisor->keeper = keeper;
    owner_announce(supervisor->lock, keeper); /* the command may be killed before it does so */
    if (supervisor->takes_over && take_over(supervisor, &arena, &err))
        return -1; /* as long as the journal cannot be read, nothing can be told */
    if (state_is_final(supervisor->seen.state))
        return 0; /* the one before told the end, and died */
    if (descriptors_check(DESCRIPTORS_OF_LOOP, &err))
        return end_without_loop(supervisor, err.message);
    supervisor->base = event_base_new();
    if (!supervisor->base)
        abort();
    supervisor->gather_event = evtimer_new(supervisor->base, on_gathered, supervisor);
    if (!supervisor->gather_event)
        abort();
    supervisor->tracker = tracker_new(supervisor->base, &tracking);
    supervisor->guard = run_guard_new(
        supervisor->base, &(struct run_guard_options){ .rundir = &supervisor->rundir,
                                                       .journal = &supervisor->journal,
                                                       .lock = &supervisor->lock,
                                                       .directory = supervisor->directory,
                                                       .announced = keeper,
                                                       .notice = on_notice,
                                                       .gone = on_gone,
                                                       .context = supervisor });
    code_watch_await(&supervisor->code, supervisor->base, &supervisor->journal);
    begin(supervisor);
    stop = evsignal_new(supervisor->base, KEEPER_STOP, on_signal, supervisor);
    kill = evsignal_new(supervisor->base, KEEPER_KILL, on_signal, supervisor);
    if (!stop || !kill)
        abort();
    event_add(stop, NULL);
    event_add(kill, NULL);
    keeper_take_orders();
    if (!supervisor->has_ended)
        event_base_dispatch(supervisor->base);
    event_free(stop);
    event_free(kill);
    event_free(supervisor->gather_event);
    queue_free(supervisor->queue);
    tracker_free(supervisor->tracker);
    run_guard_free(supervisor->guard);
    attempts_free(supervisor->attempts);
    free(supervisor->no_gpus);
    code_watch_release(&supervisor->code);
    event_base_free(supervisor->base);
    record_release(&supervisor->seen);
    return 0;
}
