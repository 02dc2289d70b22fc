/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/blocked.h"

#include <inttypes.h>
#include <stdio.h>

enum { HOLDERS_SHOWN = 3 };

bool next_holder(const struct ledger_view *view, enum resource resource, size_t *at,
                 struct holder *out) {
    struct holder found = { 0 };
    size_t i = *at;

    while (i < view->holds.len && view->holds.items[i].amount[resource] == 0)
        i++;
    if (i < view->holds.len)
        found.run = view->holds.items[i].run;
    for (; i < view->holds.len && view->holds.items[i].run == found.run; i++) {
        found.amount += view->holds.items[i].amount[resource];
        found.since = view->holds.items[i].since;
    }
    *at = i;
    if (found.amount == 0)
        return false;
    *out = found;
    return true;
}

struct span_text span_text(double seconds) {
    static const struct {
        double seconds;
        const char *unit;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    struct span_text out = { "0s" };

    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (seconds >= units[i].seconds) {
            snprintf(out.text, sizeof out.text, "%.0f%s",
                     (double)(long)(seconds / units[i].seconds), units[i].unit);
            break;
        }
    return out;
}

int shortage_text(const struct decision *decision, const struct ledger_view *view,
                  enum resource resource, double now, struct buf *out, struct error *err) {
    const milli free = decision->free[resource];
    struct holder holder;
    unsigned n = 0;

    if (buf_printf(out, err,
                   free == 0      ? "none is free"
                   : free <= 1000 ? "%s is free"
                                  : "%s are free",
                   milli_text(free).text))
        return -1;
    for (size_t at = 0; next_holder(view, resource, &at, &holder); n++)
        if (n < HOLDERS_SHOWN &&
            (buf_printf(out, err, ", run %" PRIu64 " holds %s", holder.run,
                        milli_text(holder.amount).text) ||
             (now != BLOCKED_KEPT &&
              buf_printf(out, err, " since %s", span_text(now - holder.since).text))))
            return -1;
    if (n > HOLDERS_SHOWN && buf_printf(out, err, ", %u more runs hold some", n - HOLDERS_SHOWN))
        return -1;
    if (decision->promised[resource] > 0)
        return buf_printf(out, err, ", %s go%s to runs that are about to start",
                          milli_text(decision->promised[resource]).text,
                          decision->promised[resource] == 1000 ? "es" : "");
    return 0;
}

int blocked_sentence(const struct decision *decision, const struct ledger_view *view, double now,
                     struct buf *out, struct error *err) {
    const char *before = "waiting for ";

    if (decision->n_ahead > 0) {
        if (buf_printf(out, err, "waiting behind run %" PRIu64, decision->head))
            return -1;
        if (decision->n_ahead > 1 && buf_printf(out, err, " and %zu more", decision->n_ahead - 1))
            return -1;
        before = "; then for ";
    }
    for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
        if (!decision->is_short[r])
            continue;
        if (buf_printf(out, err, "%s%s: ", before, amount_text(r, decision->needed[r]).text) ||
            shortage_text(decision, view, r, now, out, err))
            return -1;
        before = "; for ";
    }
    return 0;
}

/* A task that alone asks for more than there is. */
struct excess {
    int64_t rank; /* -1: there is none */
    enum resource resource;
    milli amount;
};

/* The first of them in rank order. */
static struct excess find_excess(const struct demand *demand,
                                 const milli capacity[RESOURCE_COUNT]) {
    struct excess found = { .rank = -1 };
    uint32_t at = 0;

    for (size_t g = 0; g < demand->n_groups; at += demand->groups[g].n, g++)
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            if (demand->groups[g].amount[r] > capacity[r] &&
                (found.rank < 0 || demand->ranks[at] < found.rank))
                found = (struct excess){ demand->ranks[at], r, demand->groups[g].amount[r] };
    return found;
}

static const char *have(enum resource resource, milli capacity, struct amount_text *text) {
    *text = amount_text(resource, capacity);
    return capacity == 0 ? "none" : text->text;
}

int never_fits(const struct plan *plan, const struct demand *demand,
               const struct decision *decision, struct error *err) {
    const struct excess excess = find_excess(demand, decision->capacity);
    struct amount_text text;

    if (excess.rank >= 0)
        return error_set(err, ERROR_EXHAUSTED, "%s asks for %s; this machine has %s",
                         task_name(&plan->tasks[excess.rank]).text,
                         amount_text(excess.resource, excess.amount).text,
                         have(excess.resource, decision->capacity[excess.resource], &text));
    for (enum resource r = 0; r < RESOURCE_COUNT; r++)
        if (decision->is_short[r])
            return error_set(
                err, ERROR_EXHAUSTED, "its tasks ask for %s together; this machine has %s",
                amount_text(r, decision->needed[r]).text, have(r, decision->capacity[r], &text));
    return error_set(err, ERROR_EXHAUSTED, "no placement of its tasks fits");
}
