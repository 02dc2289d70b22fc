/* SPDX-License-Identifier: Apache-2.0 */
#include "store/origin.h"

#include <assert.h>
#include <string.h>

#include "store/owner.h"
#include "store/record.h"

static const char *const names[] = {
    [ORIGIN_NONE] = "none",     [ORIGIN_RESTARTED] = "restarted", [ORIGIN_RESUMED] = "resumed",
    [ORIGIN_COPIED] = "copied", [ORIGIN_RERUN] = "rerun",
};
static_assert(ARRAY_LEN(names) == ORIGIN_MANNER_COUNT, "every manner has a name");

const char *origin_manner_name(enum origin_manner manner) {
    assert(manner < ORIGIN_MANNER_COUNT);
    return names[manner];
}

bool origin_manner_named(const char *name, enum origin_manner *out) {
    for (enum origin_manner i = ORIGIN_NONE + 1; i < ORIGIN_MANNER_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Pods go on when nobody here watches them. */
static bool goes_on(const struct rundir *rundir) {
    struct run_record record;
    struct error ignored;
    bool has_pods;
    pid_t pid;

    if (owner_lives(rundir, &pid))
        return true;
    if (record_read(&record, rundir, &ignored))
        return false;
    has_pods = record.backend && !state_is_final(record.state);
    record_release(&record);
    return has_pods;
}

int outputs_user(const char *home, const struct rundir *rundir, enum outputs_users which,
                 struct arena *arena, const char **out, struct error *err) {
    unsigned long *ids;
    struct error gone;
    size_t n;

    if (rundir_list(home, arena, &ids, &n, err))
        return -1;
    *out = NULL;
    for (size_t i = 0; i < n && !*out; i++) {
        struct rundir other;

        if (rundir_open(home, ids[i], arena, &other, &gone))
            continue;
        /* Only the owner of a run can resume it: what others claim does not count. */
        if (strcmp(other.id, rundir->id) != 0 && other.owner == rundir->owner &&
            strcmp(other.outputs_of, rundir->outputs_of) == 0 &&
            (which == OUTPUTS_USERS_ANY || goes_on(&other)))
            *out = other.id;
    }
    return 0;
}
