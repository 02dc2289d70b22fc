/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a process stands in the trees of control groups, from the texts of
 * /proc/self/mountinfo and /proc/self/cgroup. Pure.
 *
 *   mountinfo   35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
 *   cgroup      4:memory:/user/7                      v1: one line a tree
 *               0::/user.slice/session-3.scope        v2: the unified tree
 *   gives       /sys/fs/cgroup/memory + /user/7
 *
 * Both machines with one unified tree and those with a tree for each controller exist, and
 * hybrids, whose unified tree has no controllers.
 */
#ifndef BACKEND_LOCAL_CGROUP_MAP_H
#define BACKEND_LOCAL_CGROUP_MAP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum cgroup_found {
    CGROUP_FOUND,
    CGROUP_NOT_MOUNTED,
    CGROUP_OUTSIDE, /* what is mounted here does not show the process's own group */
};

struct cgroup_spot {
    char path[PATH_MAX]; /* the directory of the process's own group */
    size_t mount_len;    /* of path: where the tree is mounted, at which its parents end */
};

/* Of a v1 tree that has the controller; of the unified tree for NULL. *out is set only with
 * CGROUP_FOUND. Where a tree is mounted twice, the first mount that shows the group counts. */
enum cgroup_found cgroup_map_find(const char *mountinfo, const char *self, const char *controller,
                                  struct cgroup_spot *out);

/* Is the word in the list, of words that the separator parts? ("cpu" in "cpuset cpu io\n") */
bool cgroup_map_lists(const char *list, size_t n, const char *word, char separator);

/* The number behind the key, of "key number" lines as in memory.events; -1: there is none. */
long long cgroup_map_value(const char *text, const char *key);

#endif
