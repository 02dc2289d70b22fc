/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/local/cgroup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "backend/local/ceiling.h"
#include "backend/local/cgroup_tree.h"
#include "backend/local/scope.h"
#include "base/clock.h"

enum {
    MIB = 1024 * 1024,
    CPU_PERIOD_US = 100 * 1000, /* the kernel's own */
    CPU_QUOTA_LEAST_US = 1000,  /* what the kernel takes */
    CLAIM_TRIES = 50,
    CLEAR_PAUSE_MS = 10,
    ALL_CONTROLLERS = (1 << CONTROLLER_COUNT) - 1,
};

static const char *const controller_names[] = { "cpu", "memory", "pids" };
static_assert(ARRAY_LEN(controller_names) == CONTROLLER_COUNT, "every controller has a name");

/* One tree, and the run's group in it. */
struct tree {
    enum cgroup_version version;
    char parent[PATH_MAX]; /* where the run's group is made */
    int parent_fd, run_fd; /* -1: not opened, not made yet */
    bool counts_swap;      /* v1: the machine has swap, which would add to a task's memory */
};

struct cgroups {
    char name[CGROUP_NAME_MOST]; /* of the run's group in each tree */
    struct tree trees[CONTROLLER_COUNT];
    size_t n_trees;
    struct tree *of[CONTROLLER_COUNT]; /* NULL: it cannot be used, and why */
    char why[CONTROLLER_COUNT][CGROUP_WHY_MOST];
    struct process_ceiling processes;
    uint32_t n_tasks;
    int64_t run_ceiling; /* of the processes of all tasks, held by the run's group; 0: none */
    bool may_be_given;   /* was looked at only: systemd might give us a place */
    int run_entry;       /* v1: the file by which they enter that group; -1: not opened yet */
};

struct cgroup {
    int64_t limits[CONTROLLER_COUNT]; /* thousandths of a core, bytes, processes; 0: none */
    bool shares_ceiling;              /* its processes count for the run's */
    char name[];
};

/* ---- what the machine offers ---- */

static struct tree *add_tree(struct cgroups *groups, enum cgroup_version version,
                             const char *parent) {
    struct tree *tree;

    for (size_t i = 0; i < groups->n_trees; i++)
        if (strcmp(groups->trees[i].parent, parent) == 0)
            return &groups->trees[i]; /* cpu and memory may share a tree */
    tree = &groups->trees[groups->n_trees++];
    *tree = (struct tree){ .version = version, .run_fd = -1 };
    snprintf(tree->parent, sizeof tree->parent, "%s", parent);
    tree->parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return tree;
}

/* Which controllers have a tree of their own; the unified tree may have the others. */
static uint32_t find_v1(struct cgroups *groups, const struct cgroup_places *places) {
    struct cgroup_place place;
    uint32_t found = 0;

    for (int i = 0; i < CONTROLLER_COUNT; i++) {
        if (!cgroup_place_v1(places, controller_names[i], &place))
            continue;
        found |= 1u << i;
        if (place.is_usable)
            groups->of[i] = add_tree(groups, CGROUP_V1, place.parent);
        snprintf(groups->why[i], sizeof groups->why[i], "%s", place.why);
    }
    return found;
}

/* `on_v1` are not looked for here. */
static void find_v2(struct cgroups *groups, const struct cgroup_place *place, uint32_t on_v1) {
    for (int i = 0; i < CONTROLLER_COUNT; i++) {
        if (on_v1 >> i & 1)
            continue;
        if (place->passes >> i & 1)
            groups->of[i] = add_tree(groups, CGROUP_V2, place->parent);
        else if (place->is_usable)
            snprintf(groups->why[i], sizeof groups->why[i],
                     "the controller is not delegated to this user in %.150s", place->parent);
        else
            snprintf(groups->why[i], sizeof groups->why[i], "%s", place->why);
    }
}

/* In a session that nobody may write to, systemd is asked for a place. `id` NULL: it is only
 * looked, and nothing is changed. */
