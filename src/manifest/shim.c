/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod of our own has of the shim (docs/shim.md): the ConfigMap with its bytes, the variables
 * that say what to do, its place before the command.
 *
 * A pod is bound to nodes of one architecture, since the bytes are made for one: that which its
 * node selector or its node affinity asks for, else that of the settings. Shims know each other:
 * where there is none for the nodes of one task, the whole gang is without.
 */
#include "shim/program.h"

#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "manifest/build.h"

/* ---- which one ---- */

static const char *text_or(const struct node *node, const char *otherwise) {
    return node && node->kind == NODE_TEXT ? node->text : otherwise;
}

static bool lists(const struct node *values, const char *text) {
    for (uint32_t i = 0; values && values->kind == NODE_LIST && i < values->count; i++)
        if (strcmp(text_or(&values->items[i], ""), text) == 0)
            return true;
    return false;
}

/* Whether one term of a node affinity lets a pod go to such nodes. */
static bool term_allows(const struct node *term, const char *architecture) {
    const struct node *list = node_get(term, "matchExpressions");

    for (uint32_t i = 0; list && list->kind == NODE_LIST && i < list->count; i++) {
        const struct node *one = &list->items[i];
        const char *how = text_or(node_get(one, "operator"), "");
        const bool is_listed = lists(node_get(one, "values"), architecture);

        if (strcmp(text_or(node_get(one, "key"), ""), ARCHITECTURE_LABEL) == 0 &&
            ((strcmp(how, "In") == 0 && !is_listed) || (strcmp(how, "NotIn") == 0 && is_listed)))
            return false;
    }
    return true;
}

/* A pod goes where any of the terms lets it. */
static bool affinity_allows(const struct node *affinity, const char *architecture) {
    const struct node *required = node_get(node_get(affinity, "nodeAffinity"),
                                           "requiredDuringSchedulingIgnoredDuringExecution");
    const struct node *terms = node_get(required, "nodeSelectorTerms");

    for (uint32_t i = 0; terms && terms->kind == NODE_LIST && i < terms->count; i++)
        if (term_allows(&terms->items[i], architecture))
            return true;
    return !terms || terms->kind != NODE_LIST || terms->count == 0;
}

/* What the file says of a task's nodes, or the settings where that lets it go to theirs. */
static const char *architecture_of(const struct plan *plan,
                                   const struct kubernetes_settings *cluster, uint32_t rank) {
    const struct node *const *given = plan->tasks[rank].profile->given;
    const struct node *selected = given[ATTRIBUTE_NODE_SELECTOR]
                                      ? node_get(given[ATTRIBUTE_NODE_SELECTOR], ARCHITECTURE_LABEL)
                                      : NULL;
    const struct node *affinity = given[ATTRIBUTE_AFFINITY];

    if (selected)
        return text_or(selected, "");
    if (!affinity || affinity_allows(affinity, cluster->architecture))
        return cluster->architecture;
    for (size_t i = 0; shim_architectures[i]; i++)
        if (affinity_allows(affinity, shim_architectures[i]))
            return shim_architectures[i];
    return "of that affinity";
}

/* The architecture of the first task whose nodes no shim is made for; NULL: there is none. */
static const char *architecture_without(const struct plan *plan,
                                        const struct kubernetes_settings *cluster) {
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        if (!shim_program_for(architecture_of(plan, cluster, rank)))
            return architecture_of(plan, cluster, rank);
    return NULL;
}

bool manifest_wants_shim(const struct plan *plan, const struct kubernetes_settings *cluster) {
    return cluster->has_shim && !architecture_without(plan, cluster);
}

static bool is_used(struct build *build, const char *architecture) {
    for (uint32_t rank = 0; rank < build->plan->n_tasks; rank++)
        if (strcmp(architecture_of(build->plan, build->cluster, rank), architecture) == 0)
            return true;
    return false;
}

