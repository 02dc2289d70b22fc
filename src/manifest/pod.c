/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "codec/json.h"
#include "manifest/build.h"
#include "shim/frame.h"

enum { DATA_PATHS_MAX = 64 << 10 };

/* ---- metadata ---- */

/* By which everything of the run is found. */
static struct tree run_labels(struct build *build) {
    struct tree labels = tree_map(build->arena);

    tree_text(&labels, MANIFEST_LABEL_MANAGED, "myelin");
    tree_text(&labels, MANIFEST_LABEL_RUN, build->input->run.uuid);
    tree_text(&labels, MANIFEST_LABEL_ATTEMPT, build->facts.attempt);
    return labels;
}

struct tree object_metadata(struct build *build, const char *name) {
    struct tree metadata = tree_map(build->arena), labels = run_labels(build);

    tree_text(&metadata, "name", name);
    tree_text(&metadata, "namespace", build->out->namespace);
    tree_text(&labels, KUEUE_QUEUE, build->kind ? build->cluster->queue : NULL);
    tree_put(&metadata, "labels", tree_node(&labels));
    return metadata;
}

static void add_pairs(struct build *build, struct tree *map, const struct node *pairs) {
    for (uint32_t i = 0; pairs && i < pairs->count; i++)
        tree_text(map, pairs->members[i].key, scalar_text(&pairs->members[i].value, build->arena));
}

struct tree pod_metadata(struct build *build, const struct pod_input *input) {
    const struct node *const *given = input->profile->given;
    struct tree metadata = tree_map(build->arena), labels = run_labels(build);
    struct tree annotations = tree_map(build->arena);

    tree_text(&labels, MANIFEST_LABEL_ROLE, role_name(input->role));
    if (input->index >= 0)
        tree_text(&labels, MANIFEST_LABEL_INDEX,
                  arena_printf(build->arena, "%" PRId64, input->index));
    if (!build->kind)
        gang_mark(build, &labels, &annotations);
    add_pairs(build, &labels, given[ATTRIBUTE_LABELS]);
    add_pairs(build, &annotations, given[ATTRIBUTE_ANNOTATIONS]);
    tree_put(&metadata, "labels", tree_node(&labels));
    tree_filled(&metadata, "annotations", &annotations);
    return metadata;
}

/* ---- resources ---- */

static const char *amount_text(struct arena *arena, enum resource resource, milli amount) {
    static const char *const units[RESOURCE_COUNT] = { [RESOURCE_MEMORY] = "Mi" };

    if (amount % 1000 == 0)
        return arena_printf(arena, "%" PRId64 "%s", amount / 1000,
                            units[resource] ? units[resource] : "");
    if (resource == RESOURCE_MEMORY)
        return arena_printf(arena, "%" PRId64, (amount * (1 << 20) + 999) / 1000);
    return arena_printf(arena, "%" PRId64 "m", amount);
}

static struct tree resources_tree(struct build *build, const struct resources *resources) {
    const char *const names[RESOURCE_COUNT] = { "cpu", "memory", build->cluster->gpu_resource,
                                                build->cluster->tpu_resource };
    struct tree requests = tree_map(build->arena), limits = tree_map(build->arena);
    struct tree both = tree_map(build->arena);

    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        milli request = resources->of[i].requests, limit = resources->of[i].limits;

        if (i >= RESOURCE_GPU) {
            /* A device is limited to what is asked for; none at all is not to be mentioned. */
            request = limit = resources_reserved(resources, i);
            if (request == 0)
                continue;
        }
        if (request != ABSENT)
            tree_text(&requests, names[i], amount_text(build->arena, i, request));
        if (limit != ABSENT)
            tree_text(&limits, names[i], amount_text(build->arena, i, limit));
    }
    tree_filled(&both, "requests", &requests);
    tree_filled(&both, "limits", &limits);
    return both;
}

/* ---- volumes ---- */

struct volumes {
    struct tree volumes, mounts;
};