static void find_trees(struct cgroups *groups, const char *id) {
    const enum cgroup_asking asking = id ? CGROUP_ASK : CGROUP_LOOK;
    struct cgroup_places places;
    struct cgroup_place place;
    char why[CGROUP_WHY_MOST] = "";
    uint32_t on_v1;

    cgroup_places_read(&places);
    on_v1 = find_v1(groups, &places);
    if (on_v1 != ALL_CONTROLLERS) {
        cgroup_place_v2(&places, controller_names, CONTROLLER_COUNT, asking, &place);
        if (on_v1 == 0 && place.passes != ALL_CONTROLLERS && !id) {
            groups->may_be_given = scope_may_be_given();
        } else if (on_v1 == 0 && place.passes != ALL_CONTROLLERS && scope_enter(id, why)) {
            cgroup_places_release(&places);
            cgroup_places_read(&places);
            cgroup_place_v2(&places, controller_names, CONTROLLER_COUNT, asking, &place);
        } else if (on_v1 == 0 && !place.is_usable && why[0]) {
            snprintf(place.why, sizeof place.why, "%s", why);
        }
        find_v2(groups, &place, on_v1);
    }
    cgroup_places_release(&places);
}

struct cgroups *cgroups_open(const char *id, const struct process_ceiling *processes,
                             uint32_t n_tasks) {
    struct cgroups *groups = calloc(1, sizeof *groups);

    if (!groups)
        abort();
    cgroup_name(groups->name, id);
    groups->processes = *processes;
    groups->n_tasks = n_tasks;
    groups->run_entry = -1;
    find_trees(groups, id);
    for (size_t i = 0; i < groups->n_trees; i++) {
        cgroup_remove_stale(groups->trees[i].parent_fd, groups->name);
        scope_clear_dead(groups->trees[i].parent, groups->name);
    }
    return groups;
}

struct cgroups *cgroups_look(void) {
    struct cgroups *groups = calloc(1, sizeof *groups);

    if (!groups)
        abort();
    groups->run_entry = -1;
    find_trees(groups, NULL);
    return groups;
}

void cgroups_free(struct cgroups *groups) {
    if (!groups)
        return;
    for (size_t i = 0; i < groups->n_trees; i++) {
        if (groups->trees[i].run_fd >= 0)
            close(groups->trees[i].run_fd);
        if (groups->trees[i].parent_fd >= 0)
            close(groups->trees[i].parent_fd);
    }
    if (groups->run_entry >= 0)
        close(groups->run_entry);
    free(groups);
}

const char *cgroups_missing(const struct cgroups *groups, enum resource resource) {
    if (groups->may_be_given)
        return NULL;
    switch (resource) {
    case RESOURCE_CPU: return groups->of[CONTROLLER_CPU] ? NULL : groups->why[CONTROLLER_CPU];
    case RESOURCE_MEMORY:
        return groups->of[CONTROLLER_MEMORY] ? NULL : groups->why[CONTROLLER_MEMORY];
    case RESOURCE_GPU:
    case RESOURCE_TPU:
    case RESOURCE_COUNT: break;
    }
    return NULL; /* devices are granted, not limited */
}

/* ---- the run's group ---- */

/* Whether the tree is the one in which the run's own group holds a ceiling of processes. */
static bool holds_run_ceiling(const struct cgroups *groups, const struct tree *tree) {
    return tree == groups->of[CONTROLLER_PIDS] && groups->processes.scope == LIMIT_OF_RUN &&
           groups->processes.each > 0;
}

/* Passes the controllers on to the tasks' groups (v2); not that of a ceiling which the run's own
 * holds, so that processes count there and nowhere else. */
static void enable_controllers(const struct cgroups *groups, const struct tree *tree) {
    for (int i = 0; tree->version == CGROUP_V2 && i < CONTROLLER_COUNT; i++) {
        char word[16];

        snprintf(word, sizeof word, "+%s", controller_names[i]);
        if (groups->of[i] == tree && !(i == CONTROLLER_PIDS && holds_run_ceiling(groups, tree)))
            cgroup_write(tree->run_fd, "cgroup.subtree_control", word);
    }
}

