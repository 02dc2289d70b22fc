/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/environment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"

/* ---- symbols in the place of facts ---- */

static void symbolic_host(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                          char *out, size_t size) {
    (void)facts;
    snprintf(out, size, "<%s.host>", task_name(&plan->tasks[rank]).text);
}

static void symbolic_port(const struct run_facts *facts, const struct plan *plan, uint32_t rank,
                          char *out, size_t size) {
    (void)facts;
    snprintf(out, size, "<%s.port>", task_name(&plan->tasks[rank]).text);
}

const struct run_facts facts_symbolic = {
    .run_id = "<run.id>",
    .run_uuid = "<run.uuid>",
    .owner = "<owner>",
    .project = "default",
    .outputs_path = "<run.outputs>",
    .logs_path = "<run.logs>",
    .rendezvous_host = "<rendezvous.host>",
    .rendezvous_port = "<rendezvous.port>",
    .interface = NULL,
    .host = symbolic_host,
    .port = symbolic_port,
};

/* ---- the list ---- */

void environment_release(struct environment *environment) {
    free(environment->items);
    arena_release(&environment->arena);
    *environment = (struct environment){ 0 };
}

static void append(struct environment *environment, char *item) {
    if (environment->len + 2 > environment->capacity) {
        environment->capacity = environment->capacity ? environment->capacity * 2 : 64;
        environment->items = reallocarray(environment->items, environment->capacity,
                                          sizeof *environment->items);
        if (!environment->items)
            abort();
    }
    environment->items[environment->len++] = item;
    environment->items[environment->len] = NULL;
}

/* ---- one task ---- */

/* What the variables of one task are made from. */
struct view {
    const struct plan *plan;
    const struct run_facts *facts;
    const struct task *task;
    uint32_t rank;
    struct environment *out;
    struct error *err;
    bool failed;
};

static void set(struct view *view, const char *name, const char *value) {
    char *item;

    if (view->failed)
        return;
    item = arena_printf(&view->out->arena, "%s=%s", name, value);
    if (strlen(item) > ENVIRONMENT_STRING_MAX) {
        error_set(view->err, ERROR_EXHAUSTED,
                  "%s of %s would have %zu bytes; the system takes at most %d", name,
                  task_name(view->task).text, strlen(item), ENVIRONMENT_STRING_MAX);
        view->failed = true;
        return;
    }
    append(view->out, item);
}

static void set_number(struct view *view, const char *name, int64_t value) {
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    set(view, name, text);
}

/* Variables that hold JSON are written as Python's json.dumps would. */
static void set_json(struct view *view, const char *name,
                     void (*write)(const struct view *view, struct json *json)) {
    AUTO(buf) text = BUF_INIT(4 * ENVIRONMENT_STRING_MAX);
    struct json json;

    if (view->failed)
        return;
    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    write(view, &json);
    if (json_finish(&json, view->err)) {
        error_wrap(view->err, "%s of %s", name, task_name(view->task).text);
        view->failed = true;
        return;
    }
    set(view, name, text.data);
}

enum { ADDRESS_MAX = 300 };

static void address(const struct view *view, uint32_t rank, char out[ADDRESS_MAX]) {
    size_t n;

    view->facts->host(view->facts, view->plan, rank, out, ADDRESS_MAX - 40);
    n = strlen(out);
    out[n++] = ':';
    view->facts->port(view->facts, view->plan, rank, out + n, ADDRESS_MAX - n);
}

/* {"master": ["host:port"], "worker": [...]}. */
static void write_cluster(const struct view *view, struct json *json,
                          const char *(*name)(const struct view *, enum role), bool with_empty) {
    const struct framework_facts *facts = framework_facts(view->plan->framework);
    char text[ADDRESS_MAX];
    uint32_t rank = 0;

    json_object(json);
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        uint32_t n = view->plan->n_role[role];

        if (n == 0 && (!with_empty || !facts->role_names[role] || role == ROLE_MASTER))
            continue;
        json_key(json, name(view, role));
        json_array(json);
        for (uint32_t i = 0; i < n; i++) {
            address(view, rank++, text);
            json_text(json, text);
        }
        json_end(json);
    }
    json_end(json);
}

static void write_task_name(struct json *json, const char *type, uint32_t index) {
    json_object(json);
    json_key(json, "type");
    json_text(json, type);
    json_key(json, "index");
    json_int(json, index);
    json_end(json);
}

