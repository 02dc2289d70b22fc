/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "plan/environment.h"

/* ---- the command ---- */

/* First words that only a shell knows. */
static const char *const shell_words[] = {
    ".",       ":",      "alias", "bg",    "break",  "case",   "cd",      "command",
    "declare", "eval",   "exec",  "exit",  "export", "fg",     "for",     "function",
    "if",      "jobs",   "let",   "local", "read",   "return", "set",     "shift",
    "shopt",   "source", "time",  "times", "trap",   "type",   "typeset", "ulimit",
    "umask",   "unset",  "until", "wait",  "while",
};

/* Whether splitting at blanks is all that a shell would do with it. */
static enum command_manner command_manner(const char *command) {
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "_-./:=,+@%^ ";
    size_t first = strcspn(command, " ");

    if (command[strspn(command, harmless)] != '\0' || memchr(command, '=', first))
        return COMMAND_SHELL;
    for (size_t i = 0; i < ARRAY_LEN(shell_words); i++)
        if (strlen(shell_words[i]) == first && memcmp(shell_words[i], command, first) == 0)
            return COMMAND_SHELL;
    return COMMAND_DIRECT;
}

/* ---- tasks ---- */

/* Per attribute, what an index lists counts whole; what it does not list comes from the default. */
static void fill_profile(struct profile *profile, const struct pod *listed,
                         const struct resources *listed_resources, const struct pod *defaults,
                         const struct resources *default_resources) {
    const struct member *resources_at =
        listed && listed->resources.at ? listed->resources.at : defaults->resources.at;

    profile->resources = listed && listed->resources.at ? *listed_resources : *default_resources;
    profile->resources_at = resources_at ? &resources_at->value : NULL;
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        const struct member *at =
            listed && listed->given[i].at ? listed->given[i].at : defaults->given[i].at;

        profile->given[i] = at ? &at->value : NULL;
    }
}

static void add_role(struct plan *plan, enum role role, const struct role_spec *spec) {
    struct profile *common = ARENA_NEW(&plan->arena, struct profile);
    uint32_t next = 0;

    fill_profile(common, NULL, NULL, &spec->defaults, &spec->default_resources);
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct profile *profile = common;

        if (next < spec->n_replicas && spec->replicas[next].index == i) {
            const struct replica *replica = &spec->replicas[next++];
            struct profile *own = ARENA_NEW(&plan->arena, struct profile);

            fill_profile(own, &replica->pod, &replica->resources, &spec->defaults,
                         &spec->default_resources);
            profile = own;
        }
        plan->tasks[plan->n_tasks++] =
            (struct task){ .role = role, .index = i, .profile = profile };
        resources_add(&plan->totals, &profile->resources);
    }
    plan->n_role[role] = spec->count;
}

static void add_tasks(struct plan *plan, const struct spec *spec) {
    const struct role_spec master = { .count = spec->has_master,
                                      .defaults = spec->master,
                                      .default_resources = spec->master_resources };
    size_t n =
        (size_t)spec->has_master + spec->roles[ROLE_WORKER].count + spec->roles[ROLE_PS].count;

    plan->tasks = ARENA_ARRAY(&plan->arena, struct task, n);
    plan->totals = resources_none;
    add_role(plan, ROLE_MASTER, &master);
    add_role(plan, ROLE_WORKER, &spec->roles[ROLE_WORKER]);
    add_role(plan, ROLE_PS, &spec->roles[ROLE_PS]);
}

/* TF_CONFIG names every task in one string: past the kernel's limit nobody can be started. */
static int check_size(const struct plan *plan, struct error *err) {
    enum { SHORTEST_ADDRESS = sizeof "\"127.0.0.1:10000\", " - 1 };

    if (plan->framework == FRAMEWORK_TENSORFLOW &&
        (uint64_t)plan->n_tasks * SHORTEST_ADDRESS > ENVIRONMENT_STRING_MAX)
        return error_set(err, ERROR_EXHAUSTED,
                         "TensorFlow is told of all %u tasks in one variable, TF_CONFIG, which may "
                         "have at most %d bytes: that is about %d tasks",
                         plan->n_tasks, ENVIRONMENT_STRING_MAX,
                         ENVIRONMENT_STRING_MAX / SHORTEST_ADDRESS);
    return 0;
}

