/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/inquiry.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/kubernetes/api.h"
#include "backend/kubernetes/job.h"
#include "backend/kubernetes/pod.h"
#include "base/clock.h"
#include "base/descriptors.h"

struct inquiring {
    struct event_base *loop;
    struct inquiry *out;
    uint32_t n_open;
    enum pod_trouble told; /* what kind out->trouble is of */
    struct error trouble;  /* of the pods; ERROR_NONE: they were listed */
};

static void on_pod(void *context, const struct node *object) {
    struct inquiring *inquiring = context;
    struct inquiry *out = inquiring->out;
    struct pod pod;
    enum role role;
    uint32_t index;

    pod_read(object, NULL, &pod);
    out->n_pods++;
    out->has_placer |= manifest_has_placer(node_get(object, "metadata"));
    if (!out->gate[0])
        snprintf(out->gate, sizeof out->gate, "%s", pod.gate);
    if (pod.is_gated)
        out->n_gated++;
    else if (pod.phase == POD_WAITING)
        out->n_unplaced++;
    else if (pod.phase == POD_RUNNING)
        out->n_running++;
    else if (pod.phase == POD_ENDED)
        out->n_ended++;
    else
        out->n_placed++;
    if (pod.trouble == POD_FINE || pod.trouble == POD_GATED ||
        !pod_tells_more(pod.trouble, inquiring->told))
        return;
    inquiring->told = pod.trouble;
    if (job_task_of_pod(object, &role, &index))
        snprintf(out->troubled, sizeof out->troubled, "%s.%" PRIu32, role_name(role), index);
    else
        snprintf(out->troubled, sizeof out->troubled, "%.70s", pod.name);
    snprintf(out->trouble, sizeof out->trouble, "%s", pod.sentence);
}

static void close_one(struct inquiring *inquiring) {
    if (--inquiring->n_open == 0)
        event_base_loopbreak(inquiring->loop);
}

static void on_pods(void *context, const struct api_answer *answer) {
    struct inquiring *inquiring = context;

    inquiring->trouble = answer->err;
    close_one(inquiring);
}

/* Who may not read it, or has none, is told nothing of the turn. */
static void on_lease(void *context, const struct api_answer *answer) {
    struct inquiring *inquiring = context;

    if (answer->err.code == ERROR_NONE || answer->err.code == ERROR_NOT_FOUND)
        lease_see(&inquiring->out->turn, answer->object, clock_monotonic_us());
    close_one(inquiring);
}

static void ask(struct api *api, const char *uuid, uint32_t attempt, struct inquiring *inquiring) {
    const char *namespace = api_namespace(api);
    const struct api_resource pods = { .version = "v1", .plural = "pods", .namespace = namespace };
    const struct api_resource leases = {
        .group = "coordination.k8s.io", .version = "v1", .plural = "leases", .namespace = namespace
    };
    const struct timeval most = clock_timeval(INQUIRY_MOST_MS);
    char labels[160];

    snprintf(labels, sizeof labels, MANIFEST_LABEL_RUN "=%.64s," MANIFEST_LABEL_ATTEMPT "=%" PRIu32,
             uuid, attempt);
    error_set(&inquiring->trouble, ERROR_UNAVAILABLE, "the cluster did not answer in %d seconds",
              INQUIRY_MOST_MS / 1000);
    inquiring->n_open = 2;
    api_list(api, &pods, &(struct api_selector){ .labels = labels }, on_pod, on_pods, inquiring);
    api_get(api, &leases, LEASE_NAME, on_lease, inquiring);
    event_base_loopexit(inquiring->loop, &most);
    event_base_dispatch(inquiring->loop);
}

int pods_inquire(const struct pods_options *options, const char *uuid, uint32_t attempt,
                 struct inquiry *out, struct error *err) {
    const struct kubeconfig_request request = pods_way_in(options);
    const struct api_options hasty = { .connect_ms = 3000, .deadline_ms = 5000, .tries = 2 };
    struct inquiring inquiring = { .out = out };
    char identity[LEASE_IDENTITY_MAX];
    struct kubeconfig config;
    struct api *api;
    int status = -1;

    if (descriptors_check(DESCRIPTORS_OF_LOOP, err) || kubeconfig_find(&request, &config, err))
        return -1;
    *out = (struct inquiry){ 0 };
    inquiring.loop = event_base_new();
    if (!inquiring.loop)
        abort();
    if (api_new(inquiring.loop, &config, &hasty, &api, err) == 0) {
        ask(api, uuid, attempt, &inquiring);
        api_free(api);
        lease_identity(uuid, attempt, identity);
        out->is_ours = strcmp(out->turn.holder, identity) == 0;
        status = inquiring.trouble.code == ERROR_NONE ? 0 : -1;
        if (status)
            *err = inquiring.trouble;
    }
    event_base_free(inquiring.loop);
    return status;
}