/* ---- what the original gave its tasks ---- */

static const char *original_name(const struct view *view, enum role role) {
    return framework_facts(view->plan->framework)->role_names[role];
}

static void write_polyaxon_cluster(const struct view *view, struct json *json) {
    write_cluster(view, json, original_name, true);
}

static void write_task_info(const struct view *view, struct json *json) {
    write_task_name(json, original_name(view, view->task->role), view->task->index);
}

static void write_params(const struct view *view, struct json *json) {
    json_node(json, view->plan->params);
}

static void write_experiment_info(const struct view *view, struct json *json) {
    const struct run_facts *facts = view->facts;
    char project[600], experiment[700];

    snprintf(project, sizeof project, "%s.%s", facts->owner, facts->project);
    snprintf(experiment, sizeof experiment, "%s.%s", project, facts->run_id);
    json_object(json);
    json_key(json, "project_name");
    json_text(json, project);
    json_key(json, "experiment_group_name");
    json_null(json);
    json_key(json, "experiment_name");
    json_text(json, experiment);
    json_key(json, "experiment_uuid");
    json_text(json, facts->run_uuid);
    json_end(json);
}

static void set_polyaxon(struct view *view) {
    /* Only TensorFlow needs all addresses; the others do without when they would not fit. */
    bool fits = view->plan->framework == FRAMEWORK_TENSORFLOW || view->plan->n_tasks <= 1000;

    set(view, "POLYAXON_IS_MANAGED", "true");
    set(view, "POLYAXON_IS_OFFLINE", "true");
    set(view, "POLYAXON_API_VERSION", "v1");
    set(view, "POLYAXON_LOG_LEVEL", view->plan->log_level);
    set(view, "POLYAXON_RUN_OUTPUTS_PATH", view->facts->outputs_path);
    set(view, "POLYAXON_LOGS_PATH", view->facts->logs_path);
    if (fits)
        set_json(view, "POLYAXON_CLUSTER", write_polyaxon_cluster);
    set_json(view, "POLYAXON_TASK_INFO", write_task_info);
    set_json(view, "POLYAXON_PARAMS", write_params);
    set_json(view, "POLYAXON_DECLARATIONS", write_params);
    set_json(view, "POLYAXON_EXPERIMENT_INFO", write_experiment_info);
}

/* ---- our own ---- */

static void set_myelin(struct view *view) {
    char text[ADDRESS_MAX];

    set(view, "MYELIN_RUN_ID", view->facts->run_id);
    set(view, "MYELIN_RUN_UUID", view->facts->run_uuid);
    set(view, "MYELIN_TASK", task_name(view->task).text);
    set(view, "MYELIN_ROLE", role_name(view->task->role));
    set_number(view, "MYELIN_INDEX", view->task->index);
    set_number(view, "MYELIN_RANK", view->rank);
    set_number(view, "MYELIN_WORLD_SIZE", view->plan->n_tasks);
    view->facts->host(view->facts, view->plan, view->rank, text, sizeof text);
    set(view, "MYELIN_HOST", text);
    view->facts->port(view->facts, view->plan, view->rank, text, sizeof text);
    set(view, "MYELIN_PORT", text);
    set(view, "MYELIN_OUTPUTS_PATH", view->facts->outputs_path);
}

static void set_common(struct view *view) {
    milli cpu = resources_reserved(&view->task->profile->resources, RESOURCE_CPU);

    set(view, "PYTHONUNBUFFERED", "1");
    if (cpu > 0)
        set_number(view, "OMP_NUM_THREADS", (cpu + 999) / 1000);
}

/* ---- per framework ---- */

static void set_nothing(struct view *view) {
    (void)view;
}

/* TensorFlow 2 calls the master `chief` and refuses `master`; TensorFlow 1 takes both. */
static const char *tensorflow_name(const struct view *view, enum role role) {
    (void)view;
    return role == ROLE_MASTER ? "chief" : role_name(role);
}

static void write_tf_config(const struct view *view, struct json *json) {
    json_object(json);
    json_key(json, "cluster");
    write_cluster(view, json, tensorflow_name, false);
    json_key(json, "task");
    write_task_name(json, tensorflow_name(view, view->task->role), view->task->index);
    json_key(json, "model_dir");
    json_text(json, view->facts->outputs_path);
    json_key(json, "environment");
    json_text(json, "cloud");
    json_end(json);
}

static void set_tensorflow(struct view *view) {
    set_json(view, "TF_CONFIG", write_tf_config);
}

