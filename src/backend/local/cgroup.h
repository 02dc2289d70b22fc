/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits that hold: the control groups of one run.
 *
 *   <own group of the supervisor>/myelin-<run>/worker.2      in each tree that is needed
 *
 * On v1 each controller has a tree of its own, and a task gets a group only in those whose
 * limits it has. A ceiling of processes that all tasks share is one of the run's group, which the
 * tasks enter themselves where they need no group of their own for anything else: a group costs
 * more than the entry. On v2 there is one tree; as no group there may hold both processes and
 * groups with controllers, the run's group stands beside the supervisor's own, in the nearest group
 * above it that this user may write and that may pass controllers on; where there is none, systemd
 * is asked for a scope (scope.h), and the supervisor moves there.
 *
 * What the machine does not offer is no failure: cgroups_missing says so in words.
 *
 * Nothing is left behind. The supervisor holds a lock (flock) on its run's groups; whoever
 * gets that lock knows that the run is dead. cgroups_open removes the groups of dead runs that
 * it finds beside its own, with what still lives in them; the keeper calls cgroups_clear.
 */
#ifndef BACKEND_LOCAL_CGROUP_H
#define BACKEND_LOCAL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "model/resources.h"

enum controller { CONTROLLER_CPU, CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_COUNT };

struct cgroups; /* of a run */
struct cgroup;  /* of a task */

/* How a process that is being made gets into its groups: it writes "0" to each of the files
 * (v1), or is made in the directory (v2). */
struct cgroup_entry {
    int files[CONTROLLER_COUNT];
    int n_files;
    int shared;    /* a file as well, borrowed from the run's groups; -1: none */
    int directory; /* -1: none */
};
#define CGROUP_ENTRY_NONE                                                                          \
    { .shared = -1, .directory = -1 }
void cgroup_entry_release(struct cgroup_entry *entry);

/* Looks at what the machine offers, and may move this process for it. `id` is the run's, of at most
 * 64 letters and digits. */
struct cgroups *cgroups_open(const char *id, const struct process_ceiling *processes,
                             uint32_t n_tasks);
/* Gives the lock back; groups that are left stay. Takes NULL. */
void cgroups_free(struct cgroups *groups);

/* Makes the groups of a task. *out is NULL when the task has no limit that can be enforced. */
MUST_CHECK int cgroup_make(struct cgroups *groups, const char *task, const struct resources *limits,
                           struct cgroup **out, struct cgroup_entry *entry, struct error *err);

/* Which limit a task that failed ran into, if any. */
struct task_limit cgroup_limit_hit(const struct cgroups *groups, const struct cgroup *group);

/* Removes the task's groups as far as nothing lives in them, and frees it. Takes NULL. */
void cgroup_end(struct cgroups *groups, struct cgroup *group);

/* Kills all that is in the run's groups at one blow, where the kernel has a call for it (v2). */
void cgroups_kill(struct cgroups *groups);
/* Removes what is left of the run's groups. False: some cannot be removed yet. Takes NULL. */
bool cgroups_remove(struct cgroups *groups);

/* Looks at what the machine offers, makes nothing and asks nobody; for cgroups_missing alone, which
 * is as hopeful as can be where systemd might give us a place. */
struct cgroups *cgroups_look(void);

/* Why limits of the resource cannot be enforced here; NULL: they can. */
const char *cgroups_missing(const struct cgroups *groups, enum resource resource);

/* Ends what lives in the groups of a run that has no supervisor any more, and removes them,
 * wherever in the trees they are: once, and again until none is left or the time is over. Returns
 * how many groups are left. */
unsigned cgroups_clear(const char *id, unsigned most_ms);
/* Whether there are groups of such a run, anywhere in the trees. */
bool cgroups_are_left(const char *id);
/* How many groups of the run there are, in the trees that the caller would use. */
unsigned cgroups_count(const char *id);

#endif
