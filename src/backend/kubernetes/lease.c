/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "manifest/manifest.h"
#include "manifest/tree.h"

enum { US_PER_S = 1000000, US_PER_MS = 1000 };

void lease_identity(const char *uuid, uint32_t attempt, char out[static LEASE_IDENTITY_MAX]) {
    snprintf(out, LEASE_IDENTITY_MAX, "%.40s-%" PRIu32, uuid, attempt);
}

/* ---- reading ---- */

static int64_t number_of(const struct node *map, const char *key, int64_t least, int64_t most,
                         int64_t otherwise) {
    const struct node *node = node_get(map, key);

    return node && node->kind == NODE_INT && node->integer >= least && node->integer <= most
               ? node->integer
               : otherwise;
}

/* A text that does not fit is cut: a holder that is longer than ours is none of ours. */
#define KEEP(field, text) snprintf(field, sizeof(field), "%s", text)

void lease_see(struct lease *lease, const struct node *object, int64_t now_us) {
    const struct node *metadata = node_get(object, "metadata"), *spec = node_get(object, "spec");
    const struct node *notes = node_get(metadata, "annotations");
    const bool exists = object && object->kind == NODE_MAP;
    const char *version = node_get_text(metadata, "resourceVersion", "");
    int64_t taken_us = 0;

    /* What is the same did not change: a list that is read again does not lengthen anybody's. */
    if (lease->is_known && lease->exists == exists && strcmp(lease->version, version) == 0)
        return;
    *lease = (struct lease){ .is_known = true, .exists = exists, .changed_us = now_us };
    if (!exists)
        return;
    KEEP(lease->version, version);
    KEEP(lease->holder, node_get_text(spec, "holderIdentity", ""));
    KEEP(lease->run, node_get_text(notes, LEASE_RUN_ANNOTATION, ""));
    KEEP(lease->who, node_get_text(notes, LEASE_WHO_ANNOTATION, ""));
    lease->duration_us = US_PER_S * number_of(spec, "leaseDurationSeconds", 1, LEASE_DURATION_MOST,
                                              LEASE_DURATION_S);
    lease->transitions = number_of(spec, "leaseTransitions", 0, INT32_MAX - 1, 0);
    if (time_read(node_get_text(spec, "acquireTime", ""), &taken_us))
        lease->taken_us = taken_us;
}

/* ---- deciding ---- */

enum lease_move lease_decide(const struct lease *lease, const char *identity, int64_t now_us,
                             int64_t *until_us) {
    *until_us = lease->changed_us + lease->duration_us;
    if (!lease->is_known)
        return LEASE_WAIT;
    if (!lease->exists || !lease->holder[0] || strcmp(lease->holder, identity) == 0)
        return LEASE_TAKE;
    return now_us >= *until_us ? LEASE_TAKE : LEASE_WAIT;
}

bool lease_is_held(int64_t renewed_us, int64_t now_us) {
    return renewed_us > 0 && now_us - renewed_us < (int64_t)LEASE_HELD_MS * US_PER_MS;
}

uint32_t lease_delay_ms(int64_t waited_us, uint32_t chance) {
    uint32_t steps = LEASE_STEPS;

    for (int64_t s = waited_us / US_PER_S; s > 0 && steps > 0; s /= 2)
        steps--;
    return steps * LEASE_STEP_MS + chance % LEASE_STEP_MS;
}

uint32_t lease_backoff_ms(uint32_t n_times, uint32_t chance) {
    uint32_t wait_ms = LEASE_BACKOFF_FIRST_MS;

    for (uint32_t i = 1; i < n_times && wait_ms < LEASE_BACKOFF_MOST_MS; i++)
        wait_ms *= 2;
    if (wait_ms > LEASE_BACKOFF_MOST_MS)
        wait_ms = LEASE_BACKOFF_MOST_MS;
    return wait_ms / 2 + chance % (wait_ms / 2 + 1);
}

/* ---- writing ---- */

static struct node object_of(const struct lease *lease, const struct lease_writer *writer,
                             const struct tree *notes, const struct tree *spec,
                             struct arena *arena) {
    struct tree object = tree_map(arena), metadata = tree_map(arena), labels = tree_map(arena);

    tree_text(&labels, MANIFEST_LABEL_MANAGED, "myelin");
    tree_text(&metadata, "name", LEASE_NAME);
    tree_text(&metadata, "namespace", writer->namespace);
    if (lease->exists)
        tree_text(&metadata, "resourceVersion",
                  arena_text(arena, lease->version, strlen(lease->version)));
    tree_put(&metadata, "labels", tree_node(&labels));
    tree_filled(&metadata, "annotations", notes);
    tree_text(&object, "apiVersion", "coordination.k8s.io/v1");
    tree_text(&object, "kind", "Lease");
    tree_put(&object, "metadata", tree_node(&metadata));
    tree_put(&object, "spec", tree_node(spec));
    return tree_node(&object);
}

static const char *moment(struct arena *arena, int64_t us) {
    return arena_printf(arena, "%s", time_text(us, TIME_MICROSECONDS).text);
}

struct node lease_taken(const struct lease *lease, const struct lease_writer *writer,
                        struct arena *arena) {
    const bool is_ours = lease->exists && strcmp(lease->holder, writer->identity) == 0;
    struct tree notes = tree_map(arena), spec = tree_map(arena);

    tree_text(&notes, LEASE_RUN_ANNOTATION, writer->run);
    tree_text(&notes, LEASE_WHO_ANNOTATION, writer->who);
    tree_text(&spec, "holderIdentity", writer->identity);
    tree_int(&spec, "leaseDurationSeconds", LEASE_DURATION_S);
    tree_text(&spec, "acquireTime",
              moment(arena, is_ours && lease->taken_us ? lease->taken_us : writer->wall_us));
    tree_text(&spec, "renewTime", moment(arena, writer->wall_us));
    tree_int(&spec, "leaseTransitions", lease->transitions + !is_ours);
    return object_of(lease, writer, &notes, &spec, arena);
}

/* No holder at all: an empty name is one that some versions of Kubernetes do not take. */
struct node lease_given_back(const struct lease *lease, const struct lease_writer *writer,
                             struct arena *arena) {
    struct tree notes = tree_map(arena), spec = tree_map(arena);

    tree_text(&spec, "renewTime", moment(arena, writer->wall_us));
    tree_int(&spec, "leaseTransitions", lease->transitions);
    return object_of(lease, writer, &notes, &spec, arena);
}
