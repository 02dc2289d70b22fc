/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod of our own has of the shim (docs/shim.md): the ConfigMap with its bytes, the variables
 * that say what to do, its place before the command.
 *
 * A pod is bound to nodes of one architecture, that of its node selector or of the settings, since
 * the bytes are made for one.
 */
#include "shim/program.h"

#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "manifest/build.h"

/* ---- which one ---- */

/* NULL: the file does not say. */
static const struct node *selected(const struct task *task) {
    const struct node *selector = task->profile->given[ATTRIBUTE_NODE_SELECTOR];

    return selector ? node_get(selector, ARCHITECTURE_LABEL) : NULL;
}

static const char *architecture_of(struct build *build, uint32_t rank) {
    const struct node *given = selected(&build->plan->tasks[rank]);
    const char *text = given ? scalar_text(given, build->arena) : NULL;

    return text ? text : build->cluster->architecture;
}

static bool is_used(struct build *build, const char *architecture) {
    for (uint32_t rank = 0; rank < build->plan->n_tasks; rank++)
        if (strcmp(architecture_of(build, rank), architecture) == 0)
            return true;
    return false;
}

static const char way_out[] =
    "set `kubernetes.shim: false` in config.yml: metrics and outputs then stay in the pods";

void shim_check(struct build *build) {
    for (uint32_t rank = 0; rank < build->plan->n_tasks; rank++) {
        const struct node *given = selected(&build->plan->tasks[rank]);
        const char *architecture = architecture_of(build, rank);

        if (shim_program_for(architecture))
            continue;
        if (!given)
            diag_help(diag_error_nowhere(build->diags,
                                         "this myelin has no shim for `%.100s`, the "
                                         "`kubernetes.architecture` of config.yml",
                                         architecture),
                      "%s", way_out);
        else if (build_is_new(build, node_place(given)))
            diag_help(diag_error(build->diags, node_place(given),
                                 "this myelin has no shim for nodes of `%.100s`", architecture),
                      "%s", way_out);
        if (!given)
            return;
    }
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
    const char *architecture = architecture_of(build, rank);

    return (struct pod_shim){ .architecture = architecture,
                              .config_map = shim_config_map_name(build),
                              .key = key_of(build, architecture),
                              .variables = variables_for(build, rank) };
}

struct node shim_command(struct build *build, const struct node *command) {
    struct tree words = tree_list(build->arena);

    tree_add_text(&words, POD_SHIM "/shim");
    for (uint32_t i = 0; i < command->count; i++)
        tree_add(&words, command->items[i]);
    return tree_node(&words);
}