static void add_mount(struct build *build, struct volumes *to, const char *volume, const char *path,
                      const char *sub_path, bool read_only) {
    struct tree mount = tree_map(build->arena);

    tree_text(&mount, "name", volume);
    tree_text(&mount, "mountPath", path);
    tree_text(&mount, "subPath", sub_path);
    if (read_only)
        tree_bool(&mount, "readOnly", true);
    tree_add(&to->mounts, tree_node(&mount));
}

static void add_claim(struct build *build, struct volumes *to, const char *name,
                      const struct volume_settings *settings) {
    struct tree volume = tree_map(build->arena), claim = tree_map(build->arena);

    tree_text(&claim, "claimName", settings->claim);
    if (settings->read_only)
        tree_bool(&claim, "readOnly", true);
    tree_text(&volume, "name", name);
    tree_put(&volume, "persistentVolumeClaim", tree_node(&claim));
    tree_add(&to->volumes, tree_node(&volume));
}

static void add_empty(struct build *build, struct volumes *to, const char *name, const char *medium,
                      int64_t mib) {
    struct tree volume = tree_map(build->arena), empty = tree_map(build->arena);

    tree_text(&empty, "medium", medium);
    if (mib > 0)
        tree_text(&empty, "sizeLimit", arena_printf(build->arena, "%" PRId64 "Mi", mib));
    tree_text(&volume, "name", name);
    tree_put(&volume, "emptyDir", tree_node(&empty));
    tree_add(&to->volumes, tree_node(&volume));
}

/* The kubelet makes the directories of sub-paths, so that what a task is promised exists. */
static void add_outputs(struct build *build, struct volumes *to) {
    const struct volume_settings *outputs = &build->cluster->outputs;
    const struct manifest_run *run = &build->input->run;
    const char *uuid = run->outputs_of ? run->outputs_of : run->uuid;

    if (!outputs->claim) {
        add_mount(build, to, "myelin", POD_OUTPUTS, "outputs", false);
        return;
    }
    add_claim(build, to, "outputs", outputs);
    add_mount(build, to, "outputs", POD_OUTPUTS,
              outputs->sub_path ? arena_printf(build->arena, "%s/%s", outputs->sub_path, uuid)
                                : uuid,
              outputs->read_only);
}

static bool stands_before(const struct node *list, uint32_t i) {
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(list->items[k].text, list->items[i].text) == 0)
            return true;
    return false;
}

static void add_refs(struct build *build, struct volumes *to, const struct node *list,
                     const struct volume_settings *volumes, uint32_t n, const char *kind,
                     const char *root) {
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct volume_settings *settings = volume_named(volumes, n, list->items[i].text);
        const char *name = arena_printf(build->arena, "%s-%" PRIu32, kind, i);
        const char *path = arena_printf(build->arena, "%s/%s", root, list->items[i].text);

        if (!settings || stands_before(list, i))
            continue; /* pods_check has said it */
        add_claim(build, to, name, settings);
        add_mount(build, to, name, path, settings->sub_path, settings->read_only);
    }
}

/* Whoever the task runs as may start it, and nobody may change it. */
static void add_shim(struct build *build, struct volumes *to, const struct pod_shim *shim) {
    struct tree volume = tree_map(build->arena), source = tree_map(build->arena);
    struct tree items = tree_list(build->arena), item = tree_map(build->arena);

    tree_text(&item, "key", shim->key);
    tree_text(&item, "path", "shim");
    tree_add(&items, tree_node(&item));
    tree_text(&source, "name", shim->config_map);
    tree_int(&source, "defaultMode", 0555);
    tree_put(&source, "items", tree_node(&items));
    tree_text(&volume, "name", "shim");
    tree_put(&volume, "configMap", tree_node(&source));
    tree_add(&to->volumes, tree_node(&volume));
    add_mount(build, to, "shim", POD_SHIM, NULL, true);
}

static struct volumes pod_volumes(struct build *build, const struct pod_input *input) {
    const struct kubernetes_settings *cluster = build->cluster;
    const struct profile *profile = input->profile;
    struct volumes to = { tree_list(build->arena), tree_list(build->arena) };

