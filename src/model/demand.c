/* SPDX-License-Identifier: Apache-2.0 */
#include "model/demand.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums stay far from the end of the type whatever a file or a ledger says. */
#define AMOUNT_MOST ((milli)1 << 52)

enum { GROUP_TEXT_LEAST = sizeof "1*0,0,0,0" }; /* with the blank after it */

static milli add_amounts(milli a, milli b) {
    return a > AMOUNT_MOST - b ? AMOUNT_MOST : a + b;
}

/* What one task asks for, with its rank: what is sorted to find the groups. */
struct asked {
    milli amount[RESOURCE_COUNT];
    uint32_t rank;
};

static bool ask(const struct task *task, const struct demand_terms *terms, struct asked *asked) {
    bool asks = false;

    if (terms->is_cut[task->role] && task->index >= terms->n_role[task->role])
        return false;
    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        milli amount = resources_reserved(&task->profile->resources, i);

        if (terms->is_capped[task->role][i] && amount > terms->most[task->role][i])
            amount = terms->most[task->role][i];
        if (i == RESOURCE_GPU || i == RESOURCE_TPU)
            amount = (amount + 999) / 1000 * 1000;
        if (amount > AMOUNT_MOST)
            amount = AMOUNT_MOST;
        asked->amount[i] = terms->leaves_out[i] ? 0 : amount;
        asks |= asked->amount[i] > 0;
    }
    return asks;
}

/* Whatever a machine has least of comes first. */
static int largest_first(const void *a, const void *b) {
    static const enum resource order[] = { RESOURCE_TPU, RESOURCE_GPU, RESOURCE_CPU,
                                           RESOURCE_MEMORY };
    const struct asked *x = a, *y = b;

    static_assert(ARRAY_LEN(order) == RESOURCE_COUNT, "every resource is compared");
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (x->amount[order[i]] != y->amount[order[i]])
            return x->amount[order[i]] > y->amount[order[i]] ? -1 : 1;
    return x->rank < y->rank ? -1 : 1;
}

static void add_group(struct demand *demand, const milli amount[RESOURCE_COUNT], uint32_t n) {
    struct demand_group *group = &demand->groups[demand->n_groups++];

    memcpy(group->amount, amount, sizeof group->amount);
    group->n = n;
    demand->n_tasks += n;
    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        const bool is_large = amount[i] > AMOUNT_MOST / n;

        demand->total[i] =
            add_amounts(demand->total[i], is_large ? AMOUNT_MOST : amount[i] * (milli)n);
    }
}

void demand_of_plan(const struct plan *plan, const struct demand_terms *terms, struct arena *arena,
                    struct demand *out) {
    struct asked *asked = calloc(plan->n_tasks + 1u, sizeof *asked);
    uint32_t n = 0;

    if (!asked)
        abort();
    *out = (struct demand){ 0 };
    for (uint32_t rank = 0; rank < plan->n_tasks; rank++) {
        asked[n].rank = rank;
        n += ask(&plan->tasks[rank], terms, &asked[n]);
    }
    qsort(asked, n, sizeof *asked, largest_first);
    out->ranks = ARENA_ARRAY(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        out->ranks[i] = asked[i].rank;
    for (uint32_t i = 0; i < n; i++)
        out->n_groups +=
            i == 0 || memcmp(asked[i].amount, asked[i - 1].amount, sizeof asked[i].amount) != 0;
    out->groups = ARENA_ARRAY(arena, struct demand_group, out->n_groups);
    out->n_groups = 0;
    for (uint32_t i = 0, first = 0; i < n; i++)
        if (i + 1 == n ||
            memcmp(asked[i].amount, asked[i + 1].amount, sizeof asked[i].amount) != 0) {
            add_group(out, asked[i].amount, i + 1 - first);
            first = i + 1;
        }
    free(asked);
}

/* ---- as text: "3*1000,0,1000,0 1*500,0,0,0" ---- */

int demand_write(const struct demand *demand, struct buf *out, struct error *err) {
    for (size_t i = 0; i < demand->n_groups; i++) {
        const struct demand_group *group = &demand->groups[i];

        if (buf_printf(out, err, "%s%u*", i ? " " : "", group->n))
            return -1;
        for (enum resource r = 0; r < RESOURCE_COUNT; r++)
            if (buf_printf(out, err, "%s%" PRId64, r ? "," : "", group->amount[r]))
                return -1;
    }
    return 0;
}

/* Reads a number of at most `most`, ended by `end`; moves behind it. */
static bool read_number(const char **text, char end, uint64_t most, uint64_t *out) {
    char *rest;
    uint64_t value;

    if (**text < '0' || **text > '9')
        return false;
    value = strtoull(*text, &rest, 10);
    if (value > most || (*rest != end && !(end == ' ' && *rest == '\0')))
        return false;
    *text = *rest ? rest + 1 : rest;
    *out = value;
    return true;
}

int demand_read(const char *text, struct arena *arena, struct demand *out, struct error *err) {
    size_t n_groups = text[0] != '\0';
    struct demand demand = { 0 };

    for (const char *p = text; *p; p++)
        n_groups += *p == ' ';
    /* Before memory is taken for what is only blanks. */
    if (n_groups > strlen(text) / GROUP_TEXT_LEAST + 1)
        return error_set(err, ERROR_INVALID, "'%.60s' is no demand", text);
    demand.groups = ARENA_ARRAY(arena, struct demand_group, n_groups);
    for (const char *p = text; *p;) {
        milli amount[RESOURCE_COUNT];
        uint64_t n, value;

        if (!read_number(&p, '*', UINT32_MAX - demand.n_tasks, &n) || n == 0)
            return error_set(err, ERROR_INVALID, "'%.60s' is no demand", text);
        for (enum resource r = 0; r < RESOURCE_COUNT; r++) {
            if (!read_number(&p, r + 1 < RESOURCE_COUNT ? ',' : ' ', (uint64_t)AMOUNT_MOST, &value))
                return error_set(err, ERROR_INVALID, "'%.60s' is no demand", text);
            amount[r] = (milli)value;
        }
        add_group(&demand, amount, (uint32_t)n);
    }
    *out = demand;
    return 0;
}

struct amount_text amount_text(enum resource resource, milli amount) {
    static const struct {
        const char *one, *many;
    } units[] = {
        [RESOURCE_CPU] = { "CPU", "CPUs" },
        [RESOURCE_MEMORY] = { "MiB of memory", "MiB of memory" },
        [RESOURCE_GPU] = { "GPU", "GPUs" },
        [RESOURCE_TPU] = { "TPU", "TPUs" },
    };
    struct amount_text out;

    static_assert(ARRAY_LEN(units) == RESOURCE_COUNT, "every resource has a unit");
    snprintf(out.text, sizeof out.text, "%s %s", milli_text(amount).text,
             amount == 1000 ? units[resource].one : units[resource].many);
    return out;
}
