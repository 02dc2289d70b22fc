/* SPDX-License-Identifier: Apache-2.0 */
/* What `gc` finds in a home: the runs, with what store/sweep.h decides by, and what work that was
 * cut short has left behind. */
#ifndef CLI_SWEEPING_H
#define CLI_SWEEPING_H

#include "base/vec.h"
#include "search/query.h"
#include "store/rundir.h"
#include "store/sweep.h"

/* What is shown of a run beside. */
struct swept {
    struct rundir rundir;
    const char *name, *status; /* name: "" for none */
};

struct leftover {
    const char *path;
    const char *what;     /* "an import that was cut short" */
    struct rundir rundir; /* of a run that never began; path NULL: it is none */
    uint64_t bytes;
};

struct sweeping {
    struct arena arena;
    const char *home;
    VEC(struct sweep_run) runs; /* by id, decided */
    VEC(struct swept) shown;    /* by the same index */
    VEC(struct leftover) leftovers;
};
void sweeping_release(struct sweeping *sweeping);

/* Looks at a home and decides. The runs that are meant fulfil the query. */
MUST_CHECK int sweeping_look(struct sweeping *sweeping, const struct query *query,
                             const struct sweep_rules *rules, struct error *err);

#endif
