/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/kubeflow.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/cursors.h"
#include "backend/kubernetes/follower.h"
#include "backend/kubernetes/job.h"
#include "backend/kubernetes/pod.h"
#include "backend/kubernetes/watch.h"
#include "base/clock.h"

enum {
    LOOK_EVERY_MS = 1000,
    PATIENCE_MS = 60 * 1000,     /* with what somebody may still mend: an image, a secret */
    LOG_PATIENCE_MS = 10 * 1000, /* with the log of a task that has ended */
    JOB_PATIENCE_MS = 5 * 1000,  /* with pods of a job that is over, until they say so themselves */
    LOST_NODE_MS = 15 * 1000,    /* with a pod that should be gone, and its node */
    SENTENCE_MOST = 480,
};

/* One task, and the pod that is it. */
struct task_pod {
    struct kubeflow *kubeflow;
    struct pod pod; /* what was seen last; its texts are in `texts` */
    struct arena texts;
    bool is_there;             /* the object exists */
    bool is_started, is_ended; /* was told */
    bool has_end;              /* its end was seen, and waits for its turn and its log */
    uint64_t end_order;
    int64_t end_seen_us, trouble_seen_us;
    struct follower *follower; /* NULL: its log is not read */
    bool is_log_done;
};

enum stage {
    STAGE_ASKING, /* which kinds the cluster has */
    STAGE_CREATING,
    STAGE_WATCHING,
    STAGE_DELETING,
    STAGE_GONE,
};

struct kubeflow {
    struct backend backend;
    const struct kubeflow_options *options;
    const struct attempt_facts *facts;
    const struct kubeflow_kind *kind;
    struct event_base *base;
    struct gang gang;
    struct api *api;
    struct arena arena;

    enum stage stage;
    char name[MANIFEST_NAME_MAX];
    const char *namespace, *version;
    struct api_call *call; /* of the job itself */
    struct watch *jobs, *pods;
    bool jobs_synced, pods_synced, is_job_there;
    int64_t job_over_us; /* when the job was seen to be over; 0: it is not */
    char job_says[SENTENCE_MOST];
    char last_words[SENTENCE_MOST]; /* why nobody knows what became of the tasks; or "" */

    struct task_pod *tasks;
    struct cursors cursors;
    uint64_t n_ends;
    uint32_t n_ended;
    bool is_stopping, is_killing;
    int64_t launched_us;
    struct event look_event, gone_event;
    char waits[SENTENCE_MOST]; /* as it was told */
    enum pod_trouble waits_trouble;
    bool is_cut_off; /* that the cluster cannot be reached was told */
};

static struct task_name name_of(const struct task_pod *task) {
    const struct kubeflow *k = task->kubeflow;

    return task_name(&k->options->plan->tasks[task - k->tasks]);
}

static uint32_t rank_of(const struct task_pod *task) {
    return (uint32_t)(task - task->kubeflow->tasks);
}

/* ---- ends ---- */

static void begin_delete(struct kubeflow *k);

static void tell_end(struct task_pod *task, const struct task_end *end) {
    struct kubeflow *k = task->kubeflow;

    assert(!task->is_ended);
    follower_free(task->follower);
    task->follower = NULL;
    task->is_ended = true;
    k->n_ended++;
    k->gang.ended(k->gang.context, rank_of(task), end);
    if (k->n_ended == k->gang.n_tasks)
        begin_delete(k);
}

/* All that have not ended could not be started, or are lost. */
static void end_all(struct kubeflow *k, const char *message) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        struct task_pod *task = &k->tasks[rank];
        const struct task_end end = { .kind = task->is_started ? TASK_LOST : TASK_NOT_STARTED,
                                      .message = message };

        if (!task->is_ended)
            tell_end(task, &end);
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

static bool waits_for_log(const struct task_pod *task) {
    return task->follower && !task->is_log_done &&
           clock_monotonic_us() - task->end_seen_us < LOG_PATIENCE_MS * 1000ll;
}