/* Sets the ceiling that all tasks share, and opens the way into the group that holds it. Returns 0
 * or errno. */
static int hold_run_ceiling(struct cgroups *groups, const struct tree *tree) {
    char text[32];
    int errnum;

    if (!holds_run_ceiling(groups, tree))
        return 0;
    groups->run_ceiling =
        ceiling_of_run(groups->processes.each, groups->n_tasks, ceiling_room(tree->parent));
    snprintf(text, sizeof text, "%" PRId64, groups->run_ceiling);
    errnum = cgroup_write(tree->run_fd, "pids.max", text);
    if (errnum || tree->version == CGROUP_V2)
        return errnum;
    groups->run_entry = openat(tree->run_fd, "tasks", O_WRONLY | O_CLOEXEC);
    return groups->run_entry < 0 ? errno : 0;
}

/* Keeps the tasks' memory out of the swap, as far as that can be said once for all of them: on v2
 * for good. On v1 it holds for swap that is added later, until the whole machine is short of
 * memory; where there is swap already, each task's own ceiling counts it. */
static void keep_from_swap(const struct cgroups *groups, struct tree *tree) {
    struct sysinfo machine;

    if (groups->of[CONTROLLER_MEMORY] != tree)
        return;
    if (tree->version == CGROUP_V2) {
        cgroup_write(tree->run_fd, "memory.swap.max", "0");
        return;
    }
    tree->counts_swap = sysinfo(&machine) < 0 || machine.totalswap > 0;
    cgroup_write(tree->run_fd, "memory.swappiness", "0");
}

/* Makes the run's group and takes its lock. A run that clears away the dead may have been
 * between the two, and taken ours for one: then it is made again. */
static int claim(struct cgroups *groups, struct tree *tree) {
    for (int i = 0; i < CLAIM_TRIES; i++) {
        struct stat made, named;
        int fd;

        if (mkdirat(tree->parent_fd, groups->name, 0755) < 0 && errno != EEXIST)
            return errno;
        fd = openat(tree->parent_fd, groups->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &made) == 0 &&
            fstatat(tree->parent_fd, groups->name, &named, 0) == 0 && made.st_ino == named.st_ino) {
            tree->run_fd = fd;
            enable_controllers(groups, tree);
            keep_from_swap(groups, tree);
            return hold_run_ceiling(groups, tree);
        }
        if (fd >= 0)
            close(fd);
        clock_pause_ms(1);
    }
    return EBUSY;
}

/* A tree in which not even the run's group can be made is one that is not offered. */
static bool use_tree(struct cgroups *groups, enum controller controller) {
    struct tree *tree = groups->of[controller];
    int errnum;

    if (!tree)
        return false;
    if (tree->run_fd >= 0)
        return true;
    errnum = claim(groups, tree);
    if (errnum == 0)
        return true;
    for (int i = 0; i < CONTROLLER_COUNT; i++) {
        if (groups->of[i] != tree)
            continue;
        groups->of[i] = NULL;
        snprintf(groups->why[i], sizeof groups->why[i], "cannot make a control group in %.150s: %s",
                 tree->parent, strerror(errnum));
    }
    return false;
}

/* ---- the group of a task ---- */

/* Writes to a file of the task's group. The path goes through the run's group, which is open
 * anyway: to open each task's would cost as much as to write. */
static int write_control(const struct tree *tree, const char *task, const char *file,
                         const char *text) {
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", task, file);
    return cgroup_write(tree->run_fd, path, text);
}

/* The kernel refuses a share that is larger than that of a group above (EINVAL, v1 alone);
 * then that one holds, and is the tighter. */