struct plan *plan_build(struct spec *spec, struct error *err) {
    struct plan *plan = calloc(1, sizeof *plan);

    if (!plan)
        abort();
    plan->arena = spec->arena; /* nodes and texts move along with what points to them */
    spec->arena = (struct arena)ARENA_INIT;
    plan->name = spec->name;
    plan->framework = spec->framework;
    plan->framework_label = spec->framework_label;
    plan->backend = spec->backend;
    plan->log_level = spec->log_level;
    plan->command = spec->command;
    plan->command_manner = spec->command ? command_manner(spec->command) : COMMAND_NONE;
    plan->params = spec->params;
    plan->tags = spec->tags;
    plan->max_restarts = spec->max_restarts;
    plan->earlier = spec->earlier;
    plan->has_build = spec->has_build;
    plan->image = spec->image;
    plan->backend_place = spec->backend_place;
    add_tasks(plan, spec);
    spec_free(spec);
    if (check_size(plan, err)) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

/* ---- on this machine ---- */

static bool any_task_has(const struct plan *plan, enum attribute attribute) {
    for (uint32_t i = 0; i < plan->n_tasks; i++)
        if (plan->tasks[i].profile->given[attribute])
            return true;
    return false;
}

void plan_local_notes(const struct plan *plan, void (*say)(void *context, const char *sentence),
                      void *context) {
    static const struct {
        enum attribute attribute;
        const char *sentence;
    } notes[] = {
        { ATTRIBUTE_LABELS, "`labels` have no effect on this machine" },
        { ATTRIBUTE_ANNOTATIONS, "`annotations` have no effect on this machine" },
        { ATTRIBUTE_NODE_SELECTOR, "`node_selector` has no effect on this machine" },
        { ATTRIBUTE_AFFINITY, "`affinity` has no effect on this machine" },
        { ATTRIBUTE_TOLERATIONS, "`tolerations` have no effect on this machine" },
        { ATTRIBUTE_SERVICE_ACCOUNT, "`service_account` has no effect on this machine" },
        { ATTRIBUTE_IMAGE_PULL_SECRETS, "`image_pull_secrets` have no effect on this machine" },
    };

    if (plan->has_build)
        say(context, "`build` has no effect on this machine: tasks run in your own environment");
    for (size_t i = 0; i < ARRAY_LEN(notes); i++)
        if (any_task_has(plan, notes[i].attribute))
            say(context, notes[i].sentence);
}

static int check_refs(const struct plan *plan, struct error *err) {
    static const enum attribute refs[] = { ATTRIBUTE_SECRET_REFS, ATTRIBUTE_CONFIG_MAP_REFS,
                                           ATTRIBUTE_DATA_REFS, ATTRIBUTE_ARTIFACT_REFS };

    for (uint32_t rank = 0; rank < plan->n_tasks; rank++)
        for (size_t i = 0; i < ARRAY_LEN(refs); i++) {
            const struct node *list = plan->tasks[rank].profile->given[refs[i]];

            if (list && list->count > 0)
                return error_set(
                    err, ERROR_INVALID,
                    "%s names `%.100s` in `%s`, and nothing of that name is configured "
                    "on this machine: remove it to run here",
                    task_name(&plan->tasks[rank]).text, list->items[0].text,
                    attribute_name(refs[i]));
        }
    return 0;
}

int plan_check_local(const struct plan *plan, struct error *err) {
    if (plan->backend == BACKEND_KUBEFLOW)
        return error_set(err, ERROR_INVALID,
                         "`backend: kubeflow` needs a cluster: add `--on kubernetes`, or set "
                         "`runs_on: kubernetes` in config.yml; to run on this machine, use "
                         "`backend: native`, or leave `backend` out");
    if (plan->backend != BACKEND_NATIVE)
        return error_set(err, ERROR_INVALID,
                         "there is no `backend: %s`, neither here nor on a cluster: use `backend: "
                         "native`, or leave `backend` out",
                         backend_kind_name(plan->backend));
    if (plan->command_manner == COMMAND_NONE)
        return error_set(err, ERROR_INVALID,
                         "the file does not say what to run: add `run: {cmd: ...}`");
    return check_refs(plan, err);
}
