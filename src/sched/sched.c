/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/sched.h"

#include <assert.h>
#include <stdlib.h>

#define NOBODY UINT64_MAX

/* The machines with all that is held taken, but for what one run holds. */
static void take_holds(struct cluster *cluster, const struct situation *situation,
                       uint64_t except) {
    cluster_init(cluster, situation->machines, situation->n_machines);
    for (size_t i = 0; i < situation->n_holds; i++) {
        const struct hold *hold = &situation->holds[i];

        if (hold->run != except)
            cluster_take(cluster, hold->machine, hold->amount, hold->gpus);
    }
}

static struct spot *make_spots(const struct situation *situation, size_t n) {
    uint32_t most = 1;
    struct spot *spots;

    for (size_t i = 0; i < n; i++)
        if (situation->queue[i].demand.n_tasks > most)
            most = situation->queue[i].demand.n_tasks;
    spots = calloc(most, sizeof *spots);
    if (!spots)
        abort();
    return spots;
}

/* Those ahead take their turn. From the first that waits on, all behind it wait. */
static void serve_those_ahead(struct cluster *cluster, const struct situation *situation, size_t i,
                              struct decision *out) {
    struct spot *spots = make_spots(situation, i);

    for (size_t k = 0; k < i; k++) {
        const struct waiting *waiting = &situation->queue[k];

        if (out->n_ahead == 0 && cluster_place(cluster, &waiting->demand, spots))
            for (enum resource r = 0; r < RESOURCE_COUNT; r++)
                out->promised[r] += waiting->demand.total[r];
        else if (out->n_ahead++ == 0)
            out->head = waiting->run;
    }
    free(spots);
}

static bool ever_fits(const struct situation *situation, const struct demand *demand,
                      struct spot *spots) {
    struct cluster empty;
    bool fits;

    cluster_init(&empty, situation->machines, situation->n_machines);
    fits = cluster_place(&empty, demand, spots);
    cluster_release(&empty);
    return fits;
}

static void decide(const struct situation *situation, size_t i, uint64_t except,
                   struct decision *out, struct spot *spots) {
    const struct demand *demand = &situation->queue[i].demand;
    struct cluster cluster;

    *out = (struct decision){ .fit = FIT_LATER };
    take_holds(&cluster, situation, except);
    serve_those_ahead(&cluster, situation, i, out);
    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        out->needed[r] = demand->total[r];
        out->free[r] = cluster_free(&cluster, r);
        for (uint32_t m = 0; m < situation->n_machines; m++)
            out->capacity[r] +=
                r == RESOURCE_GPU ? (milli)__builtin_popcountll(situation->machines[m].gpus) * 1000
                                  : situation->machines[m].amount[r];
    }
    if (!ever_fits(situation, demand, spots))
        out->fit = FIT_NEVER;
    else if (out->n_ahead == 0 && cluster_place(&cluster, demand, spots))
        out->fit = FIT_NOW;
    if (out->fit != FIT_NOW)
        out->is_blocked = cluster_find_blocked(&cluster, demand, spots, &out->blocked);
    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        out->is_short[r] =
            out->fit != FIT_NOW &&
            demand->total[r] > (out->fit == FIT_NEVER ? out->capacity[r] : out->free[r]);
    cluster_release(&cluster);
}

void sched_decide(const struct situation *situation, size_t i, struct decision *out,
                  struct spot *spots) {
    struct spot *own = spots ? NULL : make_spots(situation, situation->n_queue);

    assert(i < situation->n_queue);
    decide(situation, i, NOBODY, out, spots ? spots : own);
    free(own);
}

bool sched_starts_without(const struct situation *situation, size_t i, uint64_t run) {
    struct spot *spots = make_spots(situation, situation->n_queue);
    struct decision decision;

    decide(situation, i, run, &decision, spots);
    free(spots);
    return decision.fit == FIT_NOW;
}
