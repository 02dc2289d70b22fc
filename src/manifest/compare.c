/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/compare.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/build.h"

static const enum manifest_target targets[SIDE_COUNT] = {
    [SIDE_NATIVE] = MANIFEST_NATIVE, [SIDE_KUBEFLOW] = MANIFEST_KUBEFLOW
};

struct comparison {
    struct arena arena;
    const struct plan *plan;
    struct cluster_side {
        struct manifest_input input;
        struct build build;
        struct diags *diags;
        const char *refusal;
    } sides[SIDE_COUNT]; /* not of SIDE_LOCAL */
};

const char *side_name(enum side side) {
    static const char *const names[SIDE_COUNT] = { "local", "native", "kubeflow" };

    return names[side];
}

static void open_side(struct comparison *comparison, const struct manifest_input *input,
                      enum side side) {
    struct cluster_side *to = &comparison->sides[side];

    to->input = *input;
    to->input.target = targets[side];
    to->input.run = (struct manifest_run){ .id = facts_symbolic.run_id,
                                           .uuid = facts_symbolic.run_uuid,
                                           .owner = facts_symbolic.owner,
                                           .project = facts_symbolic.project };
    to->diags = diags_new();
    if (build_open(&to->build, &to->input, to->diags))
        to->refusal = to->diags->list[0].message;
}

struct comparison *comparison_new(const struct manifest_input *input) {
    struct comparison *comparison = calloc(1, sizeof *comparison);

    if (!comparison)
        abort();
    comparison->plan = input->plan;
    for (enum side side = SIDE_NATIVE; side < SIDE_COUNT; side++)
        open_side(comparison, input, side);
    return comparison;
}

void comparison_free(struct comparison *comparison) {
    if (!comparison)
        return;
    for (enum side side = SIDE_NATIVE; side < SIDE_COUNT; side++) {
        build_close(&comparison->sides[side].build);
        diags_free(comparison->sides[side].diags);
    }
    arena_release(&comparison->arena);
    free(comparison);
}

const char *comparison_refusal(const struct comparison *comparison, enum side side) {
    return comparison->sides[side].refusal;
}

/* ---- variables ---- */

struct rows {
    VEC(struct compared) list;
};

static struct compared *row_of(struct rows *rows, const char *name) {
    for (size_t i = 0; i < rows->list.len; i++)
        if (strcmp(rows->list.items[i].name, name) == 0)
            return &rows->list.items[i];
    struct compared *row = VEC_PUSH(&rows->list);

    row->name = name;
    return row;
}

static int add_local(struct comparison *comparison, uint32_t rank, struct rows *rows,
                     struct error *err) {
    struct environment environment = { 0 };
    struct run_facts facts = facts_symbolic;

    facts.attempt = "0";
    if (plan_environment(comparison->plan, rank, &facts, &environment, err)) {
        environment_release(&environment);
        return -1;
    }
    for (size_t i = 0; i < environment.len; i++) {
        const char *item = environment.items[i];
        size_t n = strcspn(item, "=");

        row_of(rows, arena_text(&comparison->arena, item, n))->on[SIDE_LOCAL] =
            arena_text(&comparison->arena, item + n + 1, strlen(item + n + 1));
    }
    environment_release(&environment);
    return 0;
}

/* What the operator gives, and why things differ. */
static void add_differences(struct comparison *comparison, enum side side, struct rows *rows) {
    for (const struct difference *row = differences; row->name; row++) {
        enum framework framework = comparison->plan->framework;
        bool is_extra = row->kind == DIFFERENCE_EXTRA;
        bool is_given = is_extra;

        if (row->target != targets[side] || row->framework != framework)
            continue;
        for (size_t i = 0; i < rows->list.len && !is_given; i++)
            is_given = strcmp(rows->list.items[i].name, row->name) == 0;
        if (!is_given)
            continue; /* of another role */
        row_of(rows, row->name)->reason = row->reason;
        if (is_extra || row->kind == DIFFERENCE_OPERATOR)
            row_of(rows, row->name)->on[side] = "(operator)";
    }
}

