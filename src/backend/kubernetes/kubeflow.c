/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that an operator of Kubeflow's makes: the cluster is asked for its kinds, then given one
 * object, which owns the pods.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "backend/kubernetes/gang.h"
#include "backend/kubernetes/job.h"

static void prepare(struct pod_gang *g) {
    const struct kubeflow_kind *kind = kubeflow_kind_of(g->options->plan);

    assert(kind); /* what has none was refused with its place */
    g->owner = (struct api_resource){ .group = "kubeflow.org",
                                      .version = strrchr(kind->api_version, '/') + 1,
                                      .plural = kind->plural,
                                      .namespace = g->namespace };
    g->owner_kind = kind->kind;
    g->container = kind->container;
    g->master_speaks_for_all = g->options->plan->framework == FRAMEWORK_HOROVOD;
}

static void on_created(void *context, const struct api_answer *answer) {
    struct pod_gang *g = context;
    struct error err;

    g->call = NULL;
    if (gang_check_made(g, g->owner_kind, answer, &err))
        gang_refuse(g, answer->is_unknown ? NOBODY_KNOWS : NOTHING_REMAINS, err.message);
    else
        gang_made(g);
}

static void on_kinds(void *context, const struct error *err, const struct api_kind *kinds,
                     size_t n) {
    struct pod_gang *g = context;
    const char **apis = ARENA_ARRAY(&g->arena, const char *, n + 1);
    AUTO_PTR(manifest) manifest = NULL;
    struct error mistake;
    char sentence[SENTENCE_MOST];

    g->call = NULL;
    if (err->code != ERROR_NONE) {
        snprintf(sentence, sizeof sentence, "the cluster cannot be asked: %.400s", err->message);
        gang_refuse(g, NOTHING_REMAINS, sentence);
        return;
    }
    for (size_t i = 0; i < n; i++)
        apis[i] = arena_printf(&g->arena, "kubeflow.org/%s/%s", kinds[i].version, kinds[i].kind);
    manifest = gang_manifest(g, apis, NULL, &mistake);
    if (!manifest) {
        gang_refuse(g, NOTHING_REMAINS, mistake.message);
        return;
    }
    assert(manifest->n_objects == 1);
    g->stage = STAGE_MAKING;
    g->call = gang_insist(g, api_create(g->api, &g->owner, &manifest->objects[0], on_created, g));
}

static int make(struct pod_gang *g, struct error *err) {
    (void)err;
    g->call = gang_insist(g, api_discover(g->api, "kubeflow.org", on_kinds, g));
    return 0;
}

const struct pods_form pods_kubeflow = {
    .name = "kubeflow",
    .target = MANIFEST_KUBEFLOW,
    .prepare = prepare,
    .make = make,
    .is_over = job_is_over,
};
