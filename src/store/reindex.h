/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes again what a home derives from its runs: the ledger, from the journals of living runs, the
 * versions of models (models.h), and the id that the next run gets. A ledger that cannot be used is
 * put aside under another name, with what belongs to it. If other users own its files, so that this
 * process may not rename them, it is emptied in place. Runs that go on keep what they hold.
 */
#ifndef STORE_REINDEX_H
#define STORE_REINDEX_H

#include <limits.h>

#include "store/ledger.h"

enum ledger_health {
    LEDGER_SOUND,   /* its rows were written anew */
    LEDGER_MISSING, /* one was made */
    LEDGER_DAMAGED, /* it was put aside, and one was made */
    LEDGER_FOREIGN, /* likewise: of another version, or no ledger at all */
};

struct reindexed {
    enum ledger_health health;
    char why[128];        /* what is wrong with it, if it was put aside */
    char aside[PATH_MAX]; /* what it is called now, likewise; "": it was emptied in place */
    size_t n_waiting, n_holding;
    unsigned long next_id;
};

/* Fails with ERROR_UNAVAILABLE where a process does not let go of the ledger. */
MUST_CHECK int reindex(const char *home, struct reindexed *out, struct error *err);

#endif