/* The next whose end is to be told: the one that was seen first. */
static struct task_pod *first_end(struct kubeflow *k) {
    struct task_pod *first = NULL;

    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        struct task_pod *task = &k->tasks[rank];

        if (task->has_end && !task->is_ended && (!first || task->end_order < first->end_order))
            first = task;
    }
    return first;
}

/* mpirun ends when all its ranks have: what it says is said of all of them. */
static void end_ranks_of_mpirun(struct kubeflow *k, const struct task_end *end) {
    const bool has_succeeded = end->kind == TASK_EXITED && end->detail == 0;

    if (k->options->plan->framework != FRAMEWORK_HOROVOD || !has_succeeded)
        return;
    for (uint32_t rank = 1; rank < k->gang.n_tasks; rank++)
        if (!k->tasks[rank].is_ended)
            tell_end(&k->tasks[rank], end);
}

static void tell_ends(struct kubeflow *k) {
    struct task_pod *task;

    /* What is found at first is put into order before anything is told. */
    if (!k->pods_synced)
        return;
    while ((task = first_end(k)) && !waits_for_log(task)) {
        struct task_end end = end_of(&task->pod);

        if (task->pod.end == POD_DELETED && k->job_says[0] && !k->is_job_there)
            end.message = k->job_says; /* it went with its job */
        if (task->follower && !task->is_log_done) {
            char sentence[SENTENCE_MOST];

            snprintf(sentence, sizeof sentence, "the end of the log of %s could not be read",
                     name_of(task).text);
            k->gang.notice(k->gang.context, sentence);
        }
        tell_end(task, &end);
        if (rank_of(task) == 0)
            end_ranks_of_mpirun(k, &end);
    }
}

/* Several that were over before anybody looked are told by their own clocks. */
static void see_end(struct task_pod *task) {
    struct kubeflow *k = task->kubeflow;

    if (task->has_end)
        return;
    task->has_end = true;
    task->end_seen_us = clock_monotonic_us();
    if (k->pods_synced || task->pod.ended_us <= 0)
        task->end_order = UINT64_MAX / 2 + k->n_ends++;
    else
        task->end_order = (uint64_t)task->pod.ended_us;
    if (task->follower)
        follower_ended(task->follower);
}

/* ---- logs ---- */

static void on_output(void *context, const char *bytes, size_t n) {
    struct task_pod *task = context;
    struct kubeflow *k = task->kubeflow;

    k->gang.output(k->gang.context, rank_of(task), bytes, n);
    cursors_write(&k->cursors, rank_of(task), follower_cursor(task->follower));
}

static void on_log_done(void *context, const char *trouble) {
    struct task_pod *task = context;
    struct kubeflow *k = task->kubeflow;
    char sentence[SENTENCE_MOST];

    task->is_log_done = true;
    /* A pod that was removed with its log needs no explanation beyond its end. */
    if (trouble && task->pod.end != POD_DELETED && task->pod.end != POD_NOT_STARTED &&
        !k->is_stopping) {
        snprintf(sentence, sizeof sentence, "the end of the log of %s may be missing: %.300s",
                 name_of(task).text, trouble);
        k->gang.notice(k->gang.context, sentence);
    }
    tell_ends(k);
}

static void follow_log(struct task_pod *task) {
    struct kubeflow *k = task->kubeflow;
    const uint32_t rank = rank_of(task);
    const struct logstream_cursor from = cursors_read(&k->cursors, rank);
    const struct follower_place place = { k->namespace, task->pod.name, k->kind->container };
    const struct follower_observer observer = { on_output, on_log_done, task };

    if (!task->follower)
        task->follower = follower_new(k->api, &place, &from,
                                      k->gang.delivered(k->gang.context, rank), &observer);
}

/* ---- pods ---- */

/* What a watch tells lives as long as its call; this lives until the next. */
static void keep(struct task_pod *task, const struct pod *seen) {
    struct arena texts = ARENA_INIT;

    task->pod = *seen;
    task->pod.name = arena_text(&texts, seen->name, strlen(seen->name));
    task->pod.uid = arena_text(&texts, seen->uid, strlen(seen->uid));
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
        see_end(task);
    }
}