void shim_check(struct build *build) {
    const char *architecture = architecture_without(build->plan, build->cluster);

    if (!build->cluster->has_shim || !architecture)
        return;
    if (build->plan->framework == FRAMEWORK_HOROVOD)
        diag_help(diag_error_nowhere(build->diags,
                                     "this myelin has no shim for nodes of `%.100s`, and nothing "
                                     "else serves Horovod's rendezvous in these pods",
                                     architecture),
                  "choose other nodes, or use `backend: kubeflow`");
    else
        build_note(build,
                   arena_printf(build->arena,
                                "this myelin has no shim for nodes of `%.100s`: the pods are "
                                "without it, and metrics, params, artifacts and outputs stay in "
                                "them",
                                architecture));
}

/* ---- its bytes ---- */

static const char *key_of(struct build *build, const char *architecture) {
    return arena_printf(build->arena, "shim-%s", architecture);
}

const char *shim_config_map_name(struct build *build) {
    return arena_printf(build->arena, "%s-shim", build->out->name);
}

static const char *encoded(struct build *build, const struct shim_program *program) {
    char *text = ARENA_ARRAY(build->arena, char, (program->size + 2) / 3 * 4 + 1);

    base64_encode((const char *)program->bytes, program->size, text);
    return text;
}

struct node shim_config_map(struct build *build, const struct tree *metadata) {
    struct tree object = tree_map(build->arena), data = tree_map(build->arena);

    for (size_t i = 0; shim_architectures[i]; i++)
        if (is_used(build, shim_architectures[i]))
            tree_text(&data, key_of(build, shim_architectures[i]),
                      encoded(build, shim_program_for(shim_architectures[i])));
    tree_text(&object, "apiVersion", "v1");
    tree_text(&object, "kind", "ConfigMap");
    tree_put(&object, "metadata", tree_node(metadata));
    tree_put(&object, "binaryData", tree_node(&data));
    tree_bool(&object, "immutable", true);
    return tree_node(&object);
}

/* ---- a pod's part ---- */

static void add(struct variables *to, const char *name, const char *value) {
    to->list[to->len++] = (struct variable){ .name = name, .before = value, .after = "" };
}

static const char *number(struct build *build, int64_t value) {
    return arena_printf(build->arena, "%" PRId64, value);
}

/* The leading task is the first: the others wait for its name, and end when it is gone. */
static struct variables variables_for(struct build *build, uint32_t rank) {
    enum { MOST = 8, HOST_MOST = 256 };
    const struct plan *plan = build->plan;
    const struct kubernetes_settings *cluster = build->cluster;
    const char *key = build->input->run.shim_key;
    const bool is_asked = !build->input->is_shim_unasked;
    struct variables to = { ARENA_ARRAY(build->arena, struct variable, MOST), 0 };
    char leader[HOST_MOST];

    if (key)
        add(&to, "MYELIN_SHIM_KEY", key);
    if (plan->n_tasks > 1) {
        build->facts.host(&build->facts, plan, 0, leader, sizeof leader);
        add(&to, "MYELIN_SHIM_WAIT", arena_text(build->arena, leader, strlen(leader)));
        if (rank > 0)
            add(&to, "MYELIN_SHIM_LEADER", arena_text(build->arena, leader, strlen(leader)));
    }
    if (plan->framework == FRAMEWORK_HOROVOD && rank == 0)
        add(&to, "MYELIN_SHIM_RENDEZVOUS", build->facts.rendezvous_port);
    add(&to, "MYELIN_SHIM_TASKS", number(build, plan->n_tasks));
    add(&to, "MYELIN_SHIM_LINGER", number(build, is_asked ? cluster->linger_s : 0));
    add(&to, "MYELIN_SHIM_LOG_LIMIT", number(build, cluster->log_limit_mib << 20));
    if (!cluster->outputs.claim && is_asked)
        add(&to, "MYELIN_SHIM_OUTPUTS", "1");
    return to;
}

struct pod_shim shim_of(struct build *build, uint32_t rank) {
    const char *architecture = architecture_of(build->plan, build->cluster, rank);

    return (struct pod_shim){ .architecture = architecture,
                              .config_map = shim_config_map_name(build),
                              .key = key_of(build, architecture),
                              .variables = variables_for(build, rank) };
}

struct node shim_command(struct build *build, const struct node *command) {
    struct tree words = tree_list(build->arena);

    tree_add_text(&words, MANIFEST_SHIM);
    for (uint32_t i = 0; i < command->count; i++)
        tree_add(&words, command->items[i]);
    return tree_node(&words);
}
