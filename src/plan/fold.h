/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of tasks as people write them: "master.0, worker[0-1,3-6], ps.0". */
#ifndef PLAN_FOLD_H
#define PLAN_FOLD_H

#include "model/plan.h"

/* Appends numbers in ascending order as "0-1,3-6". */
MUST_CHECK int fold_numbers(const uint32_t *numbers, size_t n, struct buf *out, struct error *err);

/* Appends those tasks that are wanted, in rank order; nothing for none. A role's only task is
 * written as "worker.2", several as "worker[0-1,3]". */
MUST_CHECK int fold_tasks(const struct plan *plan, bool (*want)(const void *context, uint32_t rank),
                          const void *context, struct buf *out, struct error *err);

/* Tasks of one role that are given the same. */
struct task_group {
    enum role role;
    const uint32_t *ranks; /* ascending */
    uint32_t n;
};

struct task_groups {
    struct task_group *list; /* in the order of their first ranks */
    size_t len;
    uint32_t *ranks; /* of all groups, one behind the other */
};

/* Parts the tasks by what they are given. */
struct task_groups group_tasks(const struct plan *plan);
void task_groups_release(struct task_groups *groups);

/* Appends "worker[0-1,3-6]" or "worker.2". */
MUST_CHECK int fold_group(const struct plan *plan, const struct task_group *group, struct buf *out,
                          struct error *err);

#endif
