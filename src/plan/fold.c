/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

int fold_numbers(const uint32_t *numbers, size_t n, struct buf *out, struct error *err) {
    for (size_t i = 0; i < n; i++) {
        size_t start = i;

        while (i + 1 < n && numbers[i + 1] == numbers[i] + 1)
            i++;
        if (buf_printf(out, err, "%s%" PRIu32, start ? "," : "", numbers[start]) ||
            (i > start && buf_printf(out, err, "-%" PRIu32, numbers[i])))
            return -1;
    }
    return 0;
}

static int fold_role(enum role role, const uint32_t *indexes, size_t n, struct buf *out,
                     struct error *err) {
    if (n == 1)
        return buf_printf(out, err, "%s.%" PRIu32, role_name(role), indexes[0]);
    if (buf_printf(out, err, "%s[", role_name(role)) || fold_numbers(indexes, n, out, err))
        return -1;
    return buf_append(out, "]", 1, err);
}

int fold_tasks(const struct plan *plan, bool (*want)(const void *context, uint32_t rank),
               const void *context, struct buf *out, struct error *err) {
    VEC(uint32_t) indexes = { 0 };
    bool any = false;
    uint32_t rank = 0;
    int status = 0;

    for (enum role role = 0; role < ROLE_COUNT && status == 0; role++) {
        indexes.len = 0;
        for (uint32_t i = 0; i < plan->n_role[role]; i++, rank++)
            if (want(context, rank))
                *VEC_PUSH(&indexes) = i;
        if (indexes.len == 0)
            continue;
        status = any ? buf_append(out, ", ", 2, err) : 0;
        if (status == 0)
            status = fold_role(role, indexes.items, indexes.len, out, err);
        any = true;
    }
    VEC_RELEASE(&indexes);
    return status;
}

/* ---- groups ---- */

static uint64_t hash_node(uint64_t hash, const struct node *node) {
    if (!node)
        return hash_bytes(hash, "", 1);
    hash = hash_bytes(hash, &node->kind, 1);
    switch (node->kind) {
    case NODE_TEXT: return hash_bytes(hash, node->text, node->count);
    case NODE_INT: return hash_bytes(hash, &node->integer, sizeof node->integer);
    case NODE_LIST:
        for (uint32_t i = 0; i < node->count; i++)
            hash = hash_node(hash, &node->items[i]);
        return hash;
    default: return hash_bytes(hash, &node->count, sizeof node->count); /* maps have no order */
    }
}

static uint64_t hash_profile(const struct profile *profile) {
    uint64_t hash = hash_bytes(HASH_INIT, &profile->resources, sizeof profile->resources);

    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
        hash = hash_node(hash, profile->given[i]);
    return hash;
}

static bool profiles_equal(const struct profile *a, const struct profile *b) {
    if (a == b)
        return true;
    if (!resources_equal(&a->resources, &b->resources))
        return false;
    for (enum attribute i = 0; i < ATTRIBUTE_COUNT; i++)
        if ((a->given[i] == NULL) != (b->given[i] == NULL) ||
            (a->given[i] && !node_equal(a->given[i], b->given[i])))
            return false;
    return true;
}

struct hashed {
    uint64_t hash;
    uint32_t rank;
    enum role role;
};

static int by_hash(const void *a, const void *b) {
    const struct hashed *x = a, *y = b;

    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

static int by_first_rank(const void *a, const void *b) {
    const struct task_group *x = a, *y = b;

    return x->ranks[0] < y->ranks[0] ? -1 : 1;
}

struct task_groups group_tasks(const struct plan *plan) {
    struct task_groups groups = { 0 };
    struct hashed *hashed = calloc(plan->n_tasks + 1u, sizeof *hashed);
    const struct profile *last = NULL;
    uint64_t hash = 0;

    groups.ranks = calloc(plan->n_tasks + 1u, sizeof *groups.ranks);
    groups.list = calloc(plan->n_tasks + 1u, sizeof *groups.list);
    if (!hashed || !groups.ranks || !groups.list)
        abort();
    for (uint32_t i = 0; i < plan->n_tasks; i++) {
        const struct task *task = &plan->tasks[i];

        if (task->profile != last) {
            last = task->profile;
            hash = hash_profile(last);
        }
        hashed[i] = (struct hashed){ hash, i, task->role };
    }
    qsort(hashed, plan->n_tasks, sizeof *hashed, by_hash);
    for (uint32_t i = 0; i < plan->n_tasks; i++) {
        const struct task *task = &plan->tasks[hashed[i].rank];
        struct task_group *group = groups.len ? &groups.list[groups.len - 1] : NULL;

        groups.ranks[i] = hashed[i].rank;
        if (group && group->role == task->role &&
            profiles_equal(plan->tasks[group->ranks[0]].profile, task->profile))
            group->n++;
        else
            groups.list[groups.len++] = (struct task_group){ task->role, &groups.ranks[i], 1 };
    }
    qsort(groups.list, groups.len, sizeof *groups.list, by_first_rank);
    free(hashed);
    return groups;
}

void task_groups_release(struct task_groups *groups) {
    free(groups->list);
    free(groups->ranks);
    *groups = (struct task_groups){ 0 };
}

int fold_group(const struct plan *plan, const struct task_group *group, struct buf *out,
               struct error *err) {
    uint32_t *indexes = calloc(group->n, sizeof *indexes);
    int status;

    if (!indexes)
        abort();
    for (uint32_t i = 0; i < group->n; i++)
        indexes[i] = plan->tasks[group->ranks[i]].index;
    status = fold_role(group->role, indexes, group->n, out, err);
    free(indexes);
    return status;
}
