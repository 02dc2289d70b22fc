/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/reserve.h"

#include <string.h>

#include "supervise/blocked.h"

struct demand_terms reserving_terms(const struct invocation *in) {
    struct demand_terms terms = { 0 };

    terms.leaves_out[RESOURCE_CPU] = invocation_has(in, "oversubscribe");
    for (size_t i = 0; i < in->n_given; i++)
        if (strcmp(in->given[i].option->name, "without") == 0)
            terms.leaves_out[strcmp(in->given[i].value, "gpu") == 0 ? RESOURCE_GPU : RESOURCE_TPU] =
                true;
    return terms;
}

void reserving_init(struct reserving *reserving, const struct invocation *in,
                    const struct plan *plan) {
    memset(reserving, 0, sizeof *reserving);
    reserving->plan = plan;
    reserving->terms = reserving_terms(in);
    demand_of_plan(plan, &reserving->terms, &reserving->arena, &reserving->demand);
    if (reserving->demand.n_tasks > 0)
        inventory_read(reserving->demand.total[RESOURCE_GPU] > 0 ? INVENTORY_WHOLE
                                                                 : INVENTORY_WITHOUT_GPUS,
                       &reserving->machine, &reserving->gpus);
}

void reserving_release(struct reserving *reserving) {
    arena_release(&reserving->arena);
}

/* What the user can do besides changing the file. */
static const char *way_out(const struct reserving *reserving, const struct decision *decision) {
    if (decision->is_short[RESOURCE_GPU] && reserving->gpus.trouble[0])
        return reserving->gpus.trouble;
    if (decision->is_short[RESOURCE_GPU])
        return "--without gpu rehearses without";
    if (decision->is_short[RESOURCE_TPU])
        return "--without tpu rehearses without";
    if (decision->is_short[RESOURCE_MEMORY])
        return "ask for less, or run it on a larger machine";
    return "ask for less, or start it with --oversubscribe";
}

int reserving_check(const struct reserving *reserving, struct error *err) {
    const struct waiting self = { .demand = reserving->demand };
    const struct situation empty = {
        .machines = &reserving->machine, .n_machines = 1, .queue = &self, .n_queue = 1
    };
    struct decision decision;
    struct error why;

    if (reserving->demand.n_tasks == 0)
        return 0;
    sched_decide(&empty, 0, &decision, NULL);
    if (decision.fit != FIT_NEVER)
        return 0;
    never_fits(reserving->plan, &reserving->demand, &decision, &why);
    return error_set(err, why.code, "%s (%s)", why.message, way_out(reserving, &decision));
}

int reserving_decide(struct reserving *reserving, const char *home, struct ledger_view *view,
                     struct decision *out, struct error *err) {
    const struct waiting self = { .demand = reserving->demand };
    struct situation situation;

    if (queue_look(home, view, err))
        return -1;
    if (queue_wants_gpus(view, &reserving->demand))
        inventory_read(INVENTORY_WHOLE, &reserving->machine, &reserving->gpus);
    situation = queue_situation(view, &reserving->machine, &self);
    sched_decide(&situation, situation.n_queue - 1, out, NULL);
    return 0;
}

void reserving_pin(const struct reserving *reserving, const struct ledger_view *view,
                   struct pinning *out) {
    struct layout layout;

    queue_read_layout(reserving->plan, &reserving->demand, &layout);
    pinning_choose(out, reserving->plan, &reserving->demand, &layout, view->holds.items,
                   view->holds.len);
}
