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
    .spool_path = "<run.spool>",
    .attempt = "<run.attempt>",
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
        environment->items =
            reallocarray(environment->items, environment->capacity, sizeof *environment->items);
        if (!environment->items)
            abort();
    }
    environment->items[environment->len++] = item;
    environment->items[environment->len] = NULL;
}

void environment_set(struct environment *environment, const char *name, const char *value) {
    append(environment, arena_printf(&environment->arena, "%s=%s", name, value));
}

/* ---- setting variables ---- */

/* Where variables go to: to the shared ones, or to one task's. */
struct target {
    const struct plan *plan;
    const struct run_facts *facts;
    const struct task *task; /* NULL: all of them */
    uint32_t rank;
    struct environment *out;
    struct error *err;
    bool failed;
};

static void set(struct target *to, const char *name, const char *value) {
    size_t n = strlen(name) + 1 + strlen(value);

    if (to->failed)
        return;
    if (n > ENVIRONMENT_STRING_MAX) {
        error_set(to->err, ERROR_EXHAUSTED,
                  "%s of %s would have %zu bytes; the system takes at most %d", name,
                  to->task ? task_name(to->task).text : "all tasks", n, ENVIRONMENT_STRING_MAX);
        to->failed = true;
        return;
    }
    append(to->out, arena_printf(&to->out->arena, "%s=%s", name, value));
}

static void set_number(struct target *to, const char *name, int64_t value) {
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    set(to, name, text);
}

enum { HOST_MAX = 256 };

static void set_host(struct target *to, const char *name, uint32_t rank) {
    char text[HOST_MAX];

    to->facts->host(to->facts, to->plan, rank, text, sizeof text);
    set(to, name, text);
}

static void set_port(struct target *to, const char *name, uint32_t rank) {
    char text[HOST_MAX];

    to->facts->port(to->facts, to->plan, rank, text, sizeof text);
    set(to, name, text);
}

/* JSON as Python's json.dumps writes it; NULL, with the error set, when it is too long. */
static const char *render(struct target *to, void (*write)(const struct target *, struct json *)) {
    AUTO(buf) text = BUF_INIT(4 * ENVIRONMENT_STRING_MAX);
    struct json json;

    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    write(to, &json);
    if (json_finish(&json, to->err)) {
        to->failed = true;
        return NULL;
    }
    return arena_text(&to->out->arena, text.data, text.len);
}

static void set_json(struct target *to, const char *name,
                     void (*write)(const struct target *, struct json *)) {
    const char *text;

    if (to->failed)
        return;
    text = render(to, write);
    if (text)
        set(to, name, text);
    else
        error_wrap(to->err, "%s", name);
}