static void see_pod(struct task_pod *task, const struct pod *seen) {
    struct kubeflow *k = task->kubeflow;
    const bool has_run =
        seen->phase == POD_RUNNING ||
        (seen->phase == POD_ENDED && seen->end != POD_NOT_STARTED && seen->started_us > 0);

    keep(task, seen);
    task->is_there = true;
    if (has_run && !task->is_started) {
        task->is_started = true;
        k->gang.started(k->gang.context, rank_of(task), 0);
    }
    if (has_run)
        follow_log(task);
    see_trouble(task);
    if (seen->phase == POD_ENDED)
        see_end(task);
}

static struct task_pod *task_of(struct kubeflow *k, const struct node *object) {
    enum role role;
    uint32_t index;
    int64_t rank;

    if (!job_task_of_pod(object, &role, &index))
        return NULL;
    rank = plan_find_task(k->options->plan, role, index);
    return rank < 0 ? NULL : &k->tasks[rank];
}

static struct task_pod *task_by_uid(struct kubeflow *k, const char *uid) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++)
        if (k->tasks[rank].is_there && strcmp(k->tasks[rank].pod.uid, uid) == 0)
            return &k->tasks[rank];
    return NULL;
}

static void on_pod_gone(struct kubeflow *k, const struct watch_event *event) {
    struct task_pod *task = task_by_uid(k, event->uid);
    struct pod last;

    if (!task)
        return;
    if (event->object) {
        pod_read(event->object, k->kind->container, &last);
        keep(task, &last);
    }
    pod_vanished(&task->pod);
    task->is_there = false;
    see_end(task);
}

static void on_pod(void *context, const struct watch_event *event) {
    struct kubeflow *k = context;
    struct task_pod *task;
    struct pod seen;

    k->is_cut_off = false;
    if (event->kind == WATCH_DELETED) {
        on_pod_gone(k, event);
    } else if ((task = task_of(k, event->object))) {
        pod_read(event->object, k->kind->container, &seen);
        /* An operator replaces a pod that somebody removed: the task has ended all the same. */
        if (!task->is_there && !task->has_end)
            see_pod(task, &seen);
        else if (task->is_there && strcmp(task->pod.uid, seen.uid) == 0)
            see_pod(task, &seen);
    }
    tell_ends(k);
}

/* ---- what it waits for ---- */

/* The same trouble is told once, though the node finds other words for it each time. */
static void tell_waits(struct kubeflow *k, const struct task_pod *first, const char *sentence) {
    const enum pod_trouble trouble = first ? first->pod.trouble : POD_FINE;

    if (trouble == k->waits_trouble)
        return;
    k->waits_trouble = trouble;
    snprintf(k->waits, sizeof k->waits, "%s", sentence);
    k->gang.waits(k->gang.context, sentence[0] ? sentence : NULL);
}

/* The tasks that are in the same trouble as the first that is in any. */
static void look_for_trouble(struct kubeflow *k) {
    const struct task_pod *first = NULL;
    char sentence[SENTENCE_MOST] = "";
    uint32_t n = 0;

    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        const struct task_pod *task = &k->tasks[rank];

        if (!task->is_there || task->is_started || task->has_end || task->pod.trouble == POD_FINE)
            continue;
        if (!first)
            first = task;
        n += task->pod.trouble == first->pod.trouble;
    }
    if (first && n > 1)
        snprintf(sentence, sizeof sentence, "%s and %" PRIu32 " more wait: %s", name_of(first).text,
                 n - 1, first->pod.sentence);
    else if (first)
        snprintf(sentence, sizeof sentence, "%s waits: %s", name_of(first).text,
                 first->pod.sentence);
    tell_waits(k, first, sentence);
}

static bool is_past(int64_t since_us, int64_t ms) {
    return since_us > 0 && clock_monotonic_us() - since_us >= ms * 1000;
}

