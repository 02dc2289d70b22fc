/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest.h"

static const char *label_of(const struct node *object, const char *key) {
    return node_get_text(node_get(node_get(object, "metadata"), "labels"), key, NULL);
}

static bool is_text(const char *text, const char *expected) {
    return text && strcmp(text, expected) == 0;
}

bool job_is_over(const struct node *job, char *why, size_t size) {
    const struct node *conditions = node_get(node_get(job, "status"), "conditions");

    for (uint32_t i = 0; conditions && conditions->kind == NODE_LIST && i < conditions->count;
         i++) {
        const struct node *condition = &conditions->items[i];
        const char *type = node_get_text(condition, "type", NULL);
        const char *message = node_get_text(condition, "message", NULL);

        if ((is_text(type, "Failed") || is_text(type, "Succeeded")) &&
            is_text(node_get_text(condition, "status", NULL), "True")) {
            snprintf(why, size, "%s", message && *message ? message : type);
            return true;
        }
    }
    return false;
}

bool job_is_of_run(const struct node *object, const char *uuid) {
    return is_text(label_of(object, MANIFEST_LABEL_RUN), uuid);
}

static bool read_index(const char *text, uint32_t *out) {
    unsigned long number;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    number = strtoul(text, &end, 10);
    if (*end || errno || number > UINT32_MAX)
        return false;
    *out = (uint32_t)number;
    return true;
}

bool job_task_of_pod(const struct node *pod, enum role *role, uint32_t *index) {
    const char *named = label_of(pod, MANIFEST_LABEL_ROLE);
    const char *name = node_get_text(node_get(pod, "metadata"), "name", NULL);
    const char *dash = name ? strrchr(name, '-') : NULL;
    bool is_known = false;

    for (enum role i = 0; named && i < ROLE_COUNT; i++)
        if (strcmp(role_name(i), named) == 0) {
            *role = i;
            is_known = true;
        }
    if (!is_known)
        return false;
    *index = 0;
    if (*role == ROLE_MASTER)
        return true; /* there is one, whatever the operator appends to its name */
    return read_index(label_of(pod, MANIFEST_LABEL_INDEX), index) ||
           read_index(label_of(pod, KUBEFLOW_LABEL_INDEX), index) ||
           read_index(dash ? dash + 1 : NULL, index);
}