static void set_mxnet(struct view *view) {
    static const char *const roles[] = { "scheduler", "worker", "server" };
    char text[ADDRESS_MAX];

    set(view, "DMLC_ROLE", roles[view->task->role]);
    view->facts->host(view->facts, view->plan, 0, text, sizeof text);
    set(view, "DMLC_PS_ROOT_URI", text);
    view->facts->port(view->facts, view->plan, 0, text, sizeof text);
    set(view, "DMLC_PS_ROOT_PORT", text);
    set_number(view, "DMLC_NUM_WORKER", view->plan->n_role[ROLE_WORKER]);
    set_number(view, "DMLC_NUM_SERVER", view->plan->n_role[ROLE_PS]);
    if (view->task->role == ROLE_WORKER)
        set_number(view, "DMLC_WORKER_ID", view->task->index);
    if (view->task->role == ROLE_PS)
        set_number(view, "DMLC_SERVER_ID", view->task->index);
    view->facts->host(view->facts, view->plan, view->rank, text, sizeof text);
    set(view, "DMLC_NODE_HOST", text);
}

/* As torchrun names them; each task is a node of its own. */
static void set_pytorch(struct view *view) {
    char text[ADDRESS_MAX];

    view->facts->host(view->facts, view->plan, 0, text, sizeof text);
    set(view, "MASTER_ADDR", text);
    view->facts->port(view->facts, view->plan, 0, text, sizeof text);
    set(view, "MASTER_PORT", text);
    set_number(view, "RANK", view->rank);
    set_number(view, "WORLD_SIZE", view->plan->n_tasks);
    set(view, "LOCAL_RANK", "0");
    set(view, "LOCAL_WORLD_SIZE", "1");
    set_number(view, "GROUP_RANK", view->rank);
    set_number(view, "GROUP_WORLD_SIZE", view->plan->n_tasks);
    set_number(view, "NODE_RANK", view->rank);
    set_number(view, "ROLE_RANK", view->rank);
    set_number(view, "ROLE_WORLD_SIZE", view->plan->n_tasks);
    set(view, "ROLE_NAME", "default");
    if (view->facts->interface)
        set(view, "GLOO_SOCKET_IFNAME", view->facts->interface);
}

/* The layout of pods: every task is a host of its own, with one slot. */
static void set_horovod(struct view *view) {
    char host[40];

    snprintf(host, sizeof host, "%s-%" PRIu32, role_name(view->task->role), view->task->index);
    set_number(view, "HOROVOD_RANK", view->rank);
    set_number(view, "HOROVOD_SIZE", view->plan->n_tasks);
    set(view, "HOROVOD_LOCAL_RANK", "0");
    set(view, "HOROVOD_LOCAL_SIZE", "1");
    set_number(view, "HOROVOD_CROSS_RANK", view->rank);
    set_number(view, "HOROVOD_CROSS_SIZE", view->plan->n_tasks);
    set(view, "HOROVOD_HOSTNAME", host);
    set(view, "HOROVOD_CONTROLLER", "gloo");
    set(view, "HOROVOD_CPU_OPERATIONS", "gloo");
    set(view, "HOROVOD_GLOO_RENDEZVOUS_ADDR", view->facts->rendezvous_host);
    set(view, "HOROVOD_GLOO_RENDEZVOUS_PORT", view->facts->rendezvous_port);
    if (view->facts->interface)
        set(view, "HOROVOD_GLOO_IFACE", view->facts->interface);
}

static void (*const wirings[])(struct view *view) = {
    [FRAMEWORK_NONE] = set_nothing,      [FRAMEWORK_TENSORFLOW] = set_tensorflow,
    [FRAMEWORK_MXNET] = set_mxnet,       [FRAMEWORK_PYTORCH] = set_pytorch,
    [FRAMEWORK_HOROVOD] = set_horovod,
};
static_assert(ARRAY_LEN(wirings) == FRAMEWORK_COUNT, "every framework has a wiring");

int plan_environment(const struct plan *plan, uint32_t rank, const struct run_facts *facts,
                     struct environment *out, struct error *err) {
    struct view view = { .plan = plan, .facts = facts, .task = &plan->tasks[rank], .rank = rank,
                         .out = out, .err = err };

    set_myelin(&view);
    wirings[plan->framework](&view);
    set_polyaxon(&view);
    set_common(&view);
    return view.failed ? -1 : 0;
}