/* What nobody mended in time will not start. That no node has room is no mistake: it waits. */
static void lose_patience(struct kubeflow *k) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        struct task_pod *task = &k->tasks[rank];

        if (task->has_end || task->is_started || task->pod.trouble == POD_UNSCHEDULABLE ||
            !is_past(task->trouble_seen_us, PATIENCE_MS))
            continue;
        task->pod.end = POD_NOT_STARTED;
        see_end(task);
    }
}

/* A node that is gone says nothing any more: its pods stay as they were, beyond their time. */
static void look_for_lost_nodes(struct kubeflow *k) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        struct task_pod *task = &k->tasks[rank];

        if (!task->is_there || task->has_end || !task->pod.is_being_deleted ||
            task->pod.deletion_us <= 0 ||
            clock_wall_us() < task->pod.deletion_us + LOST_NODE_MS * 1000ll)
            continue;
        pod_vanished(&task->pod);
        see_end(task);
    }
}

static bool all_started(const struct kubeflow *k) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++)
        if (!k->tasks[rank].is_started)
            return false;
    return true;
}

static void look_at_clock(struct kubeflow *k) {
    char sentence[SENTENCE_MOST];

    if (k->options->timeout_ms >= 0 && !k->facts->was_submitted && !k->is_stopping &&
        is_past(k->launched_us, k->options->timeout_ms) && !all_started(k)) {
        snprintf(sentence, sizeof sentence, "not all tasks run after %gs (--timeout)%s%.300s",
                 (double)k->options->timeout_ms / 1000, k->waits[0] ? ": " : "", k->waits);
        end_all(k, sentence);
    }
}

/* A job that is over makes no more pods: who has none by then gets none. Who has one goes on. */
static void end_those_without_pods(struct kubeflow *k) {
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        struct task_pod *task = &k->tasks[rank];

        if (!task->is_ended && !task->has_end && !task->is_there)
            tell_end(task, &(struct task_end){ .kind = TASK_NOT_STARTED, .message = k->job_says });
    }
}

static void look_at_job(struct kubeflow *k) {
    const bool is_gone = k->jobs_synced && !k->is_job_there && k->stage == STAGE_WATCHING;

    if (is_gone && !k->is_stopping && k->pods_synced) {
        if (k->job_over_us == 0)
            k->job_over_us = clock_monotonic_us();
        snprintf(k->job_says, sizeof k->job_says, "somebody deleted the %s %s", k->kind->kind,
                 k->name);
    }
    if (!k->is_stopping && is_past(k->job_over_us, JOB_PATIENCE_MS) && !first_end(k))
        end_those_without_pods(k);
}

static void finish_if_nothing_is_left(struct kubeflow *k) {
    if (k->stage != STAGE_DELETING || k->call || !k->jobs_synced || !k->pods_synced ||
        k->is_job_there)
        return;
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++)
        if (k->tasks[rank].is_there)
            return;
    tell_ends(k);
    if (first_end(k))
        return; /* the last of its log is still on the way */
    end_all(k, k->last_words[0] ? k->last_words : "its pod was never made");
    k->stage = STAGE_GONE;
    event_active(&k->gone_event, EV_TIMEOUT, 0);
}

/* Nobody will say any more when they are gone. */
static void give_up_watching(struct kubeflow *k, const char *why) {
    snprintf(k->last_words, sizeof k->last_words, "%.400s", why);
    k->jobs_synced = k->pods_synced = true;
    k->is_job_there = false;
    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++)
        k->tasks[rank].is_there = false;
}

static void look(struct kubeflow *k) {
    const struct timeval again = { .tv_sec = LOOK_EVERY_MS / 1000 };

    if (k->stage == STAGE_GONE)
        return;
    evtimer_add(&k->look_event, &again);
    if (k->stage == STAGE_WATCHING && !k->is_stopping) {
        lose_patience(k);
        look_for_lost_nodes(k);
        look_for_trouble(k);
        look_at_job(k);
    }
    look_at_clock(k);
    /* Who wants it ended at once does not wait for a cluster that nobody reaches. */
    if (k->stage == STAGE_DELETING && k->is_killing && k->is_cut_off)
        give_up_watching(k, "the cluster could not be reached: nobody knows what became of it");
    tell_ends(k);
    finish_if_nothing_is_left(k);
}

