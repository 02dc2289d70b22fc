/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shims of a gang's pods bring: the logs, and the ends of tasks, which a pod does not show
 * while its shim waits for us. Where no shim can be asked, the log API takes its place, and a
 * notice says what is lost.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "backend/kubernetes/follower.h"
#include "backend/kubernetes/gang.h"
#include "backend/kubernetes/gather.h"
#include "backend/kubernetes/log_rest.h"
#include "backend/kubernetes/pull.h"
#include "base/clock.h"

/* An end whose cause the pod may know better is held back: that it is being deleted is known soon,
 * that it ran out of memory when its container is over. */
enum { HOLD_FAILED_MS = 1000, HOLD_SIGNALLED_MS = 5 * 1000 };

/* Logs that nodes are asked for at once: each needs as much memory as a node keeps of one. */
enum { RESTS_AT_ONCE = 4 };

/* ---- the log ---- */

/* How much of the log came so far: what is kept here may be less. */
static uint64_t position_of(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const uint32_t rank = task_rank(task);
    const struct logstream_cursor last = cursors_read(&g->positions, rank);
    const uint64_t kept = g->gang.delivered(g->gang.context, rank);

    return kept >= last.lines ? last.offset + (kept - last.lines) : last.offset;
}

static void on_output(void *context, const char *bytes, size_t n, uint64_t at) {
    struct task_pod *task = context;
    struct pod_gang *g = task->gang;
    const uint32_t rank = task_rank(task);
    struct logstream_cursor position = { .offset = at };

    if (task->is_ended)
        return; /* nobody waited for it any more */
    g->gang.output(g->gang.context, rank, bytes, n);
    position.lines = g->gang.delivered(g->gang.context, rank);
    cursors_write(&g->positions, rank, &position);
}

/* ---- what is missing ---- */

/* Whoever kills a run does not ask what it leaves. */
static bool is_told_losses(const struct pod_gang *g) {
    return g->killed_us == 0;
}

static void tell_missing(struct task_pod *task, uint64_t log, uint64_t others) {
    struct pod_gang *g = task->gang;
    char sentence[SENTENCE_MOST];

    if ((log == 0 && others == 0) || !is_told_losses(g))
        return;
    snprintf(sentence, sizeof sentence,
             "the pod of %s ended before all was fetched: missing are %" PRIu64
             " bytes of its log and at most %" PRIu64 " bytes of its metrics and outputs",
             task_label(task).text, log, others);
    g->gang.notice(g->gang.context, sentence);
}

static void tell_unknown(struct task_pod *task) {
    if (is_told_losses(task->gang))
        tasks_miss_log(task, "its pod went before its task had ended for us, and nobody knows what "
                             "of its log, metrics and outputs is missing");
}

static void log_done(struct task_pod *task) {
    task->is_log_done = true;
    tasks_tell_ends(task->gang);
    gang_go_on(task->gang);
}

static void on_rest(void *context, const char *bytes, size_t n) {
    struct task_pod *task = context;

    on_output(task, bytes, n, pull_log_at(task->pull) + n);
}

/* What of the metrics and outputs the shim knew nobody to have; we may have some of it. */
static uint64_t others_missing(const struct task_pod *task, const struct shim_end *end) {
    const uint64_t kept = end->log > end->lost ? end->log - end->lost : 0;
    const uint64_t acked = pull_log_acked(task->pull);
    const uint64_t log = kept > acked ? kept - acked : 0;

    return end->unsent > log ? end->unsent - log : 0;
}

static void begin_rests(struct pod_gang *g);

static void drop_rest(struct task_pod *task) {
    if (!task->rest)
        return;
    log_rest_free(task->rest);
    task->rest = NULL;
    task->gang->n_rests--;
    begin_rests(task->gang);
}

static void on_rest_done(void *context, uint64_t missing) {
    struct task_pod *task = context;

    drop_rest(task);
    tell_missing(task, missing, others_missing(task, &task->pod.message));
    log_done(task);
}

