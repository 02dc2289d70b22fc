/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run waits for or holds, as its own journal tells: the lines `queued` and `reserved`. The
 * ledger is made again from these (ledger_rebuild), so losing it loses nothing.
 *
 * `reserved` is written inside the transaction that reserves, before its commit: a reservation
 * that the ledger had is never missing here. One that was not committed after all makes the run
 * seem to hold what it only waits for, until its next line or its end; that is the safe side.
 */
#ifndef STORE_CLAIM_H
#define STORE_CLAIM_H

#include "base/vec.h"
#include "model/demand.h"
#include "store/journal.h"

/* A GPU or a CPU has one holder; all others are one row. */
enum { CLAIM_HOLDS_MOST = GPUS_MAX + CPUS_MAX + 1 };

struct claim {
    struct arena arena;
    bool waits;           /* and has not reserved yet */
    struct demand demand; /* if it waits */
    VEC(struct hold) holds;
    double since;                  /* seconds since the epoch, of the line that counts */
    const char *host, *boot;       /* where it began; NULL: not told */
    bool has_ended, leaves_groups; /* by what was seen then, something of it lives on */
};
void claim_release(struct claim *claim);

/* Adds one line of a journal, without its newline, to a zeroed or grown claim. Lines of other
 * events, and those that say nothing sensible, change nothing. */
void claim_feed(struct claim *claim, const char *line, size_t n);

/* Reads a whole journal into a claim; one that is not there yet claims nothing. */
MUST_CHECK int claim_read(const struct rundir *rundir, struct claim *out, struct error *err);

void claim_write_queued(struct journal *journal, const struct demand *demand);
void claim_write_reserved(struct journal *journal, const struct hold *holds, size_t n);

#endif