static void on_look(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    look(context);
}

static void on_gone(evutil_socket_t fd, short what, void *context) {
    struct kubeflow *k = context;

    (void)fd, (void)what;
    evtimer_del(&k->look_event);
    k->gang.gone(k->gang.context);
}

/* ---- the watches ---- */

static void on_pods_synced(void *context) {
    struct kubeflow *k = context;

    k->pods_synced = true;
    k->is_cut_off = false;
    look(k);
}

static void on_job(void *context, const struct watch_event *event) {
    struct kubeflow *k = context;
    char why[SENTENCE_MOST];

    k->is_job_there = event->kind != WATCH_DELETED;
    if (!k->is_job_there && !k->is_stopping)
        snprintf(k->job_says, sizeof k->job_says, "somebody deleted the %s %s", k->kind->kind,
                 k->name);
    if (k->is_job_there && job_is_over(event->object, why, sizeof why) && k->job_over_us == 0) {
        k->job_over_us = clock_monotonic_us();
        snprintf(k->job_says, sizeof k->job_says, "the %s has ended: %.300s", k->kind->kind, why);
    }
    finish_if_nothing_is_left(k);
}

static void on_jobs_synced(void *context) {
    struct kubeflow *k = context;

    k->jobs_synced = true;
    look(k);
}

static void on_trouble(void *context, const struct error *err) {
    struct kubeflow *k = context;
    char sentence[SENTENCE_MOST + 64];

    if (k->is_cut_off)
        return;
    k->is_cut_off = true;
    snprintf(sentence, sizeof sentence, "the cluster cannot be asked (%.300s); the tasks go on",
             err->message);
    k->gang.notice(k->gang.context, sentence);
}

static void on_watch_failed(void *context, const struct error *err) {
    struct kubeflow *k = context;
    char sentence[SENTENCE_MOST];

    snprintf(sentence, sizeof sentence, "the cluster does not show its pods: %.400s", err->message);
    give_up_watching(k, sentence);
    end_all(k, sentence);
}

static struct api_resource job_resource(const struct kubeflow *k) {
    return (struct api_resource){ .group = "kubeflow.org",
                                  .version = k->version,
                                  .plural = k->kind->plural,
                                  .namespace = k->namespace };
}

static void begin_watching(struct kubeflow *k) {
    const struct api_resource jobs = job_resource(k);
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = k->namespace };
    const struct watch_observer of_jobs = { on_job, on_jobs_synced, on_trouble, on_watch_failed,
                                            k };
    const struct watch_observer of_pods = { on_pod, on_pods_synced, on_trouble, on_watch_failed,
                                            k };
    char labels[160], fields[80];

    k->stage = STAGE_WATCHING;
    snprintf(labels, sizeof labels, MANIFEST_LABEL_RUN "=%s," MANIFEST_LABEL_ATTEMPT "=%" PRIu32,
             k->facts->uuid, k->facts->number);
    snprintf(fields, sizeof fields, "metadata.name=%s", k->name);
    k->jobs = watch_new(k->api, &jobs, &(struct api_selector){ .fields = fields }, &of_jobs);
    k->pods = watch_new(k->api, &pods, &(struct api_selector){ .labels = labels }, &of_pods);
}

/* ---- the job ---- */

/* There will be no job, and nothing to look for. */
static void refuse(struct kubeflow *k, const char *sentence) {
    k->stage = STAGE_ASKING;
    end_all(k, sentence);
}

static void on_created(void *context, const struct api_answer *answer) {
    struct kubeflow *k = context;
    char sentence[SENTENCE_MOST];

    k->call = NULL;
    if (answer->err.code != ERROR_NONE || !answer->object) {
        snprintf(sentence, sizeof sentence, "the cluster does not take the %s: %.380s",
                 k->kind->kind, answer->err.message);
        refuse(k, sentence);
        return;
    }
    if (answer->existed && !job_is_of_run(answer->object, k->facts->uuid)) {
        snprintf(sentence, sizeof sentence, "the cluster has a %s %s of somebody else",
                 k->kind->kind, k->name);
        refuse(k, sentence);
        return;
    }
    k->gang.submitted(k->gang.context);
    begin_watching(k);
    if (k->is_stopping)
        begin_delete(k);
}

