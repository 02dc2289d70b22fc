/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/follower.h"
#include "backend/kubernetes/gang.h"
#include "backend/kubernetes/job.h"
#include "backend/kubernetes/pull.h"
#include "base/clock.h"

enum {
    PATIENCE_MS = 60 * 1000,     /* with what somebody may still mend: an image, a secret */
    LOG_PATIENCE_MS = 10 * 1000, /* with the log of a task that has ended */
    LOST_NODE_MS = 15 * 1000,    /* with a pod that should be gone, and its node */
    UNBEGUN_MS = 5 * 60 * 1000,  /* with one that never ran: its image may be on its way */
};

struct task_name task_label(const struct task_pod *task) {
    const struct pod_gang *g = task->gang;

    return task_name(&g->options->plan->tasks[task - g->tasks]);
}

uint32_t task_rank(const struct task_pod *task) {
    return (uint32_t)(task - task->gang->tasks);
}

/* ---- ends ---- */

/* The end of a log is missing. The first is told with the reason; the others have the same one, and
 * are counted when all have ended. */
void tasks_miss_log(struct task_pod *task, const char *why) {
    struct pod_gang *g = task->gang;
    char sentence[SENTENCE_MOST];

    if (task->is_log_missed)
        return;
    task->is_log_missed = true;
    if (g->n_logs_missed++ > 0)
        return;
    snprintf(sentence, sizeof sentence, "the end of the log of %s may be missing: %.300s",
             task_label(task).text, why);
    g->gang.notice(g->gang.context, sentence);
}

static void count_missed_logs(struct pod_gang *g) {
    char sentence[SENTENCE_MOST];

    if (g->n_logs_missed < 2)
        return;
    snprintf(sentence, sizeof sentence, "the ends of the logs of %" PRIu32 " tasks may be missing",
             g->n_logs_missed);
    g->gang.notice(g->gang.context, sentence);
    g->n_logs_missed = 0;
}

static void tell_end(struct task_pod *task, const struct task_end *end) {
    struct pod_gang *g = task->gang;

    assert(!task->is_ended);
    follower_free(task->follower);
    task->follower = NULL;
    task->is_ended = true;
    gang_pull_told(task);
    if (++g->n_ended == g->gang.n_tasks)
        count_missed_logs(g);
    g->gang.ended(g->gang.context, task_rank(task), end);
    if (g->n_ended == g->gang.n_tasks)
        gang_delete(g);
}

/* All that have not ended could not be started, or are lost. */
void tasks_end_all(struct pod_gang *g, const char *message) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];
        const struct task_end end = { .kind = task->is_started ? TASK_LOST : TASK_NOT_STARTED,
                                      .message = message };

        if (!task->is_ended)
            tell_end(task, &end);
    }
}

/* A job that is over makes no more pods: who has none by then gets none. Who has one goes on. */
void tasks_end_without_pods(struct pod_gang *g, const char *message) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if (!task->is_ended && !task->has_end && !task->is_there)
            tell_end(task, &(struct task_end){ .kind = TASK_NOT_STARTED, .message = message });
    }
}

static struct task_end end_of(const struct pod *pod) {
    struct task_end end = { .kind = TASK_LOST, .message = pod->sentence };

    switch (pod->end) {
    case POD_EXITED: return (struct task_end){ .kind = TASK_EXITED, .detail = pod->detail };
    case POD_SIGNALLED: return (struct task_end){ .kind = TASK_SIGNALLED, .detail = pod->detail };
    case POD_OOM:
        end = (struct task_end){ .kind = TASK_SIGNALLED, .detail = SIGKILL };
        end.limit = (struct task_limit){ .kind = TASK_LIMIT_MEMORY, .limit = pod->memory_limit };
        return end;
    case POD_NOT_STARTED: end.kind = TASK_NOT_STARTED; return end;
    case POD_NOT_ENDED:
    case POD_EVICTED:
    case POD_NODE_LOST:
    case POD_DELETED:
    case POD_END_COUNT: break;
    }
    return end;
}

static bool is_log_coming(const struct task_pod *task) {
    return (task->follower || (task->pull && !task->has_shim_end)) && !task->is_log_done;
}

