/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as JSON. */
#include "plan/plan.h"

static void write_amount(struct json *json, const char *key, milli amount) {
    if (amount != ABSENT)
        json_milli(json, key, amount);
}

static void write_resources(struct json *json, const struct resources *resources) {
    json_object(json);
    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        const struct resource_range *range = &resources->of[i];

        if (range->requests == ABSENT && range->limits == ABSENT)
            continue;
        json_key(json, resource_name(i));
        json_object(json);
        write_amount(json, "requests", range->requests);
        write_amount(json, "limits", range->limits);
        json_end(json);
    }
    json_end(json);
}

void plan_write_task_name(const struct task *task, uint32_t rank, struct json *json) {
    json_key(json, "name");
    json_text(json, task_name(task).text);
    json_key(json, "role");
    json_text(json, role_name(task->role));
    json_key(json, "index");
    json_int(json, task->index);
    json_key(json, "rank");
    json_int(json, rank);
}

/* The members of a task, inside an object that the caller has opened. */
static void write_task(const struct plan *plan, uint32_t rank, struct json *json) {
    const struct task *task = &plan->tasks[rank];

    plan_write_task_name(task, rank, json);
    json_key(json, "resources");
    write_resources(json, &task->profile->resources);
    if (plan_pinned(plan, rank) > 0) {
        json_key(json, "pinned_cpus");
        json_int(json, plan_pinned(plan, rank));
    }
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
        if (task->profile->given[i]) {
            json_key(json, attribute_name(i));
            json_node(json, task->profile->given[i]);
        }
}

void plan_write_task_json(const struct plan *plan, uint32_t rank, struct json *json) {
    json_object(json);
    write_task(plan, rank, json);
    json_end(json);
}

static void write_counts(struct json *json, const struct plan *plan) {
    json_object(json);
    for (enum role role = 0; role < ROLE_COUNT; role++)
        if (plan->n_role[role] > 0) {
            json_key(json, role_name(role));
            json_int(json, plan->n_role[role]);
        }
    json_end(json);
}

void plan_write_json(const struct plan *plan, struct json *json) {
    json_object(json);
    json_key(json, "name");
    json_text(json, plan->name);
    json_key(json, "framework");
    json_text(json, plan->framework_label);
    json_key(json, "backend");
    json_text(json, backend_kind_name(plan->backend));
    json_key(json, "log_level");
    json_text(json, plan->log_level);
    json_key(json, "command");
    json_text(json, plan->command);
    json_key(json, "shell");
    json_bool(json, plan->command_manner == COMMAND_SHELL);
    json_key(json, "params");
    json_node(json, plan->params);
    json_key(json, "tags");
    json_node(json, plan->tags);
    json_key(json, "max_restarts");
    json_int(json, plan->max_restarts);
    json_key(json, "counts");
    write_counts(json, plan);
    json_key(json, "totals");
    write_resources(json, &plan->totals);
    json_key(json, "tasks");
    json_array(json);
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        plan_write_task_json(plan, rank, json);
    json_end(json);
    json_end(json);
}
