/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of our own: whether their shims may be asked is asked first. Then come the ConfigMap that
 * owns the rest, then the one with the shim, then the Service by which they find each other, then
 * what a gang scheduler knows them by, then the pods, some at a time.
 *
 * The first pod that the cluster does not take ends the making: the gang cannot run without it. A
 * cluster that does not answer has not said so: it is asked on, unless it never let anybody in.
 *
 * Pods that were taken back (turn.h) are made again by the same names. One of before that is still
 * going, as whoever takes a run over may find it, is waited for.
 */
#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/gang.h"
#include "base/clock.h"
#include "codec/json_read.h"

enum {
    IN_FLIGHT_MAX = 16, /* requests at once: more of them only wait in the server's queues */
    GOING_MS = 500,     /* until the name of a pod that is going is tried again */
    REVIEW_MOST = 64 << 10,
};

struct making;

/* One that the cluster was asked for and did not answer yet. */
struct request {
    struct making *making; /* NULL: it is free */
    uint32_t rank;
};

struct making {
    struct pod_gang *gang;
    struct manifest *manifest;
    struct request requests[IN_FLIGHT_MAX];
    uint32_t n_in_flight;
    struct buf review;  /* what the cluster says of our rights */
    size_t next_object; /* of those before the pods */
    uint32_t next;      /* rank */
    bool was_refused;
    bool has_no_gates; /* the cluster made a pod without the gate that it was given */
    bool has_going;    /* some names are not free yet */
    struct event going_event;
};

static struct api_resource core(const struct pod_gang *g, const char *plural) {
    return (struct api_resource){ .version = "v1", .plural = plural, .namespace = g->namespace };
}

static void prepare(struct pod_gang *g) {
    g->owner = core(g, "configmaps");
    g->owner_kind = "ConfigMap";
    g->container = "task";
}

static void release(struct pod_gang *g) {
    struct making *making = g->making;

    if (!making)
        return;
    event_del(&making->going_event);
    manifest_free(making->manifest);
    buf_release(&making->review);
    free(making);
    g->making = NULL;
}

/* ---- the pods ---- */

static void make_pods(struct making *making);

static bool is_going(const struct node *pod) {
    return node_get(node_get(pod, "metadata"), "deletionTimestamp") != NULL;
}

/* An old cluster drops what it does not know. */
static bool lacks_gate(const struct making *making, const struct api_answer *answer) {
    return making->manifest->is_gated && !answer->existed &&
           !node_get(node_get(answer->object, "spec"), "schedulingGates");
}

static void on_pod_made(void *context, const struct api_answer *answer) {
    struct request *request = context;
    struct making *making = request->making;
    struct pod_gang *g = making->gang;
    struct error err;

    request->making = NULL;
    making->n_in_flight--;
    if (gang_check_made(g, "Pod", answer, &err)) {
        making->was_refused = true;
        tasks_refuse(g, request->rank, err.message);
    } else if (answer->existed && is_going(answer->object)) {
        making->has_going = true;
    } else {
        making->has_no_gates |= lacks_gate(making, answer);
        g->tasks[request->rank].was_made = true;
    }
    make_pods(making);
}

static struct request *free_request(struct making *making) {
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++)
        if (!making->requests[i].making)
            return &making->requests[i];
    return NULL;
}

/* The pods are the last of the manifest's objects. */
static size_t first_pod(const struct making *making) {
    return making->manifest->n_objects - making->gang->gang.n_tasks;
}

static void on_name_free(evutil_socket_t fd, short what, void *context) {
    struct making *making = context;

    (void)fd, (void)what;
    making->has_going = false;
    making->next = 0;
    make_pods(making);
}

