/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may act on a run of a home that several users share. SECURITY.md has the threat model.
 *
 *   1. A process changes a run (writes, deletes, locks, settles, signals) only if it runs as the
 *      user who owns the run's directory. rights_check says so, and every function that changes a
 *      run asks it.
 *   2. Root is not excepted: it acts with the owner's rights, between rights_take and
 *      rights_return, so that nothing an owner has put into the directory reaches further than the
 *      owner could.
 *   3. Anybody may read a run whose modes allow it. What it says is data to show: it is never
 *      executed and never decides which file, process or control group is acted on.
 *   4. What a run names to be executed again (its command, its kubeconfig) is believed only of the
 *      process's own runs and of root's: rights_trust.
 */
#ifndef STORE_RIGHTS_H
#define STORE_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/rundir.h"

/* Whether the process runs as the owner of the run's directory. */
bool rights_has(const struct rundir *rundir);

/* Fails with ERROR_DENIED, and names the owner, unless the process has the rights. */
MUST_CHECK int rights_check(const struct rundir *rundir, struct error *err);

/* Fails with ERROR_DENIED unless the run is this user's own or root's. `what` is what would be
 * done: "restart run 12". */
MUST_CHECK int rights_trust(const struct rundir *rundir, const char *what, struct error *err);

/* What root had before it took an owner's rights. */
struct rights {
    bool is_taken;
    gid_t group, *groups;
    int n_groups;
};

/* Root becomes the owner of the run, for files and signals, until rights_return: effective ids and
 * groups change, the real user id stays, so nothing may be executed meanwhile. Does nothing for
 * other users and for root's own runs. */
MUST_CHECK int rights_take(const struct rundir *rundir, struct rights *out, struct error *err);
void rights_return(struct rights *rights);

#endif
