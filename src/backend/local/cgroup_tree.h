/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of control groups of this machine as directories: where a group can be made, and
 * how one is removed with all that is in it. What the groups are for is cgroup.h's matter.
 */
#ifndef BACKEND_LOCAL_CGROUP_TREE_H
#define BACKEND_LOCAL_CGROUP_TREE_H

#include <stdint.h>

#include "backend/local/cgroup_map.h"
#include "base/buf.h"

enum {
    CGROUP_NAME_MOST = 80,
    CGROUP_WHY_MOST = 256,
    CGROUP_TEXT_MOST = 4096, /* of a control file */
};

enum cgroup_version { CGROUP_V1, CGROUP_V2 };

/* "myelin-<id>": the name of a run's group. */
void cgroup_name(char out[static CGROUP_NAME_MOST], const char *id);

/* Both return 0 or errno. The text that was read ends with a NUL and may be cut; on failure it is
 * empty. */
int cgroup_write(int directory, const char *file, const char *text);
int cgroup_read(int directory, const char *file, char *text, size_t size);

/* ---- where ---- */

/* What the kernel says of this process, read once. */
struct cgroup_places {
    struct buf mountinfo, self;
};
void cgroup_places_read(struct cgroup_places *places);
void cgroup_places_release(struct cgroup_places *places);

struct cgroup_place {
    bool is_usable;
    char parent[PATH_MAX];     /* where groups can be made */
    uint32_t passes;           /* v2: a bit for each controller that they then have */
    char why[CGROUP_WHY_MOST]; /* if it is not usable: what is in the way */
};

/* The v1 tree of a controller. False: there is none. */
bool cgroup_place_v1(const struct cgroup_places *places, const char *controller,
                     struct cgroup_place *out);

enum cgroup_asking {
    CGROUP_ASK,  /* a group to pass controllers on, if it does not yet */
    CGROUP_LOOK, /* whether it would: nothing is changed */
};

/* The place in the unified tree that passes on the most of the controllers, the nearest of
 * several. A process has one group in that tree, so that there is one place for all controllers. */
void cgroup_place_v2(const struct cgroup_places *places, const char *const *controllers, size_t n,
                     enum cgroup_asking asking, struct cgroup_place *out);

enum cgroup_search {
    CGROUP_COUNT_NEAR, /* where the process's own group is; in the unified tree also above */
    CGROUP_COUNT_ALL,  /* in the whole tree, as far as it is seen from here */
    CGROUP_CLEAR_ALL,  /* likewise; they are killed once and removed; those that stay are counted */
};

/* How many groups of that name there are in the tree of the controller; NULL: in the unified
 * tree. A directory that cannot be looked into for want of descriptors counts as one: who takes
 * what is not known for nothing gives away what a run holds. A dead run may have stood anywhere: in
 * another session, in a scope of its own. */
unsigned cgroup_places_holding(const struct cgroup_places *places, const char *controller,
                               const char *name, enum cgroup_search search);

/* ---- the end of groups ---- */

/* Removes the group and all below it, if nothing lives there. Returns 0 or errno; 0 also when
 * there is none. */
int cgroup_remove(int parent, const char *name);

/* Removes the groups of runs whose supervisor is gone, and ends what lives in them. */
void cgroup_remove_stale(int parent, const char *except);

#endif