/* All were asked for: they wait for their turn, or go on as they are. */
static void finish(struct making *making) {
    static const char no_gates[] =
        "this cluster has no scheduling gates (Kubernetes before 1.27): nothing places the tasks "
        "together, and gangs that find half of their room each wait for each other";
    const struct timeval soon = clock_timeval(GOING_MS);
    struct pod_gang *g = making->gang;
    const bool is_whole = !making->was_refused && !g->is_stopping;
    const bool takes_turn = is_whole && making->manifest->is_gated && !making->has_no_gates;

    if (is_whole && making->has_going) {
        evtimer_add(&making->going_event, &soon);
        return;
    }
    if (making->has_no_gates)
        g->gang.notice(g->gang.context, no_gates);
    release(g);
    if (takes_turn)
        gang_take_turn(g);
    else
        gang_made(g);
}

static void make_pods(struct making *making) {
    struct pod_gang *g = making->gang;
    const struct api_resource pods = core(g, "pods");
    struct request *request;

    for (; !making->was_refused && !g->is_stopping && making->next < g->gang.n_tasks;
         making->next++) {
        if (g->tasks[making->next].was_made)
            continue;
        request = free_request(making);
        if (!request)
            return;
        *request = (struct request){ making, making->next };
        making->n_in_flight++;
        gang_insist(g, api_create(g->api, &pods,
                                  &making->manifest->objects[first_pod(making) + request->rank],
                                  on_pod_made, request));
    }
    if (making->n_in_flight == 0)
        finish(making);
}

/* ---- what they need ---- */

static const struct {
    const char *kind, *plural;
} kinds[] = { { "ConfigMap", "configmaps" },
              { "Service", "services" },
              { "PodGroup", "podgroups" } };

/* Where objects of that kind and version are. */
static struct api_resource resource_of(struct pod_gang *g, const char *plural,
                                       const struct node *object) {
    const char *version = node_get(object, "apiVersion")->text, *slash = strchr(version, '/');
    struct api_resource resource = core(g, plural);

    if (slash) {
        resource.group = arena_text(&g->arena, version, (size_t)(slash - version));
        resource.version = slash + 1;
    }
    return resource;
}

static const char *kind_of(const struct node *object) {
    return node_get(object, "kind")->text;
}

static void make_next(struct pod_gang *g);

static void on_object_made(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct making *making = g->making;
    const char *kind = kind_of(&making->manifest->objects[making->next_object++]);
    struct error err;

    g->call = NULL;
    if (gang_check_made(g, kind, answer, &err))
        gang_refuse(g, OWNER_REMAINS, err.message);
    else
        make_next(g);
}

/* What the pods need, one after the other, then the pods. */
static void make_next(struct pod_gang *g) {
    struct making *making = g->making;
    const struct node *object = &making->manifest->objects[making->next_object];

    if (making->next_object == first_pod(making)) {
        make_pods(making);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct api_resource resource = resource_of(g, kinds[i].plural, object);

        if (strcmp(kinds[i].kind, kind_of(object)) == 0)
            g->call = gang_insist(g, api_create(g->api, &resource, object, on_object_made, g));
    }
    assert(g->call);
}

static const char *uid_of(const struct node *object) {
    return node_get_text(node_get(object, "metadata"), "uid", "");
}

/* The rest names its owner, and is made anew for it. */
static void on_owner_made(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct making *making = g->making;
    struct error err;

    g->call = NULL;
    if (gang_check_made(g, g->owner_kind, answer, &err)) {
        gang_refuse(g, answer->is_unknown ? NOBODY_KNOWS : NOTHING_REMAINS, err.message);
        return;
    }
    g->owner_uid = arena_printf(&g->arena, "%s", uid_of(answer->object));
    making->manifest = gang_manifest(g, NULL, g->owner_uid, &err);
    if (!making->manifest) {
        gang_refuse(g, OWNER_REMAINS, err.message);
        return;
    }
    assert(making->manifest->n_objects > g->gang.n_tasks);
    making->next_object = 1;
    make_next(g);
}

static struct making *making_new(struct pod_gang *g) {
    struct making *making = calloc(1, sizeof *making);

