/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *backend_kind_name(enum backend_kind kind) {
    static const char *const names[] = { "native", "kubeflow", "mpi", "other" };

    static_assert(ARRAY_LEN(names) == BACKEND_COUNT, "every backend has a name");
    return names[kind];
}

const char *attribute_name(enum attribute attribute) {
    static const char *const names[] = {
        [ATTRIBUTE_LABELS] = "labels",
        [ATTRIBUTE_ANNOTATIONS] = "annotations",
        [ATTRIBUTE_NODE_SELECTOR] = "node_selector",
        [ATTRIBUTE_AFFINITY] = "affinity",
        [ATTRIBUTE_TOLERATIONS] = "tolerations",
        [ATTRIBUTE_SERVICE_ACCOUNT] = "service_account",
        [ATTRIBUTE_IMAGE_PULL_SECRETS] = "image_pull_secrets",
        [ATTRIBUTE_SECRET_REFS] = "secret_refs",
        [ATTRIBUTE_CONFIG_MAP_REFS] = "config_map_refs",
        [ATTRIBUTE_DATA_REFS] = "data_refs",
        [ATTRIBUTE_ARTIFACT_REFS] = "artifact_refs",
    };

    static_assert(ARRAY_LEN(names) == ATTRIBUTE_COUNT, "every attribute has a name");
    return names[attribute];
}

void plan_free(struct plan *plan) {
    if (!plan)
        return;
    arena_release(&plan->arena);
    free(plan);
}

struct task_name task_name(const struct task *task) {
    struct task_name name;

    snprintf(name.text, sizeof name.text, "%s.%u", role_name(task->role), task->index);
    return name;
}

uint32_t plan_pinned(const struct plan *plan, uint32_t rank) {
    return plan->backend == BACKEND_NATIVE ? resources_pinned(&plan->tasks[rank].profile->resources)
                                           : 0;
}

int64_t plan_find_task(const struct plan *plan, enum role role, uint32_t index) {
    uint32_t first = 0;

    if (index >= plan->n_role[role])
        return -1;
    for (enum role r = 0; r < role; r++)
        first += plan->n_role[r];
    return first + index;
}

static bool read_count(const char *text, uint32_t *out) {
    unsigned long value;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || *end || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

int64_t plan_find_named(const struct plan *plan, const char *name) {
    uint32_t number;

    if (read_count(name, &number))
        return number < plan->n_tasks ? (int64_t)number : -1;
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        size_t n = strlen(role_name(role));

        if (strncmp(name, role_name(role), n) != 0)
            continue;
        if (name[n] == '\0')
            return plan->n_role[role] == 1 ? plan_find_task(plan, role, 0) : -1;
        if ((name[n] == '.' || name[n] == '-') && read_count(name + n + 1, &number))
            return plan_find_task(plan, role, number);
    }
    return -1;
}