/* The patience with it begins here: it may have waited for others. */
static void begin_rest(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const struct follower_place place = { g->namespace, task->pod.name, g->container };
    const struct log_rest_observer observer = { on_rest, on_rest_done, task };

    task->awaits_rest = false;
    task->end_seen_us = clock_monotonic_us();
    task->rest =
        log_rest_new(g->api, &place, task->pod.message.log - pull_log_at(task->pull), &observer);
    g->n_rests++;
}

/* In the order in which their ends are told. */
static struct task_pod *next_rest(struct pod_gang *g) {
    struct task_pod *next = NULL;

    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if (task->awaits_rest && (!next || task->end_order < next->end_order))
            next = task;
    }
    return next;
}

static void begin_rests(struct pod_gang *g) {
    struct task_pod *next;

    while (g->n_rests < RESTS_AT_ONCE && (next = next_rest(g)))
        begin_rest(next);
}

void gang_pull_told(struct task_pod *task) {
    task->awaits_rest = false;
    drop_rest(task);
}

/* The pod is over, and the shim with it: what the node has of the log is all that is left. */
static void fetch_rest(struct task_pod *task) {
    const struct shim_end *end = &task->pod.message;
    const uint64_t at = pull_log_at(task->pull);

    if (!task->is_there) {
        tell_unknown(task);
        log_done(task);
    } else if (!task->pod.has_message) {
        tell_unknown(task);
        tasks_follow_log(task);
    } else if (end->log > at && end->lost == 0 && !task->is_ended) {
        task->awaits_rest = true;
        begin_rests(task->gang);
    } else {
        tell_missing(task, end->log - end->lost > at ? end->log - end->lost - at : 0,
                     others_missing(task, &task->pod.message));
        log_done(task);
    }
}

/* ---- what a pull tells ---- */

static void on_ended(void *context, const struct shim_end *end) {
    struct task_pod *task = context;

    task->shim_end = *end;
    task->has_shim_end = true;
    tasks_see_end(task);
    tasks_tell_ends(task->gang);
}

/* Whether it waits for the leading task no more, so far as anybody can know. */
static bool is_up(const struct task_pod *task) {
    if (task->has_end)
        return true;
    return task->pull && !task->is_unreachable ? pull_has_started(task->pull) : task->is_started;
}

static bool are_all_up(const struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        if (!is_up(&g->tasks[rank]))
            return false;
    return true;
}

void gang_pull_look(struct pod_gang *g) {
    if (g->tasks[0].pull && are_all_up(g))
        pull_let_go(g->tasks[0].pull);
}

static void on_started(void *context) {
    gang_pull_look(((struct task_pod *)context)->gang);
}

void gang_pull_tell_unreachable(struct pod_gang *g, const char *why) {
    char sentence[SENTENCE_MOST + 64];

    if (g->has_told_unreachable)
        return;
    g->has_told_unreachable = true;
    snprintf(sentence, sizeof sentence,
             "the pods cannot be asked for what their tasks leave (%.240s): logs come by the log "
             "API; metrics and outputs stay in the pods%s",
             why, g->shim_key[0] ? " until they can" : "");
    g->gang.notice(g->gang.context, sentence);
}

static void tell_lost(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const uint64_t lost = pull_log_lost(task->pull);
    char sentence[SENTENCE_MOST];

    if (lost == 0)
        return;
    snprintf(sentence, sizeof sentence,
             "of the log of %s %" PRIu64 " bytes are missing: the pod could not keep them",
             task_label(task).text, lost);
    g->gang.notice(g->gang.context, sentence);
}

/* Its log is here, and its end was told: what the pod took with it is of its outputs. */
static void leave_outputs(struct task_pod *task) {
    const struct shim_end *end = task->pod.has_message ? &task->pod.message : &task->shim_end;

    tell_lost(task);
    tell_missing(task, 0, task->gang->gather ? others_missing(task, end) : 0);
    log_done(task);
}