static int limit_cpu(const struct tree *tree, const char *task, int64_t thousandths) {
    const int64_t most = INT64_MAX / CPU_PERIOD_US;
    const int64_t wanted = thousandths < most ? thousandths : most;
    const bool is_small = wanted * (CPU_PERIOD_US / 1000) < CPU_QUOTA_LEAST_US;
    const int64_t period = is_small ? 10 * CPU_PERIOD_US : CPU_PERIOD_US;
    const int64_t quota = wanted * (period / 1000);
    char text[64];
    int errnum;

    if (tree->version == CGROUP_V2) {
        snprintf(text, sizeof text, "%" PRId64 " %" PRId64, quota, period);
        return write_control(tree, task, "cpu.max", text);
    }
    snprintf(text, sizeof text, "%" PRId64, period);
    errnum = is_small ? write_control(tree, task, "cpu.cfs_period_us", text) : 0;
    if (errnum)
        return errnum;
    snprintf(text, sizeof text, "%" PRId64, quota);
    errnum = write_control(tree, task, "cpu.cfs_quota_us", text);
    return errnum == EINVAL ? 0 : errnum;
}

/* Memory is memory: swap does not add to it, where the kernel counts swap at all. */
static int limit_memory(const struct tree *tree, const char *task, int64_t bytes) {
    const bool is_v1 = tree->version == CGROUP_V1;
    char text[32];
    int errnum;

    snprintf(text, sizeof text, "%" PRId64, bytes);
    errnum = write_control(tree, task, is_v1 ? "memory.limit_in_bytes" : "memory.max", text);
    if (errnum == 0 && is_v1 && tree->counts_swap)
        write_control(tree, task, "memory.memsw.limit_in_bytes", text);
    return errnum;
}

static int limit_processes(const struct tree *tree, const char *task, int64_t most) {
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, most);
    return write_control(tree, task, "pids.max", text);
}

static int (*const limit_by[])(const struct tree *tree, const char *task,
                               int64_t amount) = { limit_cpu, limit_memory, limit_processes };
static_assert(ARRAY_LEN(limit_by) == CONTROLLER_COUNT, "every controller limits");

static int64_t bytes_of(milli mebibytes) {
    const int64_t whole = mebibytes / 1000;

    if (whole >= INT64_MAX / MIB)
        return INT64_MAX;
    return whole * MIB + mebibytes % 1000 * MIB / 1000;
}

