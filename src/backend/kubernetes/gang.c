/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/gang.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/job.h"
#include "backend/kubernetes/turn.h"
#include "base/clock.h"

enum {
    LOOK_EVERY_MS = 1000,
    OVER_PATIENCE_MS = 5 * 1000, /* with pods of an owner that is over, until they say so */
    KILL_PATIENCE_MS = 5 * 1000, /* with a cluster that does not answer who wants an end at once */
    FIND_OUT_MS = 3 * 1000,      /* for shims to say which tasks have ended */
    SLEPT_MS = 10 * 1000,        /* between two looks: we were stopped, or the machine slept */
};

static const struct pods_form *const forms[] = { &pods_kubeflow, &pods_native };

const struct pods_form *pods_form_of(enum manifest_target target) {
    return target == MANIFEST_KUBEFLOW ? &pods_kubeflow : &pods_native;
}

const struct pods_form *pods_form_named(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (strcmp(forms[i]->name, name) == 0)
            return forms[i];
    return NULL;
}

const char *pods_form_name(const struct pods_form *form) {
    return form->name;
}

enum manifest_target pods_form_target(const struct pods_form *form) {
    return form->target;
}

/* ---- the clock ---- */

static void look_at_clock(struct pod_gang *g) {
    char sentence[SENTENCE_MOST];

    if (g->options->timeout_ms >= 0 && !g->facts->was_submitted && !g->is_stopping &&
        gang_is_past(g->launched_us, g->options->timeout_ms) && !tasks_all_started(g)) {
        snprintf(sentence, sizeof sentence, "not all tasks run after %gs (--timeout)%s%.300s",
                 (double)g->options->timeout_ms / 1000, g->waits[0] ? ": " : "", g->waits);
        tasks_end_all(g, sentence);
    }
}

static void look_at_owner(struct pod_gang *g) {
    const bool is_gone = g->owners_synced && !g->is_owner_there && g->stage == STAGE_WATCHING;

    if (is_gone && !g->is_stopping && g->pods_synced) {
        if (g->over_us == 0)
            g->over_us = clock_monotonic_us();
        snprintf(g->owner_says, sizeof g->owner_says, "somebody deleted the %s %s", g->owner_kind,
                 g->name);
    }
    if (!g->is_stopping && gang_is_past(g->over_us, OVER_PATIENCE_MS) && !tasks_any_untold(g))
        tasks_end_without_pods(g, g->owner_says);
}

static void finish_if_nothing_is_left(struct pod_gang *g) {
    if (g->stage != STAGE_DELETING || g->call || !g->owners_synced || !g->pods_synced ||
        g->is_owner_there || tasks_any_there(g) || !turn_is_over(g->turn))
        return;
    tasks_tell_ends(g);
    if (tasks_any_untold(g) || (g->killed_us == 0 && gang_pull_any_bringing(g)))
        return; /* the last of its log, or of its outputs, is still on the way */
    tasks_end_all(g, g->last_words[0] ? g->last_words : "its pod was never made");
    gang_pull_finish(g);
    g->stage = STAGE_GONE;
    event_active(&g->gone_event, EV_TIMEOUT, 0);
}

static void tell_left(struct pod_gang *g, const char *why) {
    char sentence[SENTENCE_MOST + 160];

    snprintf(sentence, sizeof sentence,
             "%.400s; 'kubectl --namespace %s delete %s%s%s %s' removes what is left of it", why,
             g->namespace, g->owner.plural, g->owner.group ? "." : "",
             g->owner.group ? g->owner.group : "", g->name);
    g->gang.left(g->gang.context, LEFT_RUNNING, sentence);
}

/* Nobody will say any more when they are gone. */
static void give_up_watching(struct pod_gang *g, const char *why) {
    snprintf(g->last_words, sizeof g->last_words, "%.400s", why);
    g->owners_synced = g->pods_synced = true;
    g->is_owner_there = false;
    tasks_forget_pods(g);
    turn_abandon(g->turn);
    tell_left(g, why);
}