static bool is_held(const struct task_pod *task) {
    return task->awaits_rest ||
           (is_log_coming(task) && !gang_is_past(task->end_seen_us, LOG_PATIENCE_MS)) ||
           gang_pull_holds_end(task);
}

/* The next whose end is to be told: the one that was seen first. */
static struct task_pod *first_end(struct pod_gang *g) {
    struct task_pod *first = NULL;

    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if (task->has_end && !task->is_ended && (!first || task->end_order < first->end_order))
            first = task;
    }
    return first;
}

bool tasks_any_untold(struct pod_gang *g) {
    return first_end(g) != NULL;
}

/* mpirun ends when all its ranks have: what it says is said of all of them. */
static void end_those_it_speaks_for(struct pod_gang *g, const struct task_end *end) {
    const bool has_succeeded = end->kind == TASK_EXITED && end->detail == 0;

    if (!g->master_speaks_for_all || !has_succeeded)
        return;
    for (uint32_t rank = 1; rank < g->gang.n_tasks; rank++)
        if (!g->tasks[rank].is_ended)
            tell_end(&g->tasks[rank], end);
}

/* How it ended: as its shim says, else as its pod shows. */
static struct task_end told_end(struct task_pod *task) {
    const struct pod_gang *g = task->gang;
    struct task_end end;

    if (gang_pull_end(task, &end))
        return end;
    end = end_of(&task->pod);
    if (task->pod.end == POD_DELETED && g->is_stopping)
        end.message = "its pod was deleted with the rest";
    else if (task->pod.end == POD_DELETED && g->owner_says[0] && !g->is_owner_there)
        end.message = g->owner_says; /* it went with its owner */
    return end;
}

void tasks_tell_ends(struct pod_gang *g) {
    struct task_pod *task;

    /* What is found at first is put into order before anything is told. */
    if (!g->pods_synced || g->is_held)
        return;
    while ((task = first_end(g)) && !is_held(task)) {
        const struct task_end end = told_end(task);

        if (is_log_coming(task))
            tasks_miss_log(task, "it could not be read in time");
        tell_end(task, &end);
        if (task_rank(task) == 0)
            end_those_it_speaks_for(g, &end);
    }
}

/* Several that were over before anybody looked are told by their own clocks. */
void tasks_see_end(struct task_pod *task) {
    struct pod_gang *g = task->gang;

    if (task->has_end)
        return;
    task->has_end = true;
    task->end_seen_us = clock_monotonic_us();
    if (g->pods_synced || task->pod.ended_us <= 0)
        task->end_order = UINT64_MAX / 2 + g->n_ends++;
    else
        task->end_order = (uint64_t)task->pod.ended_us;
    if (task->follower)
        follower_ended(task->follower);
}

void tasks_refuse(struct pod_gang *g, uint32_t rank, const char *sentence) {
    struct task_pod *task = &g->tasks[rank];

    task->pod.end = POD_NOT_STARTED;
    snprintf(task->pod.sentence, sizeof task->pod.sentence, "%s", sentence);
    tasks_see_end(task);
}

/* ---- logs ---- */

static void on_output(void *context, const char *bytes, size_t n) {
    struct task_pod *task = context;
    struct pod_gang *g = task->gang;

    g->gang.output(g->gang.context, task_rank(task), bytes, n);
    cursors_write(&g->cursors, task_rank(task), follower_cursor(task->follower));
}

static void on_log_done(void *context, const char *trouble) {
    struct task_pod *task = context;
    struct pod_gang *g = task->gang;

    task->is_log_done = true;
    /* A pod that was removed with its log needs no explanation beyond its end. */
    if (trouble && task->pod.end != POD_DELETED && task->pod.end != POD_NOT_STARTED &&
        !g->is_stopping)
        tasks_miss_log(task, trouble);
    tasks_tell_ends(g);
}

void tasks_follow_log(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const uint32_t rank = task_rank(task);
    const struct logstream_cursor from = cursors_read(&g->cursors, rank);
    const struct follower_place place = { g->namespace, task->pod.name, g->container };
    const struct follower_observer observer = { on_output, on_log_done, task };

    if (!task->follower)
        task->follower = follower_new(g->api, &place, &from,
                                      g->gang.delivered(g->gang.context, rank), &observer);
    if (task->has_end)
        follower_ended(task->follower);
}