static int add_cluster(struct comparison *comparison, enum side side, uint32_t rank,
                       struct rows *rows, struct error *err) {
    struct build *build = &comparison->sides[side].build;
    const struct task *task = &comparison->plan->tasks[rank];
    /* In a job all tasks of a role come from one template. */
    bool is_one = side == SIDE_NATIVE;
    struct variables variables;

    if (task_variables(build, is_one ? rank : rank - task->index,
                       is_one ? 1 : comparison->plan->n_role[task->role], &variables, err))
        return -1;
    for (size_t i = 0; i < variables.len; i++)
        row_of(rows, variables.list[i].name)->on[side] =
            variable_value(&variables.list[i], task->index, build->arena);
    add_differences(comparison, side, rows);
    return 0;
}

static bool is_same(const struct comparison *comparison, const struct compared *row) {
    const char *first = row->on[SIDE_LOCAL];

    for (enum side side = SIDE_NATIVE; side < SIDE_COUNT; side++) {
        if (comparison->sides[side].refusal)
            continue;
        if (!first || !row->on[side] || strcmp(first, row->on[side]) != 0)
            return false;
    }
    return true;
}

int comparison_task(struct comparison *comparison, uint32_t rank, struct compared_list *out,
                    struct error *err) {
    struct rows rows = { 0 };
    int status = add_local(comparison, rank, &rows, err);

    for (enum side side = SIDE_NATIVE; side < SIDE_COUNT && status == 0; side++)
        if (!comparison->sides[side].refusal)
            status = add_cluster(comparison, side, rank, &rows, err);
    if (status == 0) {
        out->list = ARENA_ARRAY(&comparison->arena, struct compared, rows.list.len);
        out->len = 0;
        for (size_t i = 0; i < rows.list.len; i++)
            if (!is_same(comparison, &rows.list.items[i]))
                out->list[out->len++] = rows.list.items[i];
    }
    VEC_RELEASE(&rows.list);
    return status;
}

/* ---- the rest ---- */

static bool any_resources(const struct plan *plan) {
    return !resources_equal(&plan->totals, &resources_none);
}

static bool any_given(const struct plan *plan, enum attribute attribute) {
    const struct profile *last = NULL;

    for (uint32_t i = 0; i < plan->n_tasks; i++) {
        if (plan->tasks[i].profile != last && plan->tasks[i].profile->given[attribute])
            return true;
        last = plan->tasks[i].profile;
    }
    return false;
}

struct compared_list comparison_rest(struct comparison *comparison) {
    static const char nothing[] = "no effect", refused[] = "refused";
    static const char each[] = "as the file says, of each task";
    static const char role[] = "as the file says, the same for a role";
    const struct plan *plan = comparison->plan;
    struct compared_list out = {
        ARENA_ARRAY(&comparison->arena, struct compared, ATTRIBUTE_COUNT + 4), 0
    };

    out.list[out.len++] = (struct compared){ "command",
                                             { "bash, else sh, where it needs a shell",
                                               "the same, of the image", "the same, of the image" },
                                             NULL };
    out.list[out.len++] =
        (struct compared){ "image", { nothing, "as the file says", "as the file says" }, NULL };
    if (any_resources(plan)) {
        out.list[out.len++] =
            (struct compared){ "requests",
                               { "reserved in the queue of this home", "reserved by the cluster",
                                 "the same for a role" },
                               NULL };
        out.list[out.len++] =
            (struct compared){ "limits",
                               { "enforced where control groups can be made",
                                 "enforced by the kubelet", "the same for a role" },
                               NULL };
    }
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++) {
        bool is_ref = i >= ATTRIBUTE_SECRET_REFS;

        if (any_given(plan, i))
            out.list[out.len++] = (struct compared){ attribute_name(i),
                                                     { is_ref ? refused : nothing, each, role },
                                                     NULL };
    }
    for (size_t i = 0; i < out.len; i++)
        for (enum side side = SIDE_NATIVE; side < SIDE_COUNT; side++)
            if (comparison->sides[side].refusal)
                out.list[i].on[side] = NULL;
    return out;
}