/* Who wants it ended at once does not wait for a cluster that nobody reaches, or that does not say
 * a word to what it is asked. */
static void look_at_kill(struct pod_gang *g) {
    const bool is_asked = g->call || g->stage == STAGE_MAKING;

    if ((g->stage != STAGE_MAKING && g->stage != STAGE_DELETING) ||
        !gang_is_past(g->killed_us, KILL_PATIENCE_MS * (g->is_cut_off ? 1 : 2)) ||
        !(g->is_cut_off || is_asked))
        return;
    api_cancel(g->call);
    g->call = NULL;
    g->stage = STAGE_DELETING;
    give_up_watching(g, "the cluster could not be reached: nobody knows what became of it");
}

/* What is known is as old as the sleep was long: the watches say what has happened, and nobody
 * loses patience meanwhile. */
static void look_at_sleep(struct pod_gang *g) {
    const int64_t now_us = clock_monotonic_us(), slept_us = now_us - g->looked_us;
    int64_t *const since[] = { &g->over_us, &g->killed_us };

    g->looked_us = now_us;
    if (slept_us < SLEPT_MS * 1000ll)
        return;
    g->launched_us += slept_us;
    for (size_t i = 0; i < ARRAY_LEN(since); i++)
        if (*since[i] > 0)
            *since[i] = now_us;
    tasks_wake(g, now_us);
    if (g->owners)
        watch_wake(g->owners);
    if (g->pods)
        watch_wake(g->pods);
}

static void look(struct pod_gang *g) {
    const struct timeval again = clock_timeval(LOOK_EVERY_MS);

    if (g->stage == STAGE_GONE)
        return;
    evtimer_add(&g->look_event, &again);
    look_at_sleep(g);
    if (g->stage == STAGE_WATCHING && !g->is_stopping) {
        tasks_look(g);
        look_at_owner(g);
        turn_look(g->turn);
    }
    if (g->stage == STAGE_DELETING || g->is_stopping)
        tasks_give_up_lost(g);
    look_at_clock(g);
    look_at_kill(g);
    tasks_tell_ends(g);
    gang_go_on(g);
}

static void on_look(evutil_socket_t fd, short what, void *context) {
    (void)fd, (void)what;
    look(context);
}

static void on_gone(evutil_socket_t fd, short what, void *context) {
    struct pod_gang *g = context;

    (void)fd, (void)what;
    evtimer_del(&g->look_event);
    g->gang.gone(g->gang.context);
}

/* ---- the watches ---- */

static void on_pod(void *context, const struct watch_event *event) {
    struct pod_gang *g = context;

    g->is_cut_off = false;
    tasks_see(g, event);
    turn_look(g->turn);
}

static void on_pods_synced(void *context) {
    struct pod_gang *g = context;

    if (!g->pods_synced && g->form->pods_are_made_once)
        tasks_miss(g);
    g->pods_synced = true;
    g->is_cut_off = false;
    look(g);
}

static void on_owner(void *context, const struct watch_event *event) {
    struct pod_gang *g = context;
    char why[SENTENCE_MOST];

    g->is_owner_there = event->kind != WATCH_DELETED;
    if (!g->is_owner_there && !g->is_stopping)
        snprintf(g->owner_says, sizeof g->owner_says, "somebody deleted the %s %s", g->owner_kind,
                 g->name);
    if (g->is_owner_there && g->over_us == 0 && g->form->is_over &&
        g->form->is_over(event->object, why, sizeof why)) {
        g->over_us = clock_monotonic_us();
        snprintf(g->owner_says, sizeof g->owner_says, "the %s has ended: %.300s", g->owner_kind,
                 why);
    }
    finish_if_nothing_is_left(g);
}

