/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which runs may go. Pure: the caller gathers what is known of the runs, and removes them.
 *
 * A run goes when every rule that is given holds for it: it is one of those that are meant, it has
 * been over for long enough, it is not among the newest, and there is not enough room without it.
 * And only when nobody needs it: a run whose outputs another one shares goes only if that goes too.
 */
#ifndef STORE_SWEEP_H
#define STORE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sweep_verdict {
    SWEEP_GOES,
    SWEEP_NOT_MEANT,
    SWEEP_YOUNG,
    SWEEP_AMONG_NEWEST,
    SWEEP_HAS_ROOM,
    SWEEP_NEEDED, /* `needed` says why, or `user` is set */
    SWEEP_VERDICT_COUNT,
};

struct sweep_run {
    unsigned long id;
    unsigned long outputs_of; /* the run that has its outputs: mostly itself */
    bool is_meant;
    double age_s;       /* since its end */
    uint64_t bytes;     /* that it takes on the disk */
    const char *needed; /* why it may not go, or NULL */
    /* What is decided. */
    enum sweep_verdict verdict;
    unsigned long user; /* a run that stays and has its outputs, or 0 */
    size_t n_users;     /* of its outputs that have not gone */
};

struct sweep_rules {
    bool has_older, has_keep, has_size;
    double older_s;
    uint64_t keep; /* so many of those that are meant stay, the newest ones */
    uint64_t size; /* all runs together take at most so many bytes; the oldest go first */
};

/* For both, runs are in the order of their ids, ascending. */

/* The run of that id, or NULL. */
struct sweep_run *sweep_find(struct sweep_run *runs, size_t n, unsigned long id);
void sweep_decide(struct sweep_run *runs, size_t n, const struct sweep_rules *rules);

#endif
