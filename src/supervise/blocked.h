/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision of the scheduler comes to in words: what blocks, who holds it, since when. */
#ifndef SUPERVISE_BLOCKED_H
#define SUPERVISE_BLOCKED_H

#include "sched/sched.h"
#include "store/ledger.h"

enum { BLOCKED_MOST = 4096 };

/* In the place of the present: the sentence is kept and read later, when an age would be wrong. */
#define BLOCKED_KEPT (-1.0)

/* What one run holds of a resource on this machine. */
struct holder {
    uint64_t run;
    milli amount;
    double since;
};

/* The next run that holds some of the resource, from *at on; moves *at behind it. False after the
 * last. */
bool next_holder(const struct ledger_view *view, enum resource resource, size_t *at,
                 struct holder *out);

/* "12s", "3m", "2h", "5d". */
struct span_text {
    char text[24];
};
struct span_text span_text(double seconds);

/* Appends "waiting for 2 CPUs: 1 is free, run 12 holds 1 since 3m", or "waiting behind run 11".
 * For a decision of FIT_LATER. `now` is in seconds since the epoch, or BLOCKED_KEPT. */
MUST_CHECK int blocked_sentence(const struct decision *decision, const struct ledger_view *view,
                                double now, struct buf *out, struct error *err);

/* The same of one resource: "1 is free, run 12 holds 1 since 3m". */
MUST_CHECK int shortage_text(const struct decision *decision, const struct ledger_view *view,
                             enum resource resource, double now, struct buf *out,
                             struct error *err);

/* The error for a decision of FIT_NEVER: "master.0 asks for 1 GPU; this machine has none". */
int never_fits(const struct plan *plan, const struct demand *demand,
               const struct decision *decision, struct error *err);

#endif