static void on_owners_synced(void *context) {
    struct pod_gang *g = context;

    g->owners_synced = true;
    look(g);
}

void gang_tell_trouble(struct pod_gang *g, const struct error *err) {
    const bool have_begun = g->stage == STAGE_WATCHING && !g->is_held;
    char sentence[SENTENCE_MOST + 64];

    if (g->is_cut_off)
        return;
    g->is_cut_off = true;
    snprintf(sentence, sizeof sentence, "the cluster cannot be asked (%.300s); %s", err->message,
             have_begun ? "the tasks go on" : "it is asked again until it answers");
    g->gang.notice(g->gang.context, sentence);
}

static void on_trouble(void *context, const struct error *err) {
    gang_tell_trouble(context, err);
}

struct api_call *gang_insist(struct pod_gang *g, struct api_call *call) {
    api_insist(call, on_trouble, g);
    return call;
}

static void on_watch_failed(void *context, const struct error *err) {
    struct pod_gang *g = context;
    char sentence[SENTENCE_MOST];

    snprintf(sentence, sizeof sentence, "the cluster does not show its pods: %.400s", err->message);
    give_up_watching(g, sentence);
    tasks_end_all(g, sentence);
}

static void begin_watching(struct pod_gang *g) {
    const struct api_resource pods = { .version = "v1",
                                       .plural = "pods",
                                       .namespace = g->namespace };
    const struct watch_observer of_owners = { on_owner, on_owners_synced, on_trouble,
                                              on_watch_failed, g };
    const struct watch_observer of_pods = { on_pod, on_pods_synced, on_trouble, on_watch_failed,
                                            g };
    char labels[160], fields[80];

    g->stage = STAGE_WATCHING;
    g->is_cut_off = false;
    if (g->pods)
        return; /* its pods were made again */
    snprintf(labels, sizeof labels, MANIFEST_LABEL_RUN "=%s," MANIFEST_LABEL_ATTEMPT "=%" PRIu32,
             g->facts->uuid, g->facts->number);
    snprintf(fields, sizeof fields, "metadata.name=%s", g->name);
    g->owners =
        watch_new(g->api, &g->owner, &(struct api_selector){ .fields = fields }, &of_owners);
    g->pods = watch_new(g->api, &pods, &(struct api_selector){ .labels = labels }, &of_pods);
}

/* ---- what is made ---- */

int gang_check_made(const struct pod_gang *g, const char *kind, const struct api_answer *answer,
                    struct error *err) {
    if (answer->err.code != ERROR_NONE || !answer->object)
        return error_set(err, ERROR_INVALID, "the cluster does not take the %s: %.380s", kind,
                         answer->err.message);
    if (answer->existed && !job_is_of_run(answer->object, g->facts->uuid))
        return error_set(err, ERROR_CONFLICT, "the cluster has a %s %s of somebody else", kind,
                         node_get_text(node_get(answer->object, "metadata"), "name", g->name));
    return 0;
}

void gang_made(struct pod_gang *g) {
    if (g->stage >= STAGE_DELETING)
        return; /* a kill did not wait for it */
    g->is_held = false;
    turn_stop(g->turn);
    g->gang.submitted(g->gang.context);
    begin_watching(g);
    if (g->is_stopping || g->n_ended == g->gang.n_tasks)
        gang_delete(g);
}

void gang_take_turn(struct pod_gang *g) {
    if (g->stage >= STAGE_DELETING)
        return; /* a kill did not wait for it */
    begin_watching(g);
    turn_begin(g);
    if (g->is_stopping || g->n_ended == g->gang.n_tasks)
        gang_delete(g);
}

void gang_placed(struct pod_gang *g) {
    g->is_held = false;
    g->gang.submitted(g->gang.context);
    tasks_let_go(g);
}