/* The first mistake, as a sentence. */
static void say_mistake(const struct diags *diags, char *out, size_t size) {
    const struct diag *diag = diags->len ? &diags->list[0] : NULL;

    snprintf(out, size, "%s%s%s", diag ? diag->message : "it cannot be expressed",
             diag && diag->help ? "; " : "", diag && diag->help ? diag->help : "");
}

static void create(struct kubeflow *k, const char *const *apis) {
    const struct manifest_input input = {
        .plan = k->options->plan,
        .settings = k->options->settings,
        .target = MANIFEST_KUBEFLOW,
        .run = { .id = k->facts->run_id,
                 .uuid = k->facts->uuid,
                 .attempt = k->facts->number,
                 .grace_s = (k->facts->grace_ms + 999) / 1000,
                 .owner = k->facts->owner,
                 .project = "default" },
        .image = k->options->image,
        .namespace = k->namespace,
        .apis = apis,
    };
    const struct api_resource jobs = job_resource(k);
    AUTO_PTR(diags) diags = diags_new();
    AUTO_PTR(manifest) manifest = manifest_build(&input, diags);
    char sentence[SENTENCE_MOST];

    if (manifest && manifest->n_objects == 1) {
        k->stage = STAGE_CREATING;
        k->call = api_create(k->api, &jobs, &manifest->objects[0], on_created, k);
        return;
    }
    say_mistake(diags, sentence, sizeof sentence);
    refuse(k, sentence);
}

static void on_kinds(void *context, const struct error *err, const struct api_kind *kinds,
                     size_t n) {
    struct kubeflow *k = context;
    const char **apis = ARENA_ARRAY(&k->arena, const char *, n + 1);
    char sentence[SENTENCE_MOST];

    k->call = NULL;
    if (err->code != ERROR_NONE) {
        snprintf(sentence, sizeof sentence, "the cluster cannot be asked: %.400s", err->message);
        refuse(k, sentence);
        return;
    }
    for (size_t i = 0; i < n; i++)
        apis[i] = arena_printf(&k->arena, "kubeflow.org/%s/%s", kinds[i].version, kinds[i].kind);
    create(k, apis);
}

/* ---- the end ---- */

static void on_deleted(void *context, const struct api_answer *answer) {
    struct kubeflow *k = context;
    char sentence[SENTENCE_MOST + 64];

    k->call = NULL;
    if (answer->err.code != ERROR_NONE && answer->err.code != ERROR_NOT_FOUND) {
        snprintf(sentence, sizeof sentence, "the %s %s could not be deleted: %.300s", k->kind->kind,
                 k->name, answer->err.message);
        k->gang.notice(k->gang.context, sentence);
        give_up_watching(k, sentence);
    }
    finish_if_nothing_is_left(k);
}

static void ignore(void *context, const struct api_answer *answer) {
    (void)context, (void)answer;
}

/* Deleting the job deletes its pods; they get their grace time. */
static void begin_delete(struct kubeflow *k) {
    const struct api_resource jobs = job_resource(k);
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND, .grace_s = -1 };

    if (k->stage >= STAGE_DELETING || k->stage == STAGE_CREATING)
        return; /* it is, or will be once its creation was answered */
    k->stage = STAGE_DELETING;
    if (!k->jobs) { /* nothing was made */
        k->jobs_synced = k->pods_synced = true;
        finish_if_nothing_is_left(k);
        return;
    }
    k->call = api_delete(k->api, &jobs, k->name, &how, on_deleted, k);
}

static void kill_pods(struct kubeflow *k) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = k->namespace };

    for (uint32_t rank = 0; rank < k->gang.n_tasks; rank++) {
        const struct task_pod *task = &k->tasks[rank];
        const struct api_delete how = { .propagation = API_DELETE_BACKGROUND,
                                        .uid = task->pod.uid };

        if (task->is_there)
            api_delete(k->api, &pods, task->pod.name, &how, ignore, NULL);
    }
}