/* The log API takes its place. */
static void on_away(void *context, const char *why) {
    struct task_pod *task = context;

    gang_pull_tell_unreachable(task->gang, why);
    task->is_unreachable = true;
    tasks_follow_log(task);
}

/* By whichever way it came: what is kept here may be less, and what is here may not have been
 * looked at again yet by who follows the log. */
static uint64_t log_so_far(void *context) {
    struct task_pod *task = context;
    const uint64_t position = position_of(task);
    const uint64_t followed = task->follower ? follower_cursor(task->follower)->offset : 0;

    return followed > position ? followed : position;
}

static void on_back(void *context) {
    struct task_pod *task = context;
    struct pod_gang *g = task->gang;

    task->is_unreachable = false;
    follower_free(task->follower);
    task->follower = NULL;
    if (!g->has_told_reachable)
        g->gang.notice(g->gang.context,
                       "the pods can be asked by now: what their tasks leave comes");
    g->has_told_reachable = true;
}

static void on_refused(void *context, const char *why) {
    struct pod_gang *g = ((struct task_pod *)context)->gang;
    char sentence[SENTENCE_MOST];

    if (g->has_told_refused)
        return;
    g->has_told_refused = true;
    snprintf(sentence, sizeof sentence,
             "the pods cannot be asked any more for what their tasks leave (%.300s): they keep it, "
             "and are asked again",
             why);
    g->gang.notice(g->gang.context, sentence);
}

static void on_over(void *context, enum pull_outcome outcome, const char *why) {
    struct task_pod *task = context;

    switch (outcome) {
    case PULL_ALL:
        tell_lost(task);
        log_done(task);
        break;
    case PULL_CUT:
        if (task->has_shim_end)
            leave_outputs(task);
        else
            fetch_rest(task);
        break;
    case PULL_UNREACHABLE:
        if (!task->has_shim_end) {
            on_away(task, why);
            break;
        }
        gang_pull_tell_unreachable(task->gang, why);
        task->is_unreachable = true;
        log_done(task);
        break;
    }
}

static void on_trouble(void *context, const char *sentence) {
    struct task_pod *task = context;

    task->gang->gang.notice(task->gang->gang.context, sentence);
}

/* ---- ends ---- */

static bool has_succeeded(const struct shim_end *end) {
    return end->kind == SHIM_EXITED && end->detail == 0;
}

bool gang_pull_holds_end(const struct task_pod *task) {
    const int64_t ms = task->shim_end.kind == SHIM_SIGNALLED ? HOLD_SIGNALLED_MS : HOLD_FAILED_MS;

    return task->has_shim_end && !has_succeeded(&task->shim_end) && !task->gang->is_stopping &&
           task->is_there && task->pod.end == POD_NOT_ENDED && !task->pod.is_being_deleted &&
           !gang_is_past(task->end_seen_us, ms);
}

/* Whether the pod says who did it: it was deleted or evicted, or ran out of memory. */
static bool pod_knows_better(const struct task_pod *task) {
    if (has_succeeded(&task->shim_end))
        return false;
    if (task->pod.end == POD_OOM)
        return true;
    return !task->gang->is_stopping &&
           (task->pod.is_being_deleted || task->pod.end == POD_EVICTED ||
            task->pod.end == POD_NODE_LOST || task->pod.end == POD_DELETED);
}

bool gang_pull_end(struct task_pod *task, struct task_end *out) {
    const struct shim_end *end = task->has_shim_end      ? &task->shim_end
                                 : task->pod.has_message ? &task->pod.message
                                                         : NULL;

    if (!task->gang->shim_key[0] || !end)
        return false;
    if (task->has_shim_end ? pod_knows_better(task)
                           : task->pod.end != POD_EXITED && task->pod.end != POD_SIGNALLED) {
        pod_vanished(&task->pod); /* where it has no end yet */
        return false;
    }
    switch (end->kind) {
    case SHIM_EXITED: *out = (struct task_end){ .kind = TASK_EXITED, .detail = end->detail }; break;
    case SHIM_SIGNALLED:
        *out = (struct task_end){ .kind = TASK_SIGNALLED, .detail = end->detail };
        break;
    case SHIM_NOT_STARTED:
        *out = (struct task_end){ .kind = TASK_NOT_STARTED,
                                  .detail = end->detail,
                                  .message = end->why };
        break;
    case SHIM_GAVE_UP: *out = (struct task_end){ .kind = TASK_LOST, .message = end->why }; break;
    }
    return true;
}