void gang_refuse(struct pod_gang *g, enum gang_remains remains, const char *sentence) {
    char why[SENTENCE_MOST];

    if (remains == OWNER_REMAINS)
        gang_made(g);
    else
        g->stage = STAGE_ASKING; /* there is nothing to look for */
    if (remains == NOBODY_KNOWS) {
        snprintf(why, sizeof why, "nobody knows whether the cluster has made the %s %s",
                 g->owner_kind, g->name);
        tell_left(g, why);
    }
    tasks_end_all(g, sentence);
}

/* The first mistake, as a sentence. */
static void say_mistake(const struct diags *diags, struct error *err) {
    const struct diag *diag = diags->len ? &diags->list[0] : NULL;

    error_set(err, ERROR_INVALID, "%s%s%s", diag ? diag->message : "it cannot be expressed",
              diag && diag->help ? "; " : "", diag && diag->help ? diag->help : "");
}

struct manifest *gang_manifest(const struct pod_gang *g, const char *const *apis,
                               const char *owner_uid, struct error *err) {
    const struct manifest_input input = {
        .plan = g->options->plan,
        .settings = g->options->settings,
        .target = g->form->target,
        .run = { .id = g->facts->run_id,
                 .uuid = g->facts->uuid,
                 .attempt = g->facts->number,
                 .grace_s = (g->facts->grace_ms + 999) / 1000,
                 .owner = g->facts->owner,
                 .project = "default",
                 .outputs_of = g->options->outputs_of,
                 .owner_uid = owner_uid,
                 .shim_key = g->shim_key[0] ? g->shim_key : NULL },
        .image = g->options->image,
        .namespace = g->namespace,
        .has_no_shim = !g->shim_key[0],
        .is_shim_unasked = g->is_shim_denied,
        .apis = apis,
    };
    AUTO_PTR(diags) diags = diags_new();
    struct manifest *manifest = manifest_build(&input, diags);

    if (!manifest)
        say_mistake(diags, err);
    return manifest;
}

/* ---- the end ---- */

static void on_deleted(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    char sentence[SENTENCE_MOST + 64];

    g->call = NULL;
    if (answer->err.code != ERROR_NONE && answer->err.code != ERROR_NOT_FOUND) {
        snprintf(sentence, sizeof sentence, "the %s %s could not be deleted: %.300s", g->owner_kind,
                 g->name, answer->err.message);
        give_up_watching(g, sentence);
    } else {
        g->is_cut_off = false; /* it has answered */
    }
    finish_if_nothing_is_left(g);
}

/* Who takes a gang over has to hear from its shims first whose outputs are on their way. */
static bool is_finding_out(const struct pod_gang *g) {
    return g->facts->was_submitted && g->gather && g->n_ended < g->gang.n_tasks &&
           !gang_is_past(g->launched_us, FIND_OUT_MS);
}

/* Deleting the owner deletes its pods; they get their grace time. */
void gang_delete(struct pod_gang *g) {
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND, .grace_s = -1 };

    turn_stop(g->turn);
    if (g->stage >= STAGE_DELETING || g->stage == STAGE_MAKING)
        return; /* it is, or will be once its creation was answered */
    if (g->killed_us == 0 && is_finding_out(g))
        return; /* the next look goes on with it */
    if (g->killed_us == 0 && gang_pull_any_bringing(g)) {
        tasks_stop(g);
        return;
    }
    g->stage = STAGE_DELETING;
    if (!g->owners) { /* nothing was made */
        g->owners_synced = g->pods_synced = true;
        finish_if_nothing_is_left(g);
        return;
    }
    g->call = gang_insist(g, api_delete(g->api, &g->owner, g->name, &how, on_deleted, g));
    kueue_let_go(g);
}

void gang_go_on(struct pod_gang *g) {
    if (g->stage == STAGE_WATCHING && (g->is_stopping || g->n_ended == g->gang.n_tasks))
        gang_delete(g);
    finish_if_nothing_is_left(g);
}

/* ---- the backend ---- */

