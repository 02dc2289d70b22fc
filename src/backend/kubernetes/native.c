/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of our own: first the ConfigMap that owns the rest, then the one with the shim, then the
 * Service by which they find each other, then the pods, some at a time.
 *
 * The first pod that the cluster does not take ends the making: the gang cannot run without it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/gang.h"

enum { IN_FLIGHT_MAX = 16 }; /* requests at once: more of them only wait in the server's queues */

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
    size_t next_object; /* of those before the pods */
    size_t first_pod;   /* of the manifest's objects */
    uint32_t next;      /* rank */
    bool was_refused;
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
    manifest_free(making->manifest);
    free(making);
    g->making = NULL;
}

/* ---- the pods ---- */

static void make_pods(struct making *making);

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
    } else {
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

static void make_pods(struct making *making) {
    struct pod_gang *g = making->gang;
    const struct api_resource pods = core(g, "pods");
    struct request *request;

    while (!making->was_refused && !g->is_stopping && making->next < g->gang.n_tasks &&
           (request = free_request(making))) {
        *request = (struct request){ making, making->next++ };
        making->n_in_flight++;
        api_create(g->api, &pods, &making->manifest->objects[making->first_pod + request->rank],
                   on_pod_made, request);
    }
    if (making->n_in_flight > 0)
        return;
    release(g);
    gang_made(g);
}

/* ---- what they need ---- */

static const struct {
    const char *kind, *plural;
} kinds[] = { { "ConfigMap", "configmaps" }, { "Service", "services" } };

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

    if (making->next_object == making->first_pod) {
        make_pods(making);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const struct api_resource resource = core(g, kinds[i].plural);

        if (strcmp(kinds[i].kind, kind_of(object)) == 0)
            g->call = api_create(g->api, &resource, object, on_object_made, g);
    }
    assert(g->call);
}

static const char *uid_of(const struct node *object) {
    const struct node *uid = node_get(node_get(object, "metadata"), "uid");

    return uid && uid->kind == NODE_TEXT ? uid->text : "";
}

/* The rest names its owner, and is made anew for it. */
static void on_owner_made(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct making *making = g->making;
    struct error err;
    const char *uid;

    g->call = NULL;
    if (gang_check_made(g, g->owner_kind, answer, &err)) {
        gang_refuse(g, NOTHING_REMAINS, err.message);
        return;
    }
    uid = arena_printf(&g->arena, "%s", uid_of(answer->object));
    making->manifest = gang_manifest(g, NULL, uid, &err);
    if (!making->manifest) {
        gang_refuse(g, OWNER_REMAINS, err.message);
        return;
    }
    assert(making->manifest->n_objects > g->gang.n_tasks);
    making->first_pod = making->manifest->n_objects - g->gang.n_tasks;
    making->next_object = 1;
    make_next(g);
}

static int make(struct pod_gang *g, struct error *err) {
    AUTO_PTR(manifest) manifest = NULL;
    struct making *making;

    if (g->options->settings->kubernetes.has_shim &&
        shim_key_make(g->facts->logs, g->shim_key, err))
        return -1;
    manifest = gang_manifest(g, NULL, NULL, err);
    if (!manifest)
        return -1;
    gang_pull_open(g);
    making = calloc(1, sizeof *making);
    if (!making)
        abort();
    making->gang = g;
    g->making = making;
    g->stage = STAGE_MAKING;
    g->call = api_create(g->api, &g->owner, &manifest->objects[0], on_owner_made, g);
    return 0;
}

const struct pods_form pods_native = {
    .name = "native",
    .target = MANIFEST_NATIVE,
    .prepare = prepare,
    .make = make,
    .pods_are_made_once = true,
    .release = release,
};
