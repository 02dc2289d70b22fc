/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/remedy.h"

#include <stdlib.h>
#include <string.h>

/* In which steps a request is made smaller: what a person would write. */
static const milli steps[RESOURCE_COUNT] = {
    [RESOURCE_CPU] = 10,
    [RESOURCE_MEMORY] = 1000,
    [RESOURCE_GPU] = 1000,
    [RESOURCE_TPU] = 1000,
};

/* What all tries have in common. */
struct search {
    const struct situation *situation;
    size_t i;
    const struct plan *plan;
    const struct demand_terms *terms;
    struct waiting *queue; /* a copy, whose entry i is what is tried */
    enum resource lacking;
    milli total; /* of what is lacking, unchanged */
};

static bool try_terms(const struct search *search, const struct demand_terms *terms,
                      milli *given_up) {
    AUTO(arena) arena = ARENA_INIT;
    struct situation changed = *search->situation;
    struct waiting *self = &search->queue[search->i];
    struct decision decision;

    demand_of_plan(search->plan, terms, &arena, &self->demand);
    *given_up = search->total - self->demand.total[search->lacking];
    if (self->demand.n_tasks == 0)
        return true; /* who asks for nothing does not wait */
    changed.queue = search->queue;
    sched_decide(&changed, search->i, &decision, NULL);
    return decision.fit == FIT_NOW;
}

static struct waiting *copy_queue(const struct situation *situation) {
    struct waiting *queue = calloc(situation->n_queue + 1, sizeof *queue);

    if (!queue)
        abort();
    memcpy(queue, situation->queue, situation->n_queue * sizeof *queue);
    return queue;
}

bool sched_starts_with(const struct situation *situation, size_t i, const struct plan *plan,
                       const struct demand_terms *terms) {
    struct search search = { situation, i, plan, terms, copy_queue(situation), RESOURCE_CPU, 0 };
    milli ignored;
    const bool starts = try_terms(&search, terms, &ignored);

    free(search.queue);
    return starts;
}

/* The terms with the role, or what its tasks ask for, cut to `to`. */
static struct demand_terms cut(const struct search *search, const struct remedy *remedy, milli to) {
    struct demand_terms terms = *search->terms;

    if (remedy->kind == REMEDY_FEWER) {
        terms.is_cut[remedy->role] = true;
        terms.n_role[remedy->role] = (uint32_t)to;
    } else {
        terms.is_capped[remedy->role][remedy->resource] = true;
        terms.most[remedy->role][remedy->resource] = to;
    }
    return terms;
}

/* The largest number of steps, from 1 to below `most`, with which it starts; 0: none does. Who asks
 * for less is placed where who asks for more is. */
static milli find_largest(const struct search *search, struct remedy *remedy, milli step,
                          milli most) {
    milli fits = 0, too_many = most, given_up;

    while (too_many - fits > 1) {
        const milli middle = fits + (too_many - fits) / 2;
        const struct demand_terms terms = cut(search, remedy, middle * step);

        if (try_terms(search, &terms, &given_up)) {
            fits = middle;
            remedy->given_up = given_up;
        } else {
            too_many = middle;
        }
    }
    return fits;
}

static bool find_fewer(const struct search *search, enum role role, struct remedy *out) {
    *out = (struct remedy){ .kind = REMEDY_FEWER,
                            .role = role,
                            .n_before = search->plan->n_role[role] };
    out->n = (uint32_t)find_largest(search, out, 1, out->n_before);
    return out->n > 0;
}

/* The most that a task of the role asks for. */
static milli most_asked(const struct search *search, enum role role, enum resource resource) {
    milli most = 0;

    for (uint32_t i = 0; i < search->plan->n_tasks; i++)
        if (search->plan->tasks[i].role == role) {
            const milli amount =
                resources_reserved(&search->plan->tasks[i].profile->resources, resource);

            most = amount > most ? amount : most;
        }
    return most;
}

static bool find_less(const struct search *search, enum role role, enum resource resource,
                      struct remedy *out) {
    const milli step = steps[resource];

    *out = (struct remedy){ .kind = REMEDY_LESS,
                            .role = role,
                            .resource = resource,
                            .most_before = most_asked(search, role, resource) };
    out->amount = step * find_largest(search, out, step, (out->most_before + step - 1) / step);
    return out->amount > 0;
}

/* Of two that give up as much the first stays in front. */
static void insert(struct remedy *list, size_t *n, const struct remedy *one) {
    size_t at = (*n)++;

    for (; at > 0 && list[at - 1].given_up > one->given_up; at--)
        list[at] = list[at - 1];
    list[at] = *one;
}

size_t sched_remedies(const struct situation *situation, size_t i, const struct plan *plan,
                      const struct demand_terms *terms, struct remedy out[static REMEDIES_MOST]) {
    static const enum role cut_roles[] = { ROLE_WORKER, ROLE_PS };
    struct search search = { situation, i, plan, terms, copy_queue(situation), RESOURCE_CPU, 0 };
    AUTO(arena) arena = ARENA_INIT;
    struct waiting *self = &search.queue[i];
    struct situation own = *situation;
    struct decision decision;
    struct remedy remedy;
    size_t n = 0;

    own.queue = search.queue;
    demand_of_plan(plan, terms, &arena, &self->demand);
    sched_decide(&own, i, &decision, NULL);
    if (decision.fit != FIT_NOW && decision.n_ahead == 0 && decision.is_blocked) {
        const enum role role = plan->tasks[self->demand.ranks[decision.blocked.at]].role;

        if (decision.blocked.resource < RESOURCE_COUNT)
            search.lacking = decision.blocked.resource;
        search.total = self->demand.total[search.lacking];
        for (size_t k = 0; k < ARRAY_LEN(cut_roles); k++)
            if (find_fewer(&search, cut_roles[k], &remedy))
                insert(out, &n, &remedy);
        if (find_less(&search, role, search.lacking, &remedy))
            insert(out, &n, &remedy);
    }
    free(search.queue);
    return n;
}
