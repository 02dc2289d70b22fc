/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kueue keeps the pods of a group by a finalizer until all of them have ended, or until its own
 * account of them, the Workload of their name, is deleted. Pods that it did not admit, or whose
 * node is lost, do not end: with the owner of the pods their Workload is deleted.
 *
 * Nobody waits for the answers. Without the right to delete it the cluster's own garbage collection
 * ends pods that never had a node, within a minute; one of a lost node then stays for its node.
 */
#include "backend/kubernetes/gang.h"

#define KUEUE_GROUP "kueue.x-k8s.io"

static void on_deleted(void *context, const struct api_answer *answer) {
    (void)context, (void)answer;
}

static void on_kinds(void *context, const struct error *err, const struct api_kind *kinds,
                     size_t n) {
    const struct api_delete how = { .propagation = API_DELETE_BACKGROUND, .grace_s = -1 };
    struct pod_gang *g = context;
    const struct api_kind *workload =
        err->code == ERROR_NONE ? api_kind_find(kinds, n, "Workload", NULL) : NULL;

    if (!workload)
        return;
    api_delete(g->api,
               &(struct api_resource){ .group = KUEUE_GROUP,
                                       .version = workload->version,
                                       .plural = workload->plural,
                                       .namespace = g->namespace },
               g->name, &how, on_deleted, g);
}

void kueue_let_go(struct pod_gang *g) {
    const bool is_group = g->form->target == MANIFEST_NATIVE && g->gang.n_tasks > 1;

    if (is_group && g->options->settings->kubernetes.queue)
        api_discover(g->api, KUEUE_GROUP, on_kinds, g);
}