/* {"master": ["host:port"], "worker": [...]}. */
static void write_cluster(const struct target *to, struct json *json,
                          const char *(*name)(const struct target *, enum role), bool with_empty) {
    const struct framework_facts *facts = framework_facts(to->plan->framework);
    char text[2 * HOST_MAX];
    uint32_t rank = 0;

    json_object(json);
    for (enum role role = 0; role < ROLE_COUNT; role++) {
        uint32_t n = to->plan->n_role[role];

        if (n == 0 && (!with_empty || !facts->role_names[role] || role == ROLE_MASTER))
            continue;
        json_key(json, name(to, role));
        json_array(json);
        for (uint32_t i = 0; i < n; i++, rank++) {
            size_t len;

            to->facts->host(to->facts, to->plan, rank, text, HOST_MAX);
            len = strlen(text);
            text[len++] = ':';
            to->facts->port(to->facts, to->plan, rank, text + len, HOST_MAX);
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

/* ---- outputs of earlier runs ---- */

static int write_paths(struct json *json, const char *kind, const struct node *runs,
                       earlier_path *path, void *context, struct error *err) {
    int status = 0;

    if (!runs)
        return 0;
    json_key(json, kind);
    json_array(json);
    for (uint32_t i = 0; i < runs->count && status == 0; i++) {
        const struct node *run = &runs->items[i];
        char number[24];
        const char *found;

        snprintf(number, sizeof number, "%" PRId64, run->kind == NODE_INT ? run->integer : 0);
        status = path(context, run->kind == NODE_INT ? number : run->text, &found, err);
        if (status == 0)
            json_text(json, found);
    }
    json_end(json);
    return status;
}

int earlier_outputs_write(const struct earlier_runs *earlier, earlier_path *path, void *context,
                          struct buf *out, struct error *err) {
    struct error ignored;
    struct json json;
    bool failed;

    json_init(&json, JSON_COMPACT, json_to_buf, out);
    json_object(&json);
    failed = write_paths(&json, "jobs", earlier->jobs, path, context, err) ||
             write_paths(&json, "experiments", earlier->experiments, path, context, err);
    json_end(&json);
    return json_finish(&json, failed ? &ignored : err) || failed ? -1 : 0;
}

static int symbolic_path(void *context, const char *run, const char **out, struct error *err) {
    (void)err;
    *out = arena_printf(context, "<run.%s.outputs>", run);
    return 0;
}

static void share_earlier(struct target *to) {
    static const char name[] = "POLYAXON_REFS_OUTPUTS_PATHS";
    const struct earlier_runs *earlier = &to->plan->earlier;
    AUTO(buf) text = BUF_INIT(4 * ENVIRONMENT_STRING_MAX);

    if (!earlier->jobs && !earlier->experiments)
        return;
    if (to->facts->earlier_outputs)
        set(to, name, to->facts->earlier_outputs);
    else if (earlier_outputs_write(earlier, symbolic_path, &to->out->arena, &text, to->err))
        to->failed = true;
    else
        set(to, name, text.data);
}

/* ---- what the original gave its tasks ---- */

static const char *original_name(const struct target *to, enum role role) {
    return framework_facts(to->plan->framework)->role_names[role];
}

static void write_polyaxon_cluster(const struct target *to, struct json *json) {
    write_cluster(to, json, original_name, true);
}

static void write_task_info(const struct target *to, struct json *json) {
    write_task_name(json, original_name(to, to->task->role), to->task->index);
}

static void write_params(const struct target *to, struct json *json) {
    json_node(json, to->plan->params);
}

static void write_experiment_info(const struct target *to, struct json *json) {
    const struct run_facts *facts = to->facts;
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

static void share_polyaxon(struct target *to) {
    /* Only TensorFlow needs all addresses; the others do without when they would not fit. */
    bool fits = to->plan->framework == FRAMEWORK_TENSORFLOW || to->plan->n_tasks <= 1000;

    set(to, "POLYAXON_IS_MANAGED", "true");
    set(to, "POLYAXON_IS_OFFLINE", "true");
    set(to, "POLYAXON_API_VERSION", "v1");
    set(to, "POLYAXON_LOG_LEVEL", to->plan->log_level);
    set(to, "POLYAXON_RUN_OUTPUTS_PATH", to->facts->outputs_path);
    set(to, "POLYAXON_LOGS_PATH", to->facts->logs_path);
    if (fits)
        set_json(to, "POLYAXON_CLUSTER", write_polyaxon_cluster);
    set_json(to, "POLYAXON_PARAMS", write_params);
    set_json(to, "POLYAXON_DECLARATIONS", write_params);
    set_json(to, "POLYAXON_EXPERIMENT_INFO", write_experiment_info);
    share_earlier(to);
}

/* ---- our own ---- */

static void share_myelin(struct target *to) {
    set(to, "MYELIN_RUN_ID", to->facts->run_id);
    set(to, "MYELIN_RUN_UUID", to->facts->run_uuid);
    set(to, "MYELIN_ATTEMPT", to->facts->attempt);
    set_number(to, "MYELIN_WORLD_SIZE", to->plan->n_tasks);
    set(to, "MYELIN_OUTPUTS_PATH", to->facts->outputs_path);
    set(to, "PYTHONUNBUFFERED", "1");
}

static void set_spool(struct target *to) {
    const struct task_name name = task_name(to->task);
    AUTO(buf) path = BUF_INIT(ENVIRONMENT_STRING_MAX);
    struct error err;

    if (buf_printf(&path, &err, "%s/%s", to->facts->spool_path, name.text) == 0)
        set(to, "MYELIN_SPOOL", path.data);
}

/* How many threads a task is to use, 0: it is alone, and libraries know best. Without it every task
 * of a gang starts as many threads as the machine has CPUs, and they crowd each other out. */
static uint32_t suggested_threads(const struct target *to) {
    const milli cpu = resources_reserved(&to->task->profile->resources, RESOURCE_CPU);
    const uint32_t share = to->facts->shared_cpus / to->plan->n_tasks;

    if (cpu > 0)
        return (uint32_t)((cpu + 999) / 1000);
    if (to->facts->shared_cpus == 0 || to->plan->n_tasks == 1)
        return 0;
    return share > 0 ? share : 1;
}

static void own_common(struct target *to) {
    const uint32_t threads = suggested_threads(to);

    set(to, "MYELIN_TASK", task_name(to->task).text);
    set_spool(to);
    set(to, "MYELIN_ROLE", role_name(to->task->role));
    set_number(to, "MYELIN_INDEX", to->task->index);
    set_number(to, "MYELIN_RANK", to->rank);
    set_host(to, "MYELIN_HOST", to->rank);
    set_port(to, "MYELIN_PORT", to->rank);
    set_json(to, "POLYAXON_TASK_INFO", write_task_info);
    if (threads > 0)
        set_number(to, "OMP_NUM_THREADS", threads);
}

/* ---- per framework ---- */

static void set_nothing(struct target *to) {
    (void)to;
}

/* TensorFlow 2 calls the master `chief` and refuses `master`; TensorFlow 1 takes both. */
static const char *tensorflow_name(const struct target *to, enum role role) {
    (void)to;
    return role == ROLE_MASTER ? "chief" : role_name(role);
}

static void write_tf_cluster(const struct target *to, struct json *json) {
    write_cluster(to, json, tensorflow_name, false);
}

static void write_outputs_path(const struct target *to, struct json *json) {
    json_text(json, to->facts->outputs_path);
}

static void own_tensorflow(struct target *to, const struct wiring *wiring) {
    const char *config = arena_printf(
        &to->out->arena,
        "{\"cluster\": %s, \"task\": {\"type\": \"%s\", \"index\": %" PRIu32 "}, %s}",
        wiring->tf_cluster, tensorflow_name(to, to->task->role), to->task->index, wiring->tf_rest);

    set(to, "TF_CONFIG", config);
}

static void share_mxnet(struct target *to) {
    set_host(to, "DMLC_PS_ROOT_URI", 0);
    set_port(to, "DMLC_PS_ROOT_PORT", 0);
    set_number(to, "DMLC_NUM_WORKER", to->plan->n_role[ROLE_WORKER]);
    set_number(to, "DMLC_NUM_SERVER", to->plan->n_role[ROLE_PS]);
}

static void own_mxnet(struct target *to, const struct wiring *wiring) {
    static const char *const roles[] = { "scheduler", "worker", "server" };

    (void)wiring;
    set(to, "DMLC_ROLE", roles[to->task->role]);
    if (to->task->role == ROLE_WORKER)
        set_number(to, "DMLC_WORKER_ID", to->task->index);
    if (to->task->role == ROLE_PS)
        set_number(to, "DMLC_SERVER_ID", to->task->index);
    set_host(to, "DMLC_NODE_HOST", to->rank);
}

/* As torchrun names them; each task is a node of its own. */
static void share_pytorch(struct target *to) {
    set_host(to, "MASTER_ADDR", 0);
    set_port(to, "MASTER_PORT", 0);
    set_number(to, "WORLD_SIZE", to->plan->n_tasks);
    set(to, "LOCAL_RANK", "0");
    set(to, "LOCAL_WORLD_SIZE", "1");
    set_number(to, "GROUP_WORLD_SIZE", to->plan->n_tasks);
    set_number(to, "ROLE_WORLD_SIZE", to->plan->n_tasks);
    set(to, "ROLE_NAME", "default");
    if (to->facts->interface)
        set(to, "GLOO_SOCKET_IFNAME", to->facts->interface);
}

static void own_pytorch(struct target *to, const struct wiring *wiring) {
    (void)wiring;
    set_number(to, "RANK", to->rank);
    set_number(to, "GROUP_RANK", to->rank);
    set_number(to, "NODE_RANK", to->rank);
    set_number(to, "ROLE_RANK", to->rank);
}

/* The layout of pods: every task is a host of its own, with one slot. */
static void share_horovod(struct target *to) {
    set_number(to, "HOROVOD_SIZE", to->plan->n_tasks);
    set(to, "HOROVOD_LOCAL_RANK", "0");
    set(to, "HOROVOD_LOCAL_SIZE", "1");
    set_number(to, "HOROVOD_CROSS_SIZE", to->plan->n_tasks);
    set(to, "HOROVOD_CONTROLLER", "gloo");
    set(to, "HOROVOD_CPU_OPERATIONS", "gloo");
    set(to, "HOROVOD_GLOO_RENDEZVOUS_ADDR", to->facts->rendezvous_host);
    set(to, "HOROVOD_GLOO_RENDEZVOUS_PORT", to->facts->rendezvous_port);
    if (to->facts->interface)
        set(to, "HOROVOD_GLOO_IFACE", to->facts->interface);
}

static void own_horovod(struct target *to, const struct wiring *wiring) {
    char host[40];

    (void)wiring;
    snprintf(host, sizeof host, "%s-%" PRIu32, role_name(to->task->role), to->task->index);
    set_number(to, "HOROVOD_RANK", to->rank);
    set_number(to, "HOROVOD_CROSS_RANK", to->rank);
    set(to, "HOROVOD_HOSTNAME", host);
}

static void own_nothing(struct target *to, const struct wiring *wiring) {
    (void)to, (void)wiring;
}

static const struct {
    void (*share)(struct target *to);
    void (*own)(struct target *to, const struct wiring *wiring);
} wirings[] = {
    [FRAMEWORK_NONE] = { set_nothing, own_nothing },
    [FRAMEWORK_TENSORFLOW] = { set_nothing, own_tensorflow },
    [FRAMEWORK_MXNET] = { share_mxnet, own_mxnet },
    [FRAMEWORK_PYTORCH] = { share_pytorch, own_pytorch },
    [FRAMEWORK_HOROVOD] = { share_horovod, own_horovod },
};
static_assert(ARRAY_LEN(wirings) == FRAMEWORK_COUNT, "every framework has a wiring");

int wiring_init(struct wiring *wiring, const struct plan *plan, const struct run_facts *facts,
                struct error *err) {
    struct wiring made = { .plan = plan, .facts = facts };
    struct target to = { .plan = plan, .facts = facts, .out = &made.shared, .err = err };

    share_myelin(&to);
    wirings[plan->framework].share(&to);
    share_polyaxon(&to);
    if (plan->framework == FRAMEWORK_TENSORFLOW && !to.failed) {
        const char *outputs = render(&to, write_outputs_path);

        made.tf_cluster = render(&to, write_tf_cluster);
        made.tf_rest = arena_printf(&made.shared.arena,
                                    "\"model_dir\": %s, \"environment\": \"cloud\"", outputs);
    }
    if (to.failed) {
        environment_release(&made.shared);
        return -1;
    }
    *wiring = made;
    return 0;
}

void wiring_release(struct wiring *wiring) {
    environment_release(&wiring->shared);
    *wiring = (struct wiring){ 0 };
}

int wiring_environment(const struct wiring *wiring, uint32_t rank, struct environment *out,
                       struct error *err) {
    const struct plan *plan = wiring->plan;
    struct target to = { .plan = plan,
                         .facts = wiring->facts,
                         .task = &plan->tasks[rank],
                         .rank = rank,
                         .out = out,
                         .err = err };

    for (size_t i = 0; i < wiring->shared.len; i++)
        append(out, wiring->shared.items[i]);
    own_common(&to);
    wirings[plan->framework].own(&to, wiring);
    return to.failed ? -1 : 0;
}

int plan_environment(const struct plan *plan, uint32_t rank, const struct run_facts *facts,
                     struct environment *out, struct error *err) {
    struct wiring wiring;
    int status;

    if (wiring_init(&wiring, plan, facts, err))
        return -1;
    status = wiring_environment(&wiring, rank, out, err);
    /* The shared texts go over to the one who asked. */
    for (size_t i = 0; status == 0 && i < wiring.shared.len; i++)
        out->items[i] = arena_text(&out->arena, out->items[i], strlen(out->items[i]));
    wiring_release(&wiring);
    return status;
}