/* By the shim where there is one: it has more than the node keeps. Nothing is read any more once
 * its end was told, though its pod changes until it is gone. */
static void follow(struct task_pod *task) {
    if (task->is_ended)
        return;
    if (task->gang->shim_key[0] && !task->gang->is_shim_denied && !task->is_unreachable)
        gang_pull_begin(task);
    else
        tasks_follow_log(task);
}

/* Its container has ended, or nobody will see it any more. */
static void see_over(struct task_pod *task) {
    tasks_see_end(task);
    if (task->pull)
        pull_pod_over(task->pull);
}

/* ---- pods ---- */

/* What a watch tells lives as long as its call; this lives until the next. */
static void keep(struct task_pod *task, const struct pod *seen) {
    struct arena texts = ARENA_INIT;

    task->pod = *seen;
    task->pod.name = arena_text(&texts, seen->name, strlen(seen->name));
    task->pod.uid = arena_text(&texts, seen->uid, strlen(seen->uid));
    task->pod.version = arena_text(&texts, seen->version, strlen(seen->version));
    task->pod.node = arena_text(&texts, seen->node, strlen(seen->node));
    arena_release(&task->texts);
    task->texts = texts;
}

static void see_trouble(struct task_pod *task) {
    if (task->pod.trouble == POD_FINE)
        task->trouble_seen_us = 0;
    else if (task->trouble_seen_us == 0)
        task->trouble_seen_us = clock_monotonic_us();
    if (task->pod.is_hopeless && task->pod.end == POD_NOT_ENDED) {
        task->pod.end = POD_NOT_STARTED;
        tasks_see_end(task);
    }
}

/* Nothing is decided here: a node may come back, and the cluster says when it is given up. */
static void tell_node(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    char sentence[SENTENCE_MOST];

    if (task->is_cut_off == task->pod.is_cut_off || task->has_end)
        return;
    task->is_cut_off = task->pod.is_cut_off;
    if (task->is_cut_off)
        snprintf(sentence, sizeof sentence,
                 "the node %.80s of %s does not answer; the task is lost when the cluster gives "
                 "the node up, which takes 5 minutes unless `tolerations` say otherwise",
                 task->pod.node, task_label(task).text);
    else
        snprintf(sentence, sizeof sentence, "the node %.80s of %s answers again", task->pod.node,
                 task_label(task).text);
    g->gang.notice(g->gang.context, sentence);
}

static void see_deletion(struct task_pod *task) {
    if (!task->pod.is_being_deleted)
        task->deletion_seen_us = 0;
    else if (task->deletion_seen_us == 0)
        task->deletion_seen_us = clock_monotonic_us();
}

/* That it runs is told, and its log is read. */
static void see_start(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    const struct pod *pod = &task->pod;
    const bool has_run =
        pod->phase == POD_RUNNING ||
        (pod->phase == POD_ENDED && pod->end != POD_NOT_STARTED && pod->started_us > 0);

    if (!has_run || g->is_held || g->was_held_to_the_end)
        return;
    if (!task->is_started) {
        task->is_started = true;
        g->gang.started(g->gang.context, task_rank(task), 0);
    }
    follow(task);
}

static void see_pod(struct task_pod *task, const struct pod *seen) {
    keep(task, seen);
    task->is_there = true;
    see_start(task);
    see_trouble(task);
    see_deletion(task);
    if (seen->phase == POD_ENDED)
        see_over(task);
    tell_node(task);
}

static struct task_pod *task_of(struct pod_gang *g, const struct node *object) {
    enum role role;
    uint32_t index;
    int64_t rank;

    if (!job_task_of_pod(object, &role, &index))
        return NULL;
    rank = plan_find_task(g->options->plan, role, index);
    return rank < 0 ? NULL : &g->tasks[rank];
}

static struct task_pod *task_by_uid(struct pod_gang *g, const char *uid) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        if (g->tasks[rank].is_there && strcmp(g->tasks[rank].pod.uid, uid) == 0)
            return &g->tasks[rank];
    return NULL;
}

