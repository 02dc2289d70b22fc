/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a run came from: which run it was made from, and how. Each of them makes a new run.
 *
 *   restarted   from the same request, with outputs of its own
 *   resumed     from the same request, with the outputs of the original, which go on
 *   copied      from the same request, with a copy of the original's outputs
 *   rerun       from the same request and the code that the original ran, with outputs of its own
 *
 * A run that was resumed keeps its outputs for those that resumed it: nobody may remove it, and
 * no two of them may run at the same time. Both are decided while the lock (owner.h) of the run
 * that has the outputs is held, so that a removal and a resumption never pass each other.
 */
#ifndef STORE_ORIGIN_H
#define STORE_ORIGIN_H

#include <stdbool.h>

#include "store/rundir.h"

enum origin_manner {
    ORIGIN_NONE, /* it was not made from another run */
    ORIGIN_RESTARTED,
    ORIGIN_RESUMED,
    ORIGIN_COPIED,
    ORIGIN_RERUN,
    ORIGIN_MANNER_COUNT,
};
const char *origin_manner_name(enum origin_manner manner);
/* Whether there is such a manner, beside none; *out is set then. */
bool origin_manner_named(const char *name, enum origin_manner *out);

struct origin {
    enum origin_manner manner;
    unsigned long id;
    const char *uuid; /* of that run: its id may mean another run one day; or NULL */
};

/* The first other run, or the first living one, that has the outputs of this one; *out is NULL
 * where there is none. */
enum outputs_users { OUTPUTS_USERS_ANY, OUTPUTS_USERS_LIVING };
MUST_CHECK int outputs_user(const char *home, const struct rundir *rundir, enum outputs_users which,
                            struct arena *arena, const char **out, struct error *err);

#endif
