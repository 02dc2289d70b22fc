/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of our own: first the ConfigMap that owns the rest, then the Service by which they find each
 * other, then the pods, some at a time.
 *
 * The first pod that the cluster does not take ends the making: the gang cannot run without it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/kubernetes/gang.h"

enum {
    IN_FLIGHT_MAX = 16, /* requests at once: more of them only wait in the server's queues */
    FIRST_POD = 2,      /* of the manifest's objects: behind the ConfigMap and the Service */
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
    uint32_t next; /* rank */
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
        api_create(g->api, &pods, &making->manifest->objects[FIRST_POD + request->rank],
                   on_pod_made, request);
    }
    if (making->n_in_flight > 0)
        return;
    release(g);
    gang_made(g);
}

/* ---- what they need ---- */

static void on_service_made(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct error err;

    g->call = NULL;
    if (gang_check_made(g, "Service", answer, &err))
        gang_refuse(g, OWNER_REMAINS, err.message);
    else
        make_pods(g->making);
}

static const char *uid_of(const struct node *object) {
    const struct node *uid = node_get(node_get(object, "metadata"), "uid");

    return uid && uid->kind == NODE_TEXT ? uid->text : "";
}

/* The rest names its owner, and is made anew for it. */
static void on_owner_made(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    const struct api_resource services = core(g, "services");
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
    assert(making->manifest->n_objects == FIRST_POD + g->gang.n_tasks);
    g->call = api_create(g->api, &services, &making->manifest->objects[1], on_service_made, g);
}

static int make(struct pod_gang *g, struct error *err) {
    AUTO_PTR(manifest) manifest = gang_manifest(g, NULL, NULL, err);
    struct making *making;

    if (!manifest)
        return -1;
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