static void on_pod_gone(struct pod_gang *g, const struct watch_event *event) {
    struct task_pod *task = task_by_uid(g, event->uid);
    struct pod last;

    if (!task)
        return;
    if (event->object) {
        pod_read(event->object, g->container, &last);
        keep(task, &last);
    }
    pod_vanished(&task->pod);
    task->is_there = false;
    see_over(task);
}

void tasks_see(struct pod_gang *g, const struct watch_event *event) {
    struct task_pod *task;
    struct pod seen;

    if (event->kind == WATCH_DELETED) {
        on_pod_gone(g, event);
    } else if ((task = task_of(g, event->object))) {
        pod_read(event->object, g->container, &seen);
        /* An operator replaces a pod that somebody removed: the task has ended all the same. */
        if (!task->is_there && !task->has_end)
            see_pod(task, &seen);
        else if (task->is_there && strcmp(task->pod.uid, seen.uid) == 0)
            see_pod(task, &seen);
    }
    tasks_tell_ends(g);
}

void tasks_miss(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if (!(task->was_made || g->facts->was_submitted) || task->is_there || task->has_end)
            continue;
        pod_vanished(&task->pod);
        tasks_see_end(task);
    }
}

/* ---- what they wait for ---- */

/* The same trouble is told once, though the node finds other words for it each time. */
void tasks_tell_waits(struct pod_gang *g, uint32_t topic, const char *sentence) {
    if (topic == g->waits_topic)
        return;
    g->waits_topic = topic;
    snprintf(g->waits, sizeof g->waits, "%s", sentence);
    g->gang.waits(g->gang.context, sentence[0] ? sentence : NULL);
}

/* The tasks that are in the same trouble as the first of those that tell most of it. */
static void look_for_trouble(struct pod_gang *g) {
    const struct task_pod *first = NULL;
    char sentence[SENTENCE_MOST] = "";
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        const struct task_pod *task = &g->tasks[rank];

        if (!task->is_there || task->is_started || task->has_end || task->pod.trouble == POD_FINE)
            continue;
        if (pod_tells_more(task->pod.trouble, first ? first->pod.trouble : POD_FINE)) {
            first = task;
            n = 0;
        }
        n += task->pod.trouble == first->pod.trouble;
    }
    if (first && first->pod.trouble == POD_PUT_OFF && g->waits_topic == POD_UNSCHEDULABLE)
        return; /* more was told before */
    if (first && n > 1)
        snprintf(sentence, sizeof sentence, "%s and %" PRIu32 " more wait: %s",
                 task_label(first).text, n - 1, first->pod.sentence);
    else if (first)
        snprintf(sentence, sizeof sentence, "%s waits: %s", task_label(first).text,
                 first->pod.sentence);
    tasks_tell_waits(g, first ? first->pod.trouble : POD_FINE, sentence);
}

bool gang_is_past(int64_t since_us, int64_t ms) {
    return since_us > 0 && clock_monotonic_us() - since_us >= ms * 1000;
}

/* What nobody mended in time will not start. That no node has room is no mistake: it waits. */
static void lose_patience(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if (task->has_end || task->is_started || task->pod.trouble == POD_GATED ||
            task->pod.trouble == POD_PUT_OFF || task->pod.trouble == POD_UNSCHEDULABLE ||
            !gang_is_past(task->trouble_seen_us, PATIENCE_MS))
            continue;
        task->pod.end = POD_NOT_STARTED;
        tasks_see_end(task);
    }
}

/* Its own time is over, and some more: by our clock, since that of the cluster may be another. */
static bool is_overdue_by(const struct task_pod *task, int64_t ms) {
    return task->is_there && task->pod.is_being_deleted &&
           gang_is_past(task->deletion_seen_us, task->pod.deletion_grace_s * 1000 + ms);
}

/* A node that is gone says nothing any more: its pods stay as they were, beyond their time. */
static void look_for_lost_nodes(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if ((task->has_end && !gang_pull_is_bringing(task)) || !is_overdue_by(task, LOST_NODE_MS))
            continue;
        pod_vanished(&task->pod);
        see_over(task);
    }
}

