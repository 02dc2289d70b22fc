/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/attempts.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"

#include "base/clock.h"

struct attempts {
    const struct plan *plan;
    struct run_options options;
    struct again_terms terms;
    struct attempts_observer observer;
    struct event_base *base;
    struct arena arena;

    struct run *run; /* NULL between two attempts */
    uint32_t number; /* of the attempt that goes on, or that comes */
    uint32_t n_restarts;
    bool has_moved, is_stopped, is_over;
    struct ports old_ports; /* of the attempt before, until the next has its own */
    int64_t began_us;       /* of the monotonic clock */
    struct event ended_event, begin_event;
};

static void finish(struct attempts *attempts, const char *trouble) {
    attempts->is_over = true;
    attempts->observer.over(attempts->observer.context,
                            attempts->run ? run_status(attempts->run) : NULL, trouble);
}

/* ---- the life of one ---- */

static void on_started(void *context, uint32_t rank, int64_t id) {
    const struct run_observer *to = &((struct attempts *)context)->observer.run;

    to->started(to->context, rank, id);
}

static void on_ended(void *context, uint32_t rank, const struct task_state *task) {
    const struct run_observer *to = &((struct attempts *)context)->observer.run;

    to->ended(to->context, rank, task);
}

static void on_output(void *context, uint32_t rank) {
    const struct run_observer *to = &((struct attempts *)context)->observer.run;

    to->output(to->context, rank);
}

static void on_notice(void *context, const char *sentence) {
    const struct run_observer *to = &((struct attempts *)context)->observer.run;

    to->notice(to->context, sentence);
}

static void on_waits(void *context, const char *sentence) {
    const struct run_observer *to = &((struct attempts *)context)->observer.run;

    to->waits(to->context, sentence);
}

/* A run is not freed inside of its own call: what follows waits for the next turn of the loop. */
static void on_phase(void *context, enum run_phase phase) {
    struct attempts *attempts = context;
    const struct run_observer *to = &attempts->observer.run;

    if (phase == RUN_OVER)
        event_active(&attempts->ended_event, EV_TIMEOUT, 0);
    else
        to->phase(to->context, phase);
}

static int begin(struct attempts *attempts, struct error *err) {
    const struct run_observer observer = {
        .started = on_started,
        .ended = on_ended,
        .output = on_output,
        .phase = on_phase,
        .notice = on_notice,
        .waits = on_waits,
        .context = attempts,
    };
    int status;

    attempts->options.attempt = attempts->number;
    attempts->options.logs =
        rundir_attempt_logs(attempts->options.rundir, attempts->number, &attempts->arena);
    /* Where it cannot be made, writing the first log says so. */
    (void)!file_make_directory_linkless(attempts->options.logs, 0777);
    attempts->began_us = clock_monotonic_us();
    attempts->observer.began(attempts->observer.context, attempts->number);
    status = run_start(attempts->plan, &attempts->options, attempts->base, &observer,
                       &attempts->run, err);
    ports_release(&attempts->old_ports);
    attempts->options.past = NULL; /* those that follow are new */
    return status;
}

/* ---- between two ---- */

static int64_t lasted_ms(const struct attempts *attempts) {
    return (clock_monotonic_us() - attempts->began_us) / 1000;
}

static enum again decide(const struct attempts *attempts, uint32_t *delay_ms) {
    const struct run_status *status = run_status(attempts->run);
    const struct again_case last = {
        .verdict = status->verdict.state,
        .kind = status->why.kind,
        .is_stopped = attempts->is_stopped,
        .lasted_ms = lasted_ms(attempts),
        .n_restarts = attempts->n_restarts,
        .has_moved = attempts->has_moved,
        .is_left = status->is_left,
    };

    return again_decide(&attempts->terms, &last, delay_ms);
}

static void wait_for_next(struct attempts *attempts, enum again manner, uint32_t delay_ms) {
    const struct timeval delay = clock_timeval(delay_ms);

    attempts->number++;
    attempts->has_moved |= manner == AGAIN_OTHER_PORTS;
    attempts->n_restarts += manner == AGAIN_RESTART;
    attempts->observer.again(attempts->observer.context, run_status(attempts->run),
                             &(struct next_attempt){ .manner = manner,
                                                     .number = attempts->number,
                                                     .n_restarts = attempts->n_restarts,
                                                     .delay_ms = delay_ms });
    attempts->old_ports = run_take_ports(attempts->run);
    run_free(attempts->run);
    attempts->run = NULL;
    evtimer_add(&attempts->begin_event, &delay);
}

static void on_attempt_ended(evutil_socket_t fd, short what, void *context) {
    struct attempts *attempts = context;
    enum again manner;
    uint32_t delay_ms;

    (void)fd, (void)what;
    attempts->observer.ended(attempts->observer.context, attempts->number,
                             run_status(attempts->run), run_listeners(attempts->run));
    manner = decide(attempts, &delay_ms);
    if (manner == AGAIN_NO)
        finish(attempts, NULL);
    else
        wait_for_next(attempts, manner, delay_ms);
}

static void on_begin(evutil_socket_t fd, short what, void *context) {
    struct attempts *attempts = context;
    struct error err;

    (void)fd, (void)what;
    if (begin(attempts, &err))
        finish(attempts, err.message);
}

/* ---- all of them ---- */

int attempts_start(const struct plan *plan, const struct run_options *options,
                   const struct again_terms *terms, struct event_base *base,
                   const struct attempts_observer *observer, struct attempts **out,
                   struct error *err) {
    struct attempts *attempts = calloc(1, sizeof *attempts);

    if (!attempts)
        abort();
    attempts->plan = plan;
    attempts->options = *options;
    attempts->terms = *terms;
    attempts->observer = *observer;
    attempts->base = base;
    attempts->number = attempts->n_restarts = options->attempt;
    evtimer_assign(&attempts->ended_event, base, on_attempt_ended, attempts);
    evtimer_assign(&attempts->begin_event, base, on_begin, attempts);
    if (begin(attempts, err)) {
        attempts_free(attempts);
        return -1;
    }
    *out = attempts;
    return 0;
}

void attempts_stop(struct attempts *attempts, enum stop_manner manner) {
    attempts->is_stopped = true;
    if (attempts->run) {
        run_stop(attempts->run, manner);
    } else if (!attempts->is_over) {
        evtimer_del(&attempts->begin_event);
        finish(attempts, NULL);
    }
}

void attempts_free(struct attempts *attempts) {
    if (!attempts)
        return;
    event_del(&attempts->ended_event);
    event_del(&attempts->begin_event);
    run_free(attempts->run);
    ports_release(&attempts->old_ports);
    arena_release(&attempts->arena);
    free(attempts);
}
