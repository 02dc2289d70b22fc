/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rights.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/sharing.h"

enum { GROUPS_MOST = 1024 };

bool rights_has(const struct rundir *rundir) {
    return rundir->owner == geteuid();
}

int rights_check(const struct rundir *rundir, struct error *err) {
    if (rights_has(rundir))
        return 0;
    return error_set(err, ERROR_DENIED, "run %s is not yours: it belongs to %s", rundir->id,
                     user_text(rundir->owner).text);
}

int rights_trust(const struct rundir *rundir, const char *what, struct error *err) {
    /* A program that is started now could take the real user's rights back. */
    if (getuid() != geteuid())
        return error_set(err, ERROR_DENIED,
                         "cannot %s: it belongs to %s, and root does not execute what it keeps; "
                         "`runuser -u %s -- myelin …` does it as its owner",
                         what, user_text(rundir->owner).text, user_text(rundir->owner).text);
    if (rights_has(rundir) || rundir->owner == 0)
        return 0;
    return error_set(err, ERROR_DENIED,
                     "cannot %s: it belongs to %s, and what it keeps would be executed with your "
                     "rights; read its files in '%.200s' and start them with 'myelin run'",
                     what, user_text(rundir->owner).text, rundir->path);
}

/* The groups that the owner is in, and that of the run: its owner was in it, else the run would not
 * be there. */
static int take_groups(const struct rundir *rundir) {
    const struct passwd *user = getpwuid(rundir->owner);
    gid_t groups[GROUPS_MOST + 1];
    int n = GROUPS_MOST;

    if (!user)
        n = 0;
    else if (getgrouplist(user->pw_name, user->pw_gid, groups, &n) < 0)
        n = GROUPS_MOST;
    groups[n++] = rundir->group;
    return setgroups((size_t)n, groups) || setegid(user ? user->pw_gid : rundir->group) ? -1 : 0;
}

static int keep_groups(struct rights *rights) {
    rights->group = getegid();
    rights->n_groups = getgroups(0, NULL);
    if (rights->n_groups < 0)
        return -1;
    rights->groups = calloc((size_t)rights->n_groups + 1, sizeof *rights->groups);
    if (!rights->groups)
        abort();
    rights->n_groups = getgroups(rights->n_groups, rights->groups);
    return rights->n_groups < 0 ? -1 : 0;
}

int rights_take(const struct rundir *rundir, struct rights *out, struct error *err) {
    struct rights rights = { .is_taken = true };

    *out = (struct rights){ 0 };
    if (geteuid() != 0 || rundir->owner == 0)
        return 0;
    if (keep_groups(&rights)) {
        free(rights.groups);
        return error_set_errno(err, errno, "cannot read the groups of this process");
    }
    if (take_groups(rundir) || seteuid(rundir->owner)) {
        error_set_errno(err, errno, "cannot act as %s, who owns run %s",
                        user_text(rundir->owner).text, rundir->id);
        rights_return(&rights);
        return -1;
    }
    *out = rights;
    return 0;
}

void rights_return(struct rights *rights) {
    if (!rights->is_taken)
        return;
    /* A process that went on with half of somebody else's rights could do anything. */
    if (seteuid(0) || setgroups((size_t)rights->n_groups, rights->groups) || setegid(rights->group))
        abort();
    free(rights->groups);
    *rights = (struct rights){ 0 };
}
