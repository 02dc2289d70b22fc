/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods of our own: one for each task, so that each index has what the file gives it. They know
 * each other by names of a headless Service, `worker-2.<name of the run>`, which exist before a
 * pod is ready: training starts when all have found each other, not the reverse.
 *
 * The shim stands before each command, unless the settings switch it off: shim.c.
 */
#include <inttypes.h>
#include <string.h>

#include "codec/json.h"
#include "manifest/build.h"
#include "plan/plan.h"

static const char without_shim[] =
    "`kubernetes.shim` of config.yml is false: metrics, params, artifacts and outputs stay in the "
    "pods, and nothing serves Horovod's rendezvous";

enum { PLAN_JSON_MAX = 512 << 10 }; /* a ConfigMap holds 1 MiB */

/* Deleting the ConfigMap deletes what names it as its owner; its uid is known once it exists. */
static void add_owner(struct build *build, struct tree *metadata) {
    struct tree list = tree_list(build->arena), owner = tree_map(build->arena);

    if (!build->input->run.owner_uid)
        return;
    tree_text(&owner, "apiVersion", "v1");
    tree_text(&owner, "kind", "ConfigMap");
    tree_text(&owner, "name", build->out->name);
    tree_text(&owner, "uid", build->input->run.owner_uid);
    tree_add(&list, tree_node(&owner));
    tree_put(metadata, "ownerReferences", tree_node(&list));
}

static void add_object_of(struct build *build, const char *version, const char *kind,
                          const struct tree *metadata, const char *key,
                          const struct tree *content) {
    struct tree object = tree_map(build->arena);

    tree_text(&object, "apiVersion", version);
    tree_text(&object, "kind", kind);
    tree_put(&object, "metadata", tree_node(metadata));
    tree_filled(&object, key, content);
    *VEC_PUSH(&build->objects) = tree_node(&object);
}

static void add_object(struct build *build, const char *kind, const struct tree *metadata,
                       const char *key, const struct tree *content) {
    add_object_of(build, "v1", kind, metadata, key, content);
}

/* The owner of the rest, with the plan for who looks at the cluster alone. */
static void add_config_map(struct build *build) {
    AUTO(buf) text = BUF_INIT(PLAN_JSON_MAX);
    struct tree metadata = object_metadata(build, build->out->name), data = tree_map(build->arena);
    struct json json;
    struct error err;

    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    plan_write_json(build->plan, &json);
    if (json_finish(&json, &err) == 0)
        tree_text(&data, "plan.json", arena_text(build->arena, text.data, text.len));
    add_object(build, "ConfigMap", &metadata, "data", &data);
}

/* The second one, since what the shim is does not belong beside a plan that people read. */
static void add_shim(struct build *build) {
    struct tree metadata = object_metadata(build, shim_config_map_name(build));

    add_owner(build, &metadata);
    *VEC_PUSH(&build->objects) = shim_config_map(build, &metadata);
}

static void add_service(struct build *build) {
    struct tree metadata = object_metadata(build, build->out->name), spec = tree_map(build->arena);
    struct tree selector = tree_map(build->arena), ports = tree_list(build->arena);
    struct tree port = tree_map(build->arena);

    add_owner(build, &metadata);
    tree_text(&selector, MANIFEST_LABEL_RUN, build->input->run.uuid);
    tree_text(&selector, MANIFEST_LABEL_ATTEMPT, build->facts.attempt);
    tree_text(&port, "name", "task");
    tree_int(&port, "port", NATIVE_PORT);
    tree_add(&ports, tree_node(&port));
    tree_text(&spec, "clusterIP", "None");
    tree_bool(&spec, "publishNotReadyAddresses", true);
    tree_put(&spec, "selector", tree_node(&selector));
    tree_put(&spec, "ports", tree_node(&ports));
    add_object(build, "Service", &metadata, "spec", &spec);
}

/* What a gang scheduler knows the gang by: it places all of it, or nothing. */
static void add_group(struct build *build) {
    const char *version = gang_group_version(build);
    struct tree metadata = object_metadata(build, build->out->name), spec = tree_map(build->arena);

    if (!version)
        return;
    add_owner(build, &metadata);
    tree_int(&spec, "minMember", build->plan->n_tasks);
    add_object_of(build, version, "PodGroup", &metadata, "spec", &spec);
}

/* The name stands before the other members, where people look for it. */
static struct tree named_metadata(struct build *build, const struct pod_input *input,
                                  const char *hostname) {
    struct tree metadata = tree_map(build->arena), rest = pod_metadata(build, input);

    tree_text(&metadata, "name", arena_printf(build->arena, "%s-%s", build->out->name, hostname));
    tree_text(&metadata, "namespace", build->out->namespace);
    for (uint32_t i = 0; i < rest.count; i++)
        tree_put(&metadata, rest.members[i].key, rest.members[i].value);
    add_owner(build, &metadata);
    return metadata;
}

static void add_pod(struct build *build, uint32_t rank, const struct variables *variables) {
    const struct task *task = &build->plan->tasks[rank];
    const bool has_shim = build->has_shim;
    const struct node own = task_command(build, "");
    const struct node command = has_shim ? shim_command(build, &own) : own;
    const struct pod_shim shim = has_shim ? shim_of(build, rank) : (struct pod_shim){ 0 };
    const char *hostname =
        arena_printf(build->arena, "%s-%" PRIu32, role_name(task->role), task->index);
    const struct pod_input input = {
        .profile = task->profile,
        .role = task->role,
        .index = task->index,
        .container = "task",
        .port_name = "task",
        .port = NATIVE_PORT,
        .variables = variables,
        .command = &command,
        .shim = has_shim ? &shim : NULL,
    };
    struct tree metadata = named_metadata(build, &input, hostname), spec = pod_spec(build, &input);

    tree_text(&spec, "restartPolicy", "Never");
    tree_text(&spec, "hostname", hostname);
    tree_text(&spec, "subdomain", build->out->name);
    if (build->cluster->deadline_s)
        tree_int(&spec, "activeDeadlineSeconds", build->cluster->deadline_s);
    gang_gate(build, &spec);
    add_object(build, "Pod", &metadata, "spec", &spec);
}

void build_native(struct build *build) {
    struct error err;

    build->out->is_gated = gang_is_ours(build);
    add_config_map(build);
    if (build->has_shim)
        add_shim(build);
    add_service(build);
    add_group(build);
    for (uint32_t rank = 0; rank < build->plan->n_tasks; rank++) {
        struct variables variables;

        if (task_variables(build, rank, 1, &variables, &err)) {
            diag_error_nowhere(build->diags, "%s", err.message);
            return;
        }
        add_pod(build, rank, &variables);
    }
    if (build->plan->framework == FRAMEWORK_HOROVOD && !build->cluster->has_shim)
        build_note(
            build,
            "nothing serves Horovod's rendezvous in these pods: serve it yourself at "
            "HOROVOD_GLOO_RENDEZVOUS_ADDR, set `kubernetes.shim: true` in config.yml, or use "
            "`backend: kubeflow`");
    if (!build->cluster->has_shim)
        build_note(build, without_shim);
    gang_note(build);
}
