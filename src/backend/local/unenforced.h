/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits of a gang this machine cannot hold, in one sentence: after the attempt, and before
 * it, by looking alone. */
#ifndef BACKEND_LOCAL_UNENFORCED_H
#define BACKEND_LOCAL_UNENFORCED_H

#include "backend/local/cgroup.h"
#include "model/plan.h"

/* CPU and memory come first; devices are not limited but granted (CUDA_VISIBLE_DEVICES). */
#define RESOURCES_LIMITED (RESOURCE_MEMORY + 1)

/* "not enforced here: cpu, memory (this user may not make control groups in ...)" */
struct unenforced_text {
    char text[512]; /* empty: all that is asked is enforced */
};

/* `asked` is the largest limit that a task has; 0: none. */
struct unenforced_text unenforced_text(const struct cgroups *groups,
                                       const milli asked[RESOURCES_LIMITED]);

/* What will be said of the plan when it is started here. Nothing is made or changed for it, and
 * systemd is not asked; where that might give us a place, nothing is foreseen. */
struct unenforced_text unenforced_foresee(const struct plan *plan);

#endif
