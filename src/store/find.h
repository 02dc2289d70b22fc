/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs by the names that people give them. A run is named by
 *
 *   its id       12
 *   its name     mnist: of several runs the newest
 *   its uuid     or the beginning of it, at least 4 hexadecimal digits that no other run has;
 *                dashes and capitals do not matter; never what could be an id
 *   @            the newest run
 *
 * Commands that only make sense for a run that goes on (stop, kill, attach, logs -f) take the
 * newest of those that go on, by name and by @; if none does, the newest as the others do.
 * In a shared home, names and @ mean the user's own runs before those of others.
 *
 * A text is tried in this order where a text could be more than one. Only the first line of a
 * journal is read to know a run's name, so looking through ten thousand runs takes a fraction of a
 * second.
 */
#ifndef STORE_FIND_H
#define STORE_FIND_H

#include <stdbool.h>

#include "store/rundir.h"

enum { FIND_UUID_LEAST = 4 };

/* What the first line of a journal says. Both are NULL of a run that has not begun. */
struct run_identity {
    const char *uuid, *name;
    bool is_elsewhere; /* its tasks are on a cluster */
    bool is_hidden;    /* there is a journal, or may be, and it cannot be read: both are NULL */
};
void identify_run(const struct rundir *rundir, struct arena *arena, struct run_identity *out);

enum find_preference { FIND_NEWEST, FIND_LIVING };

/* Fails with ERROR_NOT_FOUND, or with ERROR_INVALID where the text fits several runs; the
 * message says how to name the run instead. */
MUST_CHECK int find_run(const char *home, const char *text, enum find_preference preference,
                        struct arena *arena, struct rundir *out, struct error *err);

#endif