    if (!making)
        abort();
    making->gang = g;
    making->review = (struct buf)BUF_INIT(REVIEW_MOST);
    evtimer_assign(&making->going_event, api_loop(g->api), on_name_free, making);
    g->making = making;
    return making;
}

static void make_again(struct pod_gang *g) {
    struct making *making = making_new(g);
    struct error err;

    g->stage = STAGE_MAKING;
    making->manifest = gang_manifest(g, NULL, g->owner_uid, &err);
    if (making->manifest)
        make_pods(making);
    else
        gang_refuse(g, OWNER_REMAINS, err.message);
}

static int begin(struct pod_gang *g, struct error *err) {
    AUTO_PTR(manifest) manifest = gang_manifest(g, NULL, NULL, err);

    if (!manifest)
        return -1;
    g->is_held = manifest->is_gated;
    gang_pull_open(g);
    g->stage = STAGE_MAKING;
    g->call =
        gang_insist(g, api_create(g->api, &g->owner, &manifest->objects[0], on_owner_made, g));
    return 0;
}

/* ---- may the shims be asked? ---- */

static bool on_review_bytes(void *context, const char *bytes, size_t n) {
    struct making *making = ((struct pod_gang *)context)->making;
    struct error err;

    return buf_append(&making->review, bytes, n, &err) == 0;
}

/* Whether the cluster says that we may not. One that does not say so is taken at its best. */
static bool is_denied(const struct buf *review) {
    struct arena arena = ARENA_INIT;
    struct error err;
    struct node root;
    const struct node *allowed = NULL;
    bool denied = false;

    if (json_read(review->data, review->len, &arena, &root, &err) == 0)
        allowed = node_get(node_get(&root, "status"), "allowed");
    denied = allowed && allowed->kind == NODE_BOOL && !allowed->truth;
    arena_release(&arena);
    return denied;
}

/* Pods whose shim nobody may ask get none, unless the tasks themselves need it to meet: then it
 * waits for nobody. */
static void on_reviewed(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct making *making = g->making;
    struct error err;

    g->call = NULL;
    if (answer->err.code == ERROR_NONE && is_denied(&making->review)) {
        g->is_shim_denied = g->options->plan->framework == FRAMEWORK_HOROVOD;
        if (!g->is_shim_denied) {
            g->shim_key[0] = '\0';
            shim_key_remove(g->facts->logs);
        }
        gang_pull_tell_unreachable(g, "the right to create pods/proxy is missing");
    }
    if (begin(g, &err))
        gang_refuse(g, NOTHING_REMAINS, err.message);
}

static void review(struct pod_gang *g) {
    const struct api_sink sink = { .bytes = on_review_bytes, .done = on_reviewed, .context = g };
    AUTO(buf) body = BUF_INIT(REVIEW_MOST);
    struct error err;

    if (buf_printf(&body, &err,
                   "{\"apiVersion\": \"authorization.k8s.io/v1\", \"kind\": "
                   "\"SelfSubjectAccessReview\", \"spec\": {\"resourceAttributes\": "
                   "{\"namespace\": \"%s\", \"verb\": \"create\", \"resource\": \"pods\", "
                   "\"subresource\": \"proxy\"}}}",
                   g->namespace))
        buf_clear(&body);
    g->call = api_post(
        g->api,
        &(struct api_post){ .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                            .type = "application/json",
                            .body = body.data,
                            .body_len = body.len },
        &sink);
}

static int make(struct pod_gang *g, struct error *err) {
    const bool wants_shim =
        manifest_wants_shim(g->options->plan, &g->options->settings->kubernetes);

    if (wants_shim && shim_key_make(g->facts->logs, g->shim_key, err))
        return -1;
    making_new(g);
    if (!wants_shim)
        return begin(g, err);
    review(g);
    return 0;
}

const struct pods_form pods_native = {
    .name = "native",
    .target = MANIFEST_NATIVE,
    .prepare = prepare,
    .make = make,
    .make_again = make_again,
    .pods_are_made_once = true,
    .release = release,
};
