/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who places the pods of a gang together: whoever the settings name, by what its row has the pods
 * say of their gang; else we do, by a gate of our own. A pod that is alone is no gang: it says
 * nothing, and waits for nobody.
 */
#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "manifest/build.h"

enum { MARKS_MOST = 3 };

/* What a pod says of its gang. */
enum mark_value {
    MARK_GANG,  /* the name of the gang */
    MARK_COUNT, /* how many pods it has */
    MARK_NO,
};

struct mark {
    const char *key; /* NULL: there are no more */
    enum { MARK_LABEL, MARK_ANNOTATION } kind;
    enum mark_value value;
};

static const struct placer {
    const char *name;        /* `gang` of the settings */
    const char *api_version; /* of the PodGroup that it looks at; NULL: it needs none */
    struct mark marks[MARKS_MOST + 1];
} placers[] = {
    { "kueue",
      NULL,
      {
          /* Kueue takes the pods together, and waits until it has seen all of them. */
          { "kueue.x-k8s.io/pod-group-name", MARK_LABEL, MARK_GANG },
          { "kueue.x-k8s.io/pod-group-total-count", MARK_ANNOTATION, MARK_COUNT },
          /* Else it keeps pods that failed, by a finalizer, for others that take their place. */
          { "kueue.x-k8s.io/retriable-in-group", MARK_ANNOTATION, MARK_NO },
      } },
    { "coscheduling",
      "scheduling.x-k8s.io/v1alpha1",
      { { "scheduling.x-k8s.io/pod-group", MARK_LABEL, MARK_GANG } } },
    { "volcano",
      "scheduling.volcano.sh/v1beta1",
      { { "scheduling.k8s.io/group-name", MARK_ANNOTATION, MARK_GANG } } },
};
static const struct placer *const kueue = &placers[0];

/* NULL: the scheduler looks at each pod for itself. */
static const struct placer *placer_of(const struct build *build) {
    if (build->plan->n_tasks == 1)
        return NULL;
    if (build->cluster->queue)
        return kueue;
    for (size_t i = 0; build->cluster->gang && i < ARRAY_LEN(placers); i++)
        if (strcmp(placers[i].name, build->cluster->gang) == 0)
            return &placers[i];
    return NULL;
}

bool gang_is_ours(const struct build *build) {
    return build->plan->n_tasks > 1 && !placer_of(build);
}

const char *gang_group_version(const struct build *build) {
    const struct placer *placer = placer_of(build);

    return placer ? placer->api_version : NULL;
}

static const char *mark_text(struct build *build, enum mark_value value) {
    switch (value) {
    case MARK_GANG: return build->out->name;
    case MARK_COUNT: return arena_printf(build->arena, "%" PRIu32, build->plan->n_tasks);
    case MARK_NO: break;
    }
    return "false";
}

void gang_mark(struct build *build, struct tree *labels, struct tree *annotations) {
    const struct placer *placer = placer_of(build);

    tree_text(labels, KUEUE_QUEUE, build->cluster->queue);
    for (size_t i = 0; placer && placer->marks[i].key; i++) {
        const struct mark *mark = &placer->marks[i];

        tree_text(mark->kind == MARK_LABEL ? labels : annotations, mark->key,
                  mark_text(build, mark->value));
    }
}

bool gang_is_mark(const char *key) {
    for (size_t i = 0; i < ARRAY_LEN(placers); i++)
        for (size_t k = 0; placers[i].marks[k].key; k++)
            if (strcmp(placers[i].marks[k].key, key) == 0)
                return true;
    return strcmp(key, KUEUE_QUEUE) == 0;
}

bool manifest_has_placer(const struct node *metadata) {
    static const char *const members[] = { "labels", "annotations" };

    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct node *map = node_get(metadata, members[i]);

        for (uint32_t k = 0; map && map->kind == NODE_MAP && k < map->count; k++)
            if (gang_is_mark(map->members[k].key))
                return true;
    }
    return false;
}

void gang_gate(struct build *build, struct tree *spec) {
    struct tree gates = tree_list(build->arena), gate = tree_map(build->arena);

    if (!build->out->is_gated)
        return;
    tree_text(&gate, "name", MANIFEST_GATE);
    tree_add(&gates, tree_node(&gate));
    tree_put(spec, "schedulingGates", tree_node(&gates));
}

/* ---- what Kueue does not take ---- */

/* What Kueue tells apart: it reserves for pods of one shape together. */
static bool has_shape_of(const struct profile *one, const struct profile *other) {
    static const enum attribute shape[] = { ATTRIBUTE_NODE_SELECTOR, ATTRIBUTE_AFFINITY,
                                            ATTRIBUTE_TOLERATIONS };

    for (enum resource i = 0; i < RESOURCE_COUNT; i++)
        if (one->resources.of[i].requests != other->resources.of[i].requests ||
            one->resources.of[i].limits != other->resources.of[i].limits)
            return false;
    for (size_t i = 0; i < ARRAY_LEN(shape); i++)
        if (one->given[shape[i]] != other->given[shape[i]])
            return false;
    return true;
}

void gang_note(struct build *build) {
    enum { SHAPES_MOST = 8 };
    const struct profile *shapes[SHAPES_MOST];
    size_t n = 0;

    for (uint32_t rank = 0; placer_of(build) == kueue && rank < build->plan->n_tasks; rank++) {
        const struct profile *profile = build->plan->tasks[rank].profile;
        size_t i = 0;

        while (i < n && !has_shape_of(shapes[i], profile))
            i++;
        if (i == SHAPES_MOST) {
            build_note(build,
                       "these pods ask for more than 8 different sets of resources and places, "
                       "and many versions of Kueue never admit such a gang");
            return;
        }
        if (i == n)
            shapes[n++] = profile;
    }
}
