/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: what a polyaxonfile comes to. Every task of the gang with its role, rank
 * and resources, and what all of them share. No dialect of the file is left in it, and
 * nothing of a machine is in it yet: hosts, ports and paths are facts of a run
 * (plan/environment.h).
 *
 * Invariants:
 *   1. tasks are in rank order: rank i is tasks[i]; roles follow each other in the order
 *      of enum role, indexes within a role count from 0.
 *   2. tasks with equal profiles may share one; a profile is never NULL.
 *   3. totals are the sums over all tasks.
 */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include "codec/node.h"
#include "model/framework.h"
#include "model/resources.h"

enum backend_kind { BACKEND_NATIVE, BACKEND_KUBEFLOW, BACKEND_MPI, BACKEND_OTHER, BACKEND_COUNT };
const char *backend_kind_name(enum backend_kind kind);

/* What a task may be given besides resources. Up to the tolerations each task has its own, as its
 * resources; the others are of the experiment, unless a role or an index says otherwise. */
enum attribute {
    ATTRIBUTE_LABELS,
    ATTRIBUTE_ANNOTATIONS,
    ATTRIBUTE_NODE_SELECTOR,
    ATTRIBUTE_AFFINITY,
    ATTRIBUTE_TOLERATIONS,
    ATTRIBUTE_SERVICE_ACCOUNT,
    ATTRIBUTE_IMAGE_PULL_SECRETS,
    ATTRIBUTE_SECRET_REFS,
    ATTRIBUTE_CONFIG_MAP_REFS,
    ATTRIBUTE_DATA_REFS,
    ATTRIBUTE_ARTIFACT_REFS,
    ATTRIBUTE_COUNT,
};
const char *attribute_name(enum attribute attribute);
static inline bool attribute_is_shared(enum attribute attribute) {
    return attribute > ATTRIBUTE_TOLERATIONS;
}

/* What may differ from task to task. Nodes are NULL where the file says nothing. */
struct profile {
    struct resources resources;
    const struct node *resources_at; /* where the file gives them; decides nothing */
    const struct node *given[ATTRIBUTE_COUNT];
};

struct task {
    enum role role;
    uint32_t index; /* within the role */
    const struct profile *profile;
};

/* The container image that the file asks for. Only a cluster needs one. */
struct image {
    const char *name;     /* NULL: the file names none */
    const char *obstacle; /* the field that asks for an image to be made first, or NULL */
    struct place place;   /* of the obstacle, else of the name */
};

/* Runs whose outputs this one reads: lists of numbers and names; NULL: none. */
struct earlier_runs {
    const struct node *jobs, *experiments;
};

enum command_manner {
    COMMAND_NONE,   /* the file names none: it can be checked and planned, not run */
    COMMAND_DIRECT, /* executed as it is, words split at blanks */
    COMMAND_SHELL,  /* given to a shell */
};

struct plan {
    struct arena arena; /* holds all that is below */

    const char *name;            /* of the experiment, or NULL */
    enum framework framework;    /* NONE when there is no topology */
    const char *framework_label; /* as the file gives it, also without topology; or NULL */
    enum backend_kind backend;
    const char *log_level; /* INFO unless said */

    enum command_manner command_manner;
    const char *command; /* one line of text, or NULL */

    const struct node *params; /* a map, or NULL */
    const struct node *tags;   /* a list of texts, or NULL */
    uint32_t max_restarts;
    struct earlier_runs earlier;
    bool has_build; /* the file says how to get an image */
    struct image image;
    struct place backend_place; /* of `backend`, where the file gives it; else of length 0 */

    struct task *tasks;
    uint32_t n_tasks;
    uint32_t n_role[ROLE_COUNT];
    struct resources totals;
};

void plan_free(struct plan *plan);
DEFINE_AUTO_PTR(plan)

/* "worker.2": how people and prefixes name a task. */
struct task_name {
    char text[24];
};
struct task_name task_name(const struct task *task);

/* How many CPUs of its own a task gets where it is a process of a machine; 0: it is not pinned. */
uint32_t plan_pinned(const struct plan *plan, uint32_t rank);

/* The rank of role.index, or -1. */
int64_t plan_find_task(const struct plan *plan, enum role role, uint32_t index);

/* The rank of a task named "worker.2", "worker-2", "master", "7" (a rank); -1 if there is none. */
int64_t plan_find_named(const struct plan *plan, const char *name);

#endif