bool gang_pull_is_bringing(const struct task_pod *task) {
    return task->has_shim_end && !task->is_log_done && task->pull && !pull_has_all(task->pull);
}

bool gang_pull_any_bringing(const struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        if (gang_pull_is_bringing(&g->tasks[rank]))
            return true;
    return false;
}

/* ---- the life of it ---- */

void gang_pull_begin(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const struct task_name name = task_label(task);
    const struct pull_given given = {
        .namespace = g->namespace,
        .pod = task->pod.name,
        .key = g->shim_key,
        .task = name.text,
        .spool = g->facts->spool,
        .logs = g->facts->logs,
        .gather = g->gather,
        .rank = task_rank(task),
        .log_at = position_of(task),
        .was_reached = cursors_read(&g->positions, task_rank(task)).offset > 0,
        .is_held = task_rank(task) == 0 && g->gang.n_tasks > 1,
    };
    const struct pull_observer observer = { on_output,  on_started, on_ended, on_over,
                                            on_trouble, on_away,    on_back,  log_so_far,
                                            on_refused, task };

    if (!task->pull)
        task->pull = pull_new(g->api, &given, &observer);
}

void gang_pull_open(struct pod_gang *g) {
    const bool comes_here = !g->options->settings->kubernetes.outputs.claim;

    if (!g->shim_key[0])
        return;
    cursors_open(&g->positions, g->facts->logs, CURSORS_SHIM);
    if (comes_here && g->facts->outputs)
        g->gather = gather_new(g->facts->outputs, g->facts->logs, g->gang.n_tasks);
}

/* What became of the outputs, where it is not plain. */
static void tell_counts(struct pod_gang *g) {
    const struct gather_counts counts =
        g->gather ? gather_counts(g->gather) : (struct gather_counts){ 0 };
    const struct task_pod *first = NULL;
    char sentence[SENTENCE_MOST];
    uint64_t unread = 0;

    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        const struct task_pod *task = &g->tasks[rank];
        const uint64_t n = task->pull ? pull_unread(task->pull) : 0;

        first = n && !first ? task : first;
        unread += n;
    }

    if (counts.doubles > 0) {
        snprintf(sentence, sizeof sentence,
                 "several tasks wrote outputs of the same name: %" PRIu64
                 " files of higher ranks were left out, the first is %.200s",
                 counts.doubles, counts.double_path);
        g->gang.notice(g->gang.context, sentence);
    }
    if (unread > 0) {
        snprintf(sentence, sizeof sentence,
                 "%" PRIu64 " outputs could not be read in the pods, the first in that of %.60s",
                 unread, task_label(first).text);
        g->gang.notice(g->gang.context, sentence);
    }
    if (counts.refused > 0) {
        snprintf(sentence, sizeof sentence,
                 "%" PRIu64 " outputs could not be put in their place, the first is %.200s",
                 counts.refused, counts.refused_path);
        g->gang.notice(g->gang.context, sentence);
    }
}

void gang_pull_finish(struct pod_gang *g) {
    tell_counts(g);
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        gang_pull_release(&g->tasks[rank]);
        if (g->gather)
            gather_end(g->gather, rank);
    }
}

void gang_pull_close(struct pod_gang *g) {
    gather_free(g->gather);
    cursors_close(&g->positions);
    g->gather = NULL;
}

void gang_pull_wake(struct task_pod *task) {
    if (task->pull)
        pull_wake(task->pull);
}

void gang_pull_release(struct task_pod *task) {
    pull_free(task->pull);
    log_rest_free(task->rest);
    task->pull = NULL;
    task->rest = NULL;
}
