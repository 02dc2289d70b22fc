/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sweep.h"

struct sweep_run *sweep_find(struct sweep_run *runs, size_t n, unsigned long id) {
    size_t from = 0, to = n;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (runs[middle].id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from < n && runs[from].id == id ? &runs[from] : NULL;
}

/* The run whose outputs this one shares, or NULL. */
static struct sweep_run *keeper_of(struct sweep_run *runs, size_t n, const struct sweep_run *run) {
    return run->outputs_of == run->id ? NULL : sweep_find(runs, n, run->outputs_of);
}

/* The rules that each run is held to by itself; from the newest to the oldest. */
static void apply_rules(struct sweep_run *runs, size_t n, const struct sweep_rules *rules) {
    uint64_t newer = 0;

    for (size_t i = n; i-- > 0;) {
        struct sweep_run *run = &runs[i];

        if (!run->is_meant)
            run->verdict = SWEEP_NOT_MEANT;
        else if (rules->has_keep && newer < rules->keep)
            run->verdict = SWEEP_AMONG_NEWEST;
        else if (rules->has_older && run->age_s < rules->older_s)
            run->verdict = SWEEP_YOUNG;
        else if (run->needed)
            run->verdict = SWEEP_NEEDED;
        else
            run->verdict = SWEEP_GOES;
        newer += run->is_meant;
    }
}

/* A run stays while one that stays has its outputs. Those that share are never shared from, so
 * one pass is enough. */
static void keep_shared(struct sweep_run *runs, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct sweep_run *keeper = keeper_of(runs, n, &runs[i]);

        if (!keeper)
            continue;
        keeper->n_users++;
        if (runs[i].verdict != SWEEP_GOES && keeper->verdict == SWEEP_GOES) {
            keeper->verdict = SWEEP_NEEDED;
            keeper->user = runs[i].id;
        }
    }
}

/* One run goes; *total is what the others take. */
static void let_go(struct sweep_run *run, uint64_t *total) {
    run->verdict = SWEEP_GOES;
    *total -= run->bytes;
}

/* Of those that may go only the oldest do, until the rest takes no more than it may. One whose
 * outputs are shared goes with the last that shares them. */
static void fit_size(struct sweep_run *runs, size_t n, uint64_t size) {
    uint64_t total = 0;

    for (size_t i = 0; i < n; i++) {
        total += runs[i].bytes;
        if (runs[i].verdict == SWEEP_GOES)
            runs[i].verdict = SWEEP_HAS_ROOM;
    }
    for (size_t i = 0; i < n && total > size; i++) {
        struct sweep_run *run = &runs[i], *keeper = keeper_of(runs, n, run);

        if (run->verdict != SWEEP_HAS_ROOM || run->n_users > 0)
            continue;
        let_go(run, &total);
        if (keeper && --keeper->n_users == 0 && keeper->verdict == SWEEP_HAS_ROOM &&
            keeper->id < run->id && total > size)
            let_go(keeper, &total);
    }
}

void sweep_decide(struct sweep_run *runs, size_t n, const struct sweep_rules *rules) {
    for (size_t i = 0; i < n; i++) {
        runs[i].user = 0;
        runs[i].n_users = 0;
    }
    apply_rules(runs, n, rules);
    keep_shared(runs, n);
    if (rules->has_size)
        fit_size(runs, n, rules->size);
}
