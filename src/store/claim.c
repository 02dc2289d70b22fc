/* SPDX-License-Identifier: Apache-2.0 */
#include "store/claim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json_read.h"
#include "model/state.h"

#define AMOUNT_MOST 4e15 /* thousandths; more is no amount that we wrote */

void claim_release(struct claim *claim) {
    VEC_RELEASE(&claim->holds);
    arena_release(&claim->arena);
    *claim = (struct claim){ 0 };
}

/* ---- reading ---- */

static double time_of(const struct node *line) {
    const struct node *node = node_get(line, "time");
    int64_t us;

    return node && node->kind == NODE_TEXT && time_read(node->text, &us) ? (double)us / 1e6 : 0;
}

static bool read_amount(const struct node *map, enum resource resource, milli *out) {
    const struct node *node = node_get(map, resource_name(resource));
    double amount;

    if (!node)
        return true;
    if (node->kind != NODE_INT && node->kind != NODE_FLOAT)
        return false;
    amount = (node->kind == NODE_INT ? (double)node->integer : node->number) * 1000;
    if (!(amount >= 0 && amount <= AMOUNT_MOST))
        return false;
    *out = (milli)llround(amount);
    return true;
}

static bool read_gpus(const struct node *list, gpu_set *out) {
    if (!list)
        return true;
    if (list->kind != NODE_LIST)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *index = &list->items[i];

        if (index->kind != NODE_INT || index->integer < 0 || index->integer >= GPUS_MAX)
            return false;
        *out |= (gpu_set)1 << index->integer;
    }
    return true;
}

static bool read_cpus(const struct node *list, struct cpus *out) {
    if (!list)
        return true;
    if (list->kind != NODE_LIST)
        return false;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *cpu = &list->items[i];

        if (cpu->kind != NODE_INT || cpu->integer < 0 || cpu->integer >= CPUS_MAX)
            return false;
        cpus_add(out, (uint32_t)cpu->integer);
    }
    return true;
}

static bool read_hold(const struct node *map, struct hold *out) {
    const struct node *rank = node_get(map, "rank");

    *out = (struct hold){ .rank = HOLD_OF_SEVERAL };
    if (rank && rank->kind == NODE_INT && rank->integer >= 0 && rank->integer <= UINT32_MAX)
        out->rank = rank->integer;
    for (enum resource i = 0; i < RESOURCE_COUNT; i++)
        if (i != RESOURCE_GPU && !read_amount(map, i, &out->amount[i]))
            return false;
    if (!read_gpus(node_get(map, "gpus"), &out->gpus))
        return false;
    if (!read_cpus(node_get(map, "cpus"), &out->cpus))
        return false;
    out->amount[RESOURCE_GPU] = (milli)__builtin_popcountll(out->gpus) * 1000;
    return map->kind == NODE_MAP;
}

static void on_queued(struct claim *claim, const struct node *line) {
    const struct node *text = node_get(line, "demand");
    struct error err;

    if (claim->holds.len || !text || text->kind != NODE_TEXT ||
        demand_read(text->text, &claim->arena, &claim->demand, &err))
        return;
    claim->waits = claim->demand.n_tasks > 0;
    claim->since = time_of(line);
}

static bool is_twice(const struct claim *claim, int64_t rank) {
    for (size_t i = 0; i < claim->holds.len; i++)
        if (claim->holds.items[i].rank == rank)
            return true;
    return false;
}

static void on_reserved(struct claim *claim, const struct node *line) {
    const struct node *list = node_get(line, "holds");

    if (!list || list->kind != NODE_LIST)
        return;
    claim->holds.len = 0;
    for (uint32_t i = 0; i < list->count && claim->holds.len < CLAIM_HOLDS_MOST; i++) {
        struct hold hold;

        if (read_hold(&list->items[i], &hold) && !is_twice(claim, hold.rank))
            *VEC_PUSH(&claim->holds) = hold;
    }
    claim->waits = false;
    claim->since = time_of(line);
}

static void on_created(struct claim *claim, const struct node *line) {
    claim->host = node_keep_text(line, "host", &claim->arena);
    claim->boot = node_keep_text(line, "boot_id", &claim->arena);
}

static void on_checked(struct claim *claim, const struct node *line) {
    const struct node *groups = node_get(line, "cgroups");

    claim->leaves_groups = groups && groups->kind == NODE_INT && groups->integer > 0;
}

static void on_status(struct claim *claim, const struct node *line) {
    const struct node *name = node_get(line, "status");
    enum state state;

    claim->has_ended =
        name && name->kind == NODE_TEXT && state_named(name->text, &state) && state_is_final(state);
}

static const struct {
    const char *event;
    void (*feed)(struct claim *claim, const struct node *line);
} events[] = {
    { "created", on_created }, { "queued", on_queued }, { "reserved", on_reserved },
    { "checked", on_checked }, { "status", on_status },
};

void claim_feed(struct claim *claim, const char *line, size_t n) {
    AUTO(arena) scratch = ARENA_INIT;
    const struct node *event;
    struct node node;
    struct error err;

    if (json_read(line, n, &scratch, &node, &err) || !(event = node_get(&node, "event")) ||
        event->kind != NODE_TEXT)
        return;
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (strcmp(event->text, events[i].event) == 0)
            events[i].feed(claim, &node);
}

int claim_read(const struct rundir *rundir, struct claim *out, struct error *err) {
    AUTO(buf) text = BUF_INIT(JOURNAL_MOST);
    const char *line;
    size_t at = 0, n;

    if (journal_load(rundir, &text, err))
        return -1;
    *out = (struct claim){ 0 };
    while (journal_next(&text, &at, &line, &n))
        claim_feed(out, line, n);
    return 0;
}

/* ---- writing ---- */

void claim_write_queued(struct journal *journal, const struct demand *demand) {
    AUTO(buf) text = BUF_INIT(DEMAND_TEXT_MOST);
    struct json *json;
    struct error err;

    if (demand_write(demand, &text, &err))
        return; /* the ledger refused it before */
    json = journal_begin(journal, "queued");
    json_key(json, "demand");
    json_text_n(json, text.data, text.len);
    journal_end(journal, JOURNAL_SOON);
}

static void write_hold(struct json *json, const struct hold *hold) {
    json_object(json);
    if (hold->rank != HOLD_OF_SEVERAL) {
        json_key(json, "rank");
        json_int(json, hold->rank);
    }
    for (enum resource i = 0; i < RESOURCE_COUNT; i++) {
        if (i == RESOURCE_GPU || hold->amount[i] == 0)
            continue;
        json_key(json, resource_name(i));
        json_number(json, (double)hold->amount[i] / 1000);
    }
    if (cpus_count(&hold->cpus) > 0) {
        json_key(json, "cpus");
        json_array(json);
        for (uint32_t i = 0; i < CPUS_MAX; i++)
            if (cpus_has(&hold->cpus, i))
                json_int(json, i);
        json_end(json);
    }
    if (hold->gpus) {
        json_key(json, "gpus");
        json_array(json);
        for (int i = 0; i < GPUS_MAX; i++)
            if (hold->gpus >> i & 1)
                json_int(json, i);
        json_end(json);
    }
    json_end(json);
}

void claim_write_reserved(struct journal *journal, const struct hold *holds, size_t n) {
    struct json *json = journal_begin(journal, "reserved");

    json_key(json, "holds");
    json_array(json);
    for (size_t i = 0; i < n; i++)
        write_hold(json, &holds[i]);
    json_end(json);
    journal_end(journal, JOURNAL_SOON);
}
