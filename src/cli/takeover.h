/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run on a cluster goes on when its supervisor and its keeper are gone. Whoever wants to do
 * something with it gives it a supervisor again, which finds its tasks by their labels; who only
 * wants to look opens the cluster that it went to.
 */
#ifndef CLI_TAKEOVER_H
#define CLI_TAKEOVER_H

#include "cli/venue.h"
#include "store/record.h"

/* Does nothing for a run that is over, is watched, is another host's, or has its tasks here. */
MUST_CHECK int take_over_if_alone(const struct run_record *run, struct error *err);

/* The cluster that a run went to, found as its own command line and the settings say. */
struct run_venue {
    const struct run_record *run;
    const struct invocation *in; /* what the run was asked with */
    const char *home;
    struct loaded *loaded;
    struct venue *venue;
};

/* What it is given lives until it returns. */
typedef int run_venue_use(void *context, const struct run_venue *venue, struct error *err);

MUST_CHECK int run_venue_open(const struct run_record *run, run_venue_use *use, void *context,
                              struct error *err);

#endif