    add_empty(build, &to, "myelin", NULL, 0);
    add_mount(build, &to, "myelin", POD_LOGS, "logs", false);
    add_mount(build, &to, "myelin", POD_SPOOL, "spool", false);
    add_empty(build, &to, "shm", "Memory", cluster->shm_mib);
    add_mount(build, &to, "shm", "/dev/shm", NULL, false);
    if (cluster->has_read_only_root)
        add_mount(build, &to, "myelin", "/tmp", "tmp", false);
    if (input->shim)
        add_shim(build, &to, input->shim);
    add_outputs(build, &to);
    add_refs(build, &to, profile->given[ATTRIBUTE_DATA_REFS], cluster->data, cluster->n_data,
             "data", POD_DATA);
    add_refs(build, &to, profile->given[ATTRIBUTE_ARTIFACT_REFS], cluster->artifacts,
             cluster->n_artifacts, "artifacts", POD_ARTIFACTS);
    return to;
}

/* ---- the environment ---- */

/* {"name": "/data/name"} as the original had it, or NULL where the task has no data. */
static const char *data_paths(struct build *build, const struct profile *profile) {
    const struct node *refs = profile->given[ATTRIBUTE_DATA_REFS];
    AUTO(buf) text = BUF_INIT(DATA_PATHS_MAX);
    struct json json;
    struct error err;

    if (!refs || refs->count == 0)
        return NULL;
    json_init(&json, JSON_COMPACT, json_to_buf, &text);
    json_object(&json);
    for (uint32_t i = 0; i < refs->count; i++) {
        if (stands_before(refs, i))
            continue;
        json_key(&json, refs->items[i].text);
        json_text(&json, arena_printf(build->arena, POD_DATA "/%s", refs->items[i].text));
    }
    json_end(&json);
    return json_finish(&json, &err) ? NULL : arena_text(build->arena, text.data, text.len);
}

int task_variables(struct build *build, uint32_t rank, uint32_t n, struct variables *out,
                   struct error *err) {
    const char *paths = data_paths(build, build->plan->tasks[rank].profile);

    if (variables_of(&build->wiring, rank, n, build->input->target, build->arena, out, err))
        return -1;
    if (paths)
        out->list[out->len++] =
            (struct variable){ .name = "POLYAXON_RUN_DATA_PATHS", .before = paths, .after = "" };
    return 0;
}

static struct node variable_node(struct build *build, const char *name, const char *value,
                                 const char *field) {
    struct tree variable = tree_map(build->arena), source = tree_map(build->arena);
    struct tree reference = tree_map(build->arena);

    tree_text(&variable, "name", name);
    tree_text(&variable, "value", value);
    if (field) {
        tree_text(&reference, "fieldPath", field);
        tree_put(&source, "fieldRef", tree_node(&reference));
        tree_put(&variable, "valueFrom", tree_node(&source));
    }
    return tree_node(&variable);
}

static void add_variable(struct build *build, struct tree *list, const struct variable *variable) {
    struct arena *arena = build->arena;

    switch (variable->kind) {
    case VARIABLE_LITERAL:
        tree_add(list, variable_node(build, variable->name,
                                     kubernetes_escape(variable->before, 0, arena), NULL));
        break;
    case VARIABLE_ADDRESS:
        tree_add(list, variable_node(build, variable->name, NULL, "status.podIP"));
        break;
    case VARIABLE_INDEXED:
        if (strcmp(variable->name, VARIABLE_INDEX) == 0)
            tree_add(list, variable_node(build, variable->name, NULL,
                                         "metadata.labels['" KUBEFLOW_LABEL_INDEX "']"));
        else
            tree_add(list,
                     variable_node(build, variable->name,
                                   arena_printf(arena, "%s$(" VARIABLE_INDEX ")%s",
                                                kubernetes_escape(variable->before, '$', arena),
                                                kubernetes_escape(variable->after, 0, arena)),
                                   NULL));
        break;
    case VARIABLE_COUNTED: break; /* the shell in front of the command adds */
    }
}