/* Opens the way into the task's group: once for each tree, whatever the controllers in it. */
static int open_entry(const struct tree *tree, const char *task, struct cgroup_entry *entry) {
    char path[PATH_MAX];
    int fd;

    if (tree->version == CGROUP_V2) {
        fd = openat(tree->run_fd, task, O_PATH | O_DIRECTORY | O_CLOEXEC);
        entry->directory = fd;
    } else {
        snprintf(path, sizeof path, "%s/tasks", task);
        fd = openat(tree->run_fd, path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            entry->files[entry->n_files++] = fd;
    }
    return fd < 0 ? errno : 0;
}

/* Whether the task has a group in the tree. On v2 the run's own may get groups with controllers,
 * and so no processes. */
static bool limits_in(const struct cgroups *groups, const struct tree *tree,
                      const struct cgroup *group) {
    for (int i = 0; i < CONTROLLER_COUNT; i++)
        if (groups->of[i] == tree && group->limits[i])
            return true;
    return group->shares_ceiling && tree == groups->of[CONTROLLER_PIDS] &&
           tree->version == CGROUP_V2;
}

/* Makes the task's group in the tree, with the limits that the tree enforces. */
static int limit_in(struct cgroups *groups, const struct tree *tree, const struct cgroup *group,
                    struct cgroup_entry *entry, struct error *err) {
    int errnum;

    if (mkdirat(tree->run_fd, group->name, 0755) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make a control group in %s/%s", tree->parent,
                               groups->name);
    for (int i = 0; i < CONTROLLER_COUNT; i++) {
        if (groups->of[i] != tree || !group->limits[i])
            continue;
        errnum = limit_by[i](tree, group->name, group->limits[i]);
        if (errnum)
            return error_set_errno(err, errnum, "cannot limit its %s", controller_names[i]);
    }
    errnum = open_entry(tree, group->name, entry);
    if (errnum)
        return error_set_errno(err, errnum, "cannot open its control group in %s/%s", tree->parent,
                               groups->name);
    return 0;
}

void cgroup_entry_release(struct cgroup_entry *entry) {
    for (int i = 0; i < entry->n_files; i++)
        close(entry->files[i]);
    if (entry->directory >= 0)
        close(entry->directory);
    *entry = (struct cgroup_entry)CGROUP_ENTRY_NONE;
}

static struct cgroup *cgroup_new(struct cgroups *groups, const char *task,
                                 const struct resources *limits) {
    const milli cpu = limits->of[RESOURCE_CPU].limits, memory = limits->of[RESOURCE_MEMORY].limits;
    const int64_t wanted[CONTROLLER_COUNT] = {
        [CONTROLLER_CPU] = cpu > 0 ? cpu : 0,
        [CONTROLLER_MEMORY] = memory > 0 ? bytes_of(memory) : 0,
        [CONTROLLER_PIDS] = cpu > 0 || memory > 0 ? groups->processes.each : 0,
    };
    struct cgroup *group = calloc(1, sizeof *group + strlen(task) + 1);
    bool any = false;

    if (!group)
        abort();
    memcpy(group->name, task, strlen(task) + 1);
    for (int i = 0; i < CONTROLLER_COUNT; i++)
        if (wanted[i] && use_tree(groups, (enum controller)i)) {
            group->limits[i] = wanted[i];
            any = true;
        }
    if (groups->run_ceiling && group->limits[CONTROLLER_PIDS]) {
        group->limits[CONTROLLER_PIDS] = 0; /* nothing of its own */
        group->shares_ceiling = true;
    }
    if (any)
        return group;
    free(group);
    return NULL;
}

int cgroup_make(struct cgroups *groups, const char *task, const struct resources *limits,
                struct cgroup **out, struct cgroup_entry *entry, struct error *err) {
    struct cgroup *group = cgroup_new(groups, task, limits);
    struct cgroup_entry made = CGROUP_ENTRY_NONE;

    for (size_t i = 0; group && i < groups->n_trees; i++) {
        if (limits_in(groups, &groups->trees[i], group) &&
            limit_in(groups, &groups->trees[i], group, &made, err)) {
            cgroup_entry_release(&made);
            cgroup_end(groups, group);
            return -1;
        }
    }
    if (group && group->shares_ceiling && !limits_in(groups, groups->of[CONTROLLER_PIDS], group))
        made.shared = groups->run_entry;
    *out = group;
    *entry = made;
    return 0;
}

void cgroup_end(struct cgroups *groups, struct cgroup *group) {
    if (!group)
        return;
    for (size_t i = 0; i < groups->n_trees; i++)
        if (groups->trees[i].run_fd >= 0 && limits_in(groups, &groups->trees[i], group))
            unlinkat(groups->trees[i].run_fd, group->name, AT_REMOVEDIR); /* later if it is busy */
    free(group);
}

/* ---- which limit was hit ---- */

static long long read_value(int run_fd, const char *task, const char *file, const char *key) {
    char path[PATH_MAX], text[CGROUP_TEXT_MOST];

    snprintf(path, sizeof path, "%s/%s", task, file);
    if (cgroup_read(run_fd, path, text, sizeof text))
        return -1;
    return key ? cgroup_map_value(text, key) : strtoll(text, NULL, 10);
}

/* Whether it was the task's own limit that memory ran out at. The count of kills says nothing of
 * that: it is of processes of the group, whoever's limit they died for. On v1 a group that counts
 * swap as well fails there first. */
static bool is_own_memory(const struct tree *tree, const char *task) {
    if (tree->version == CGROUP_V2)
        return read_value(tree->run_fd, task, "memory.events", "oom") > 0;
    return read_value(tree->run_fd, task, "memory.failcnt", NULL) > 0 ||
           read_value(tree->run_fd, task, "memory.memsw.failcnt", NULL) > 0;
}

static bool memory_hit(const struct tree *tree, const struct cgroup *group,
                       struct task_limit *out) {
    const bool is_v2 = tree->version == CGROUP_V2;
    bool is_own;
    long long peak;

    if (read_value(tree->run_fd, group->name, is_v2 ? "memory.events" : "memory.oom_control",
                   "oom_kill") <= 0)
        return false;
    peak = read_value(tree->run_fd, group->name,
                      is_v2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
    is_own = is_own_memory(tree, group->name);
    *out = (struct task_limit){ .kind = TASK_LIMIT_MEMORY,
                                .scope = is_own ? LIMIT_OF_TASK : LIMIT_OUTSIDE,
                                .limit = is_own ? group->limits[CONTROLLER_MEMORY] : 0,
                                .peak = peak > 0 ? peak : 0 };
    return true;
}

/* Kernels differ in which group counts what was refused: that of the process, or that whose ceiling
 * it is. The two differ where the ceiling is the run's and the task has a group in the tree. */
static bool processes_hit(const struct cgroups *groups, const struct cgroup *group,
                          struct task_limit *out) {
    const int run_fd = groups->of[CONTROLLER_PIDS]->run_fd;
    const char *const holder = group->shares_ceiling ? "." : group->name;
    long long peak;

    if (read_value(run_fd, group->name, "pids.events", "max") <= 0 &&
        read_value(run_fd, holder, "pids.events", "max") <= 0)
        return false;
    peak = read_value(run_fd, holder, "pids.peak", NULL);
    *out = (struct task_limit){ .kind = TASK_LIMIT_PROCESSES,
                                .scope = group->shares_ceiling ? LIMIT_OF_RUN : LIMIT_OF_TASK,
                                .limit = group->shares_ceiling ? groups->run_ceiling
                                                               : group->limits[CONTROLLER_PIDS],
                                .peak = peak > 0 ? peak : 0 };
    return true;
}

struct task_limit cgroup_limit_hit(const struct cgroups *groups, const struct cgroup *group) {
    struct task_limit hit = { 0 };

    if (group->limits[CONTROLLER_MEMORY] && memory_hit(groups->of[CONTROLLER_MEMORY], group, &hit))
        return hit;
    if (group->shares_ceiling || group->limits[CONTROLLER_PIDS])
        processes_hit(groups, group, &hit);
    return hit;
}

/* ---- the end ---- */

void cgroups_kill(struct cgroups *groups) {
    for (size_t i = 0; i < groups->n_trees; i++)
        if (groups->trees[i].version == CGROUP_V2 && groups->trees[i].run_fd >= 0)
            cgroup_write(groups->trees[i].run_fd, "cgroup.kill", "1");
}

bool cgroups_remove(struct cgroups *groups) {
    bool is_gone = true;

    for (size_t i = 0; groups && i < groups->n_trees; i++) {
        struct tree *tree = &groups->trees[i];

        if (tree->run_fd < 0)
            continue;
        if (cgroup_remove(tree->parent_fd, groups->name) == 0) {
            close(tree->run_fd);
            tree->run_fd = -1;
        } else {
            is_gone = false;
        }
    }
    return is_gone;
}

/* In each tree that a run's group may be in. */
static unsigned look_for(const char *id, enum cgroup_search search) {
    char name[CGROUP_NAME_MOST];
    struct cgroup_places places;
    unsigned left = 0;

    /* It becomes a part of paths in which everything is killed. */
    if (id[strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")])
        return 0;
    cgroup_name(name, id);
    cgroup_places_read(&places);
    for (int i = 0; i <= CONTROLLER_COUNT; i++)
        left += cgroup_places_holding(&places, i < CONTROLLER_COUNT ? controller_names[i] : NULL,
                                      name, search);
    cgroup_places_release(&places);
    return left;
}

unsigned cgroups_count(const char *id) {
    return look_for(id, CGROUP_COUNT_NEAR);
}

bool cgroups_are_left(const char *id) {
    return look_for(id, CGROUP_COUNT_ALL) > 0;
}

unsigned cgroups_clear(const char *id, unsigned most_ms) {
    const int64_t until_us = clock_monotonic_us() + most_ms * INT64_C(1000);
    unsigned left = look_for(id, CGROUP_CLEAR_ALL);

    while (left && clock_monotonic_us() < until_us) {
        clock_pause_ms(CLEAR_PAUSE_MS);
        left = look_for(id, CGROUP_CLEAR_ALL);
    }
    return left;
}