/* ---- the backend ---- */

static int launch(struct backend *backend, const struct gang *gang, struct error *err) {
    struct kubeflow *k = (struct kubeflow *)backend;
    const struct timeval soon = { .tv_sec = LOOK_EVERY_MS / 1000 };

    (void)err;
    k->gang = *gang;
    k->tasks = calloc(gang->n_tasks, sizeof *k->tasks);
    if (!k->tasks)
        abort();
    for (uint32_t rank = 0; rank < gang->n_tasks; rank++)
        k->tasks[rank].kubeflow = k;
    k->launched_us = clock_monotonic_us();
    cursors_open(&k->cursors, k->facts->logs);
    evtimer_add(&k->look_event, &soon);
    if (k->facts->was_submitted)
        begin_watching(k);
    else
        k->call = api_discover(k->api, "kubeflow.org", on_kinds, k);
    return 0;
}

static void stop(struct backend *backend, enum stop_manner manner, uint32_t grace_ms) {
    struct kubeflow *k = (struct kubeflow *)backend;

    (void)grace_ms; /* the pods have it from their manifest */
    k->is_stopping = true;
    if (k->stage == STAGE_ASKING) {
        api_cancel(k->call);
        k->call = NULL;
    }
    begin_delete(k);
    if (manner == STOP_AT_ONCE && !k->is_killing) {
        k->is_killing = true;
        kill_pods(k);
    }
}

static void kubeflow_free(struct backend *backend) {
    struct kubeflow *k = (struct kubeflow *)backend;

    for (uint32_t rank = 0; k->tasks && rank < k->gang.n_tasks; rank++) {
        follower_free(k->tasks[rank].follower);
        arena_release(&k->tasks[rank].texts);
    }
    event_del(&k->look_event);
    event_del(&k->gone_event);
    watch_free(k->jobs);
    watch_free(k->pods);
    api_free(k->api);
    cursors_close(&k->cursors);
    free(k->tasks);
    arena_release(&k->arena);
    free(k);
}

static const struct backend_ops ops = {
    .name = "kubeflow", .launch = launch, .stop = stop, .free = kubeflow_free
};

/* Where a run goes: what the command line says, else the settings, else the context. */
static int open_api(const struct kubeflow_options *options, struct event_base *base,
                    struct api **out, struct error *err) {
    const struct kubernetes_settings *settings = &options->settings->kubernetes;
    const struct kubeconfig_request request = {
        .file = options->kubeconfig ? options->kubeconfig : settings->kubeconfig,
        .context = options->context ? options->context : settings->context,
        .namespace = options->namespace ? options->namespace : settings->namespace,
    };
    struct kubeconfig config;

    if (kubeconfig_find(&request, &config, err))
        return -1;
    return api_new(base, &config, &(struct api_options){ 0 }, out, err);
}

int kubeflow_make(void *context, struct event_base *base, const struct attempt_facts *facts,
                  struct backend **out, struct error *err) {
    const struct kubeflow_options *options = context;
    struct kubeflow *k;
    struct api *api;

    if (open_api(options, base, &api, err))
        return -1;
    k = calloc(1, sizeof *k);
    if (!k)
        abort();
    k->backend.ops = &ops;
    k->options = options;
    k->facts = facts;
    k->base = base;
    k->api = api;
    k->kind = kubeflow_kind_of(options->plan);
    assert(k->kind); /* what has none was refused with its place */
    k->namespace = api_namespace(api);
    k->version = strrchr(k->kind->api_version, '/') + 1;
    k->cursors.fd = -1;
    manifest_name(&(struct manifest_run){ .uuid = facts->uuid, .attempt = facts->number }, k->name);
    evtimer_assign(&k->look_event, base, on_look, k);
    evtimer_assign(&k->gone_event, base, on_gone, k);
    *out = &k->backend;
    return 0;
}