static void add_refs_from(struct build *build, struct tree *list, const struct node *names,
                          const char *key) {
    for (uint32_t i = 0; names && i < names->count; i++) {
        struct tree from = tree_map(build->arena), reference = tree_map(build->arena);

        tree_text(&reference, "name", names->items[i].text);
        tree_put(&from, key, tree_node(&reference));
        tree_add(list, tree_node(&from));
    }
}

/* ---- the command ---- */

const char *counted_exports(struct build *build, const struct variables *variables) {
    const char *exports = "";

    for (size_t i = 0; i < variables->len; i++) {
        const struct variable *v = &variables->list[i];

        if (v->kind == VARIABLE_COUNTED)
            exports = arena_printf(build->arena, "%s %s", exports,
                                   variable_assignment(v, VARIABLE_INDEX, build->arena));
    }
    return *exports ? arena_printf(build->arena, "export%s; ", exports) : "";
}

struct node task_command(struct build *build, const char *exports) {
    struct arena *arena = build->arena;
    const char *command = build->plan->command;
    bool by_shell = build->plan->command_manner == COMMAND_SHELL;
    struct tree words = tree_list(arena);

    if (by_shell || *exports) {
        /* As on this machine: bash where there is one. */
        const char *script = arena_printf(
            arena, "%s%s", exports,
            by_shell ? "command -v bash >/dev/null 2>&1 && exec bash -c \"$1\"; exec sh -c \"$1\""
                     : "exec \"$@\"");

        tree_add_text(&words, "/bin/sh");
        tree_add_text(&words, "-c");
        tree_add_text(&words, kubernetes_escape(script, 0, arena));
        tree_add_text(&words, "sh");
    }
    if (by_shell) {
        tree_add_text(&words, kubernetes_escape(command, 0, arena));
        return tree_node(&words);
    }
    for (const char *p = command; *p;) {
        size_t n = strcspn(p, " ");

        if (n > 0)
            tree_add_text(&words, arena_text(arena, p, n));
        p += n + (p[n] == ' ');
    }
    return tree_node(&words);
}

/* ---- the pod ---- */

static void add_environment(struct build *build, struct tree *map, const struct pod_input *input) {
    const struct node *const *given = input->profile->given;
    struct tree env = tree_list(build->arena), from = tree_list(build->arena);

    for (size_t i = 0; input->shim && i < input->shim->variables.len; i++)
        add_variable(build, &env, &input->shim->variables.list[i]);
    for (size_t i = 0; input->variables && i < input->variables->len; i++)
        add_variable(build, &env, &input->variables->list[i]);
    tree_filled(map, "env", &env);
    add_refs_from(build, &from, given[ATTRIBUTE_SECRET_REFS], "secretRef");
    add_refs_from(build, &from, given[ATTRIBUTE_CONFIG_MAP_REFS], "configMapRef");
    tree_filled(map, "envFrom", &from);
}

static void add_port(struct build *build, struct tree *ports, const char *name, uint16_t number) {
    struct tree port = tree_map(build->arena);

    tree_text(&port, "name", name);
    tree_int(&port, "containerPort", number);
    tree_add(ports, tree_node(&port));
}

/* What the level `restricted` asks of a container; the rest stands in the pod. */
static struct tree container_security(struct build *build) {
    struct tree security = tree_map(build->arena), capabilities = tree_map(build->arena);
    struct tree dropped = tree_list(build->arena);

    if (build->cluster->is_restricted) {
        tree_add_text(&dropped, "ALL");
        tree_put(&capabilities, "drop", tree_node(&dropped));
        tree_bool(&security, "allowPrivilegeEscalation", false);
        tree_put(&security, "capabilities", tree_node(&capabilities));
    }
    if (build->cluster->has_read_only_root)
        tree_bool(&security, "readOnlyRootFilesystem", true);
    return security;
}

