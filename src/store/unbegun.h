/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose journal does not say what they are. The first line does that; the command that makes a
 * run may be killed before it is written, and a journal may be removed or damaged. */
#ifndef STORE_UNBEGUN_H
#define STORE_UNBEGUN_H

#include <stdint.h>

#include "store/rundir.h"

/* How long the maker of a run needs at most from the directory to the lock, on a machine that has
 * much else to do. Once it holds the lock, it may take any time. */
enum { UNBEGUN_MOMENT_S = 3 };

enum unbegun {
    UNBEGUN_STARTS,  /* it has an owner, or something in its directory is too new to tell */
    UNBEGUN_NEVER,   /* it never had a supervisor: its maker was killed */
    UNBEGUN_DAMAGED, /* it had one: its journal was removed or damaged */
};

/* Of a run whose record has no uuid; `moment_s` is what counts as new. */
enum unbegun unbegun_look(const struct rundir *rundir, int64_t moment_s);

#endif
