/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that have to resolve before the command starts: the cluster's DNS knows the name of a pod
 * once that has an address, which may be minutes after this one started. They are asked for one
 * after the other, again and again with growing pauses, until all were found or the patience is
 * over.
 */
#ifndef SHIM_NAMES_H
#define SHIM_NAMES_H

#include "shim/lookup.h"

enum { NAMES_MOST = 253 }; /* bytes of a name in the DNS */

struct names {
    void (*done)(struct names *names);
    bool were_found;
    char missing[NAMES_MOST + 1]; /* the one that was not, cut where it is too long for any */

    const char *rest; /* of the list, behind that one */
    int64_t pause_ms;
    struct lookup lookup;
    struct loop_timer again, over;
};

/* The list is names parted by spaces, and stays the caller's. `done` follows once, and may be
 * called before this has returned. */
void names_wait(struct names *names, struct loop *loop, const char *list, int64_t patience_ms,
                void (*done)(struct names *names));

/* `done` does not follow any more. */
void names_cancel(struct names *names);

#endif