static struct node container(struct build *build, const struct pod_input *input,
                             const struct volumes *volumes) {
    struct tree map = tree_map(build->arena), ports = tree_list(build->arena);
    struct tree resources = resources_tree(build, &input->profile->resources);
    struct tree security = container_security(build);

    tree_text(&map, "name", input->container);
    tree_text(&map, "image", build->image);
    if (input->command)
        tree_put(&map, "command", *input->command);
    add_environment(build, &map, input);
    if (input->port_name)
        add_port(build, &ports, input->port_name, input->port);
    if (input->shim)
        add_port(build, &ports, "shim", SHIM_PORT);
    tree_filled(&map, "ports", &ports);
    tree_filled(&map, "resources", &resources);
    tree_filled(&map, "securityContext", &security);
    tree_put(&map, "volumeMounts", tree_node(&volumes->mounts));
    /* Without a message of its own the last lines of a task say why it failed. */
    tree_text(&map, "terminationMessagePolicy", "FallbackToLogsOnError");
    return tree_node(&map);
}

static struct tree pod_security(struct build *build) {
    const struct kubernetes_settings *cluster = build->cluster;
    struct tree security = tree_map(build->arena), profile = tree_map(build->arena);

    if (cluster->is_restricted) {
        tree_text(&profile, "type", "RuntimeDefault");
        tree_bool(&security, "runAsNonRoot", true);
        tree_put(&security, "seccompProfile", tree_node(&profile));
    }
    if (cluster->user != ABSENT)
        tree_int(&security, "runAsUser", cluster->user);
    if (cluster->group != ABSENT) {
        tree_int(&security, "runAsGroup", cluster->group);
        /* Else a new volume is root's, and the task cannot write to it. */
        tree_int(&security, "fsGroup", cluster->group);
        tree_text(&security, "fsGroupChangePolicy", "OnRootMismatch");
    }
    return security;
}

static void add_placement(struct build *build, struct tree *spec, const struct pod_input *input) {
    const struct node *const *given = input->profile->given;
    struct tree selector = tree_map(build->arena), secrets = tree_list(build->arena);

    add_pairs(build, &selector, given[ATTRIBUTE_NODE_SELECTOR]);
    /* A node of another processor could not start the shim. */
    if (input->shim && !(given[ATTRIBUTE_NODE_SELECTOR] &&
                         node_get(given[ATTRIBUTE_NODE_SELECTOR], ARCHITECTURE_LABEL)))
        tree_text(&selector, ARCHITECTURE_LABEL, input->shim->architecture);
    tree_filled(spec, "nodeSelector", &selector);
    if (given[ATTRIBUTE_AFFINITY])
        tree_put(spec, "affinity", *given[ATTRIBUTE_AFFINITY]);
    if (given[ATTRIBUTE_TOLERATIONS])
        tree_put(spec, "tolerations", *given[ATTRIBUTE_TOLERATIONS]);
    tree_text(spec, "schedulerName", build->cluster->scheduler);
    if (given[ATTRIBUTE_SERVICE_ACCOUNT])
        tree_text(spec, "serviceAccountName", given[ATTRIBUTE_SERVICE_ACCOUNT]->text);
    for (uint32_t i = 0;
         given[ATTRIBUTE_IMAGE_PULL_SECRETS] && i < given[ATTRIBUTE_IMAGE_PULL_SECRETS]->count;
         i++) {
        struct tree secret = tree_map(build->arena);

        tree_text(&secret, "name", given[ATTRIBUTE_IMAGE_PULL_SECRETS]->items[i].text);
        tree_add(&secrets, tree_node(&secret));
    }
    tree_filled(spec, "imagePullSecrets", &secrets);
}

struct tree pod_spec(struct build *build, const struct pod_input *input) {
    struct tree spec = tree_map(build->arena), containers = tree_list(build->arena);
    struct volumes volumes = pod_volumes(build, input);
    struct tree security = pod_security(build);

    tree_add(&containers, container(build, input, &volumes));
    tree_put(&spec, "containers", tree_node(&containers));
    add_placement(build, &spec, input);
    tree_filled(&spec, "securityContext", &security);
    tree_put(&spec, "volumes", tree_node(&volumes.volumes));
    if (build->input->run.grace_s > 0)
        tree_int(&spec, "terminationGracePeriodSeconds", build->input->run.grace_s);
    /* Else each service of the namespace adds variables to every task, by the thousand. */
    tree_bool(&spec, "enableServiceLinks", false);
    return spec;
}