static int launch(struct backend *backend, const struct gang *gang, struct error *err) {
    struct pod_gang *g = (struct pod_gang *)backend;
    const struct timeval soon = clock_timeval(LOOK_EVERY_MS);

    g->gang = *gang;
    tasks_init(g);
    g->launched_us = g->looked_us = clock_monotonic_us();
    g->has_past = cursors_open(&g->cursors, g->facts->logs, CURSORS_API) == CURSORS_OF_BEFORE ||
                  g->facts->was_submitted;
    /* Who follows a process that was let in waits where that one would. */
    if (g->has_past || g->facts->number > 0)
        api_was_let_in(g->api);
    if (g->facts->was_submitted) {
        struct error none;

        if (shim_key_read(g->facts->logs, g->shim_key, &none))
            g->shim_key[0] = '\0';
        gang_pull_open(g);
        begin_watching(g);
    } else if (g->form->make(g, err)) {
        return -1;
    }
    evtimer_add(&g->look_event, &soon);
    return 0;
}

static void stop(struct backend *backend, enum stop_manner manner, uint32_t grace_ms) {
    struct pod_gang *g = (struct pod_gang *)backend;

    (void)grace_ms; /* the pods have it from their manifest */
    g->is_stopping = true;
    if (g->stage == STAGE_ASKING) {
        api_cancel(g->call);
        g->call = NULL;
        if (g->has_past)
            begin_watching(g); /* we have made nothing, but who was here before us may have */
    }
    if (manner == STOP_AT_ONCE && g->killed_us == 0) {
        g->killed_us = clock_monotonic_us();
        gang_delete(g);
        tasks_kill(g);
        return;
    }
    gang_delete(g);
}

static void gang_free(struct backend *backend) {
    struct pod_gang *g = (struct pod_gang *)backend;

    if (g->form->release)
        g->form->release(g);
    turn_free(g->turn);
    tasks_release(g);
    event_del(&g->look_event);
    event_del(&g->gone_event);
    watch_free(g->owners);
    watch_free(g->pods);
    api_free(g->api);
    cursors_close(&g->cursors);
    gang_pull_close(g);
    arena_release(&g->arena);
    free(g);
}

static const struct backend_ops ops = {
    .name = "pods", .launch = launch, .stop = stop, .free = gang_free
};

struct kubeconfig_request pods_way_in(const struct pods_options *options) {
    const struct kubernetes_settings *settings = &options->settings->kubernetes;

    return (struct kubeconfig_request){
        .file = options->kubeconfig ? options->kubeconfig : settings->kubeconfig,
        .context = options->context ? options->context : settings->context,
        .namespace = options->namespace ? options->namespace : settings->namespace,
    };
}

static int open_api(const struct pods_options *options, struct event_base *base, struct api **out,
                    struct error *err) {
    const struct kubeconfig_request request = pods_way_in(options);
    struct kubeconfig config;

    if (kubeconfig_find(&request, &config, err))
        return -1;
    return api_new(base, &config, &(struct api_options){ 0 }, out, err);
}

int pods_make(void *context, struct event_base *base, const struct attempt_facts *facts,
              struct backend **out, struct error *err) {
    const struct pods_options *options = context;
    struct pod_gang *g;
    struct api *api;

    if (open_api(options, base, &api, err))
        return -1;
    g = calloc(1, sizeof *g);
    if (!g)
        abort();
    g->backend.ops = &ops;
    g->form = options->form;
    g->options = options;
    g->facts = facts;
    g->api = api;
    g->namespace = api_namespace(api);
    g->form->prepare(g);
    g->cursors.fd = g->positions.fd = -1;
    manifest_name(&(struct manifest_run){ .uuid = facts->uuid, .attempt = facts->number }, g->name);
    evtimer_assign(&g->look_event, base, on_look, g);
    evtimer_assign(&g->gone_event, base, on_gone, g);
    *out = &g->backend;
    return 0;
}