void tasks_look(struct pod_gang *g) {
    lose_patience(g);
    look_for_lost_nodes(g);
    gang_pull_look(g);
    if (!g->is_held)
        look_for_trouble(g);
}

/* ---- before all of them have a place ---- */

void tasks_let_go(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        see_start(&g->tasks[rank]);
        if (g->tasks[rank].has_end && g->tasks[rank].follower)
            follower_ended(g->tasks[rank].follower);
    }
    tasks_tell_ends(g);
}

bool tasks_any_failed(const struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        const struct task_pod *task = &g->tasks[rank];

        if (task->has_end && !(task->pod.end == POD_EXITED && task->pod.detail == 0))
            return true;
    }
    return false;
}

void tasks_forget(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        assert(!task->is_started && !task->follower && !task->is_ended);
        arena_release(&task->texts);
        *task = (struct task_pod){ .gang = g };
    }
}

bool tasks_all_started(const struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        if (!g->tasks[rank].is_started)
            return false;
    return true;
}

bool tasks_any_there(const struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        if (g->tasks[rank].is_there)
            return true;
    return false;
}

/* ---- the end ---- */

void tasks_forget_pods(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        g->tasks[rank].is_there = false;
        if (gang_pull_is_bringing(&g->tasks[rank]))
            pull_pod_over(g->tasks[rank].pull);
    }
}

static void ignore(void *context, const struct api_answer *answer) {
    (void)context, (void)answer;
}

void tasks_stop(struct pod_gang *g) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = g->namespace };

    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];
        const struct api_delete how = { .propagation = API_DELETE_BACKGROUND,
                                        .grace_s = -1,
                                        .uid = task->pod.uid };

        if (!task->is_there || task->has_end || task->pod.is_being_deleted || task->was_stopped)
            continue;
        task->was_stopped = true;
        gang_insist(g, api_delete(g->api, &pods, task->pod.name, &how, ignore, NULL));
    }
}

static void tell_lost(struct task_pod *task) {
    struct pod_gang *g = task->gang;
    char sentence[SENTENCE_MOST];

    if (!pod_has_lost_its_node(&task->pod))
        return;
    snprintf(sentence, sizeof sentence,
             "%s may still run on %.80s, which does not answer: the node ends it when it is back",
             task_label(task).text, task->pod.node);
    g->gang.left(g->gang.context, LEFT_LOST, sentence);
}

/* Removes the object of a pod without waiting for its node. */
static void give_up(struct task_pod *task) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = task->gang->namespace };
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND, .uid = task->pod.uid };

    if (!task->is_there || task->was_given_up)
        return;
    task->was_given_up = true;
    tell_lost(task);
    api_delete(task->gang->api, &pods, task->pod.name, &how, ignore, NULL);
}

void tasks_kill(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        give_up(&g->tasks[rank]);
}

void tasks_give_up_lost(struct pod_gang *g) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];

        if ((is_overdue_by(task, LOST_NODE_MS) && pod_has_lost_its_node(&task->pod)) ||
            (is_overdue_by(task, UNBEGUN_MS) && task->pod.started_us == 0))
            give_up(task);
    }
}

void tasks_wake(struct pod_gang *g, int64_t now_us) {
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++) {
        struct task_pod *task = &g->tasks[rank];
        int64_t *const since[] = { &task->end_seen_us, &task->trouble_seen_us,
                                   &task->deletion_seen_us };

        for (size_t i = 0; i < ARRAY_LEN(since); i++)
            if (*since[i] > 0)
                *since[i] = now_us;
        gang_pull_wake(task);
    }
}

void tasks_init(struct pod_gang *g) {
    g->tasks = calloc(g->gang.n_tasks, sizeof *g->tasks);
    if (!g->tasks)
        abort();
    for (uint32_t rank = 0; rank < g->gang.n_tasks; rank++)
        g->tasks[rank].gang = g;
}

void tasks_release(struct pod_gang *g) {
    for (uint32_t rank = 0; g->tasks && rank < g->gang.n_tasks; rank++) {
        follower_free(g->tasks[rank].follower);
        gang_pull_release(&g->tasks[rank]);
        arena_release(&g->tasks[rank].texts);
    }
    free(g->tasks);
    g->tasks = NULL;
}
