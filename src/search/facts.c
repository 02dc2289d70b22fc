/* SPDX-License-Identifier: Apache-2.0 */
#include "search/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json_read.h"
#include "track/map.h"
#include "track/query.h"

static const char system_prefix[] = "system/";

void facts_release(struct facts *facts) {
    VEC_RELEASE(&facts->list);
    arena_release(&facts->arena);
}

static void add_number(struct facts *facts, const char *field, double number) {
    *VEC_PUSH(&facts->list) =
        (struct fact){ .field = field, .kind = CELL_NUMBER, .number = number };
}

static void add_text(struct facts *facts, const char *field, const char *text) {
    if (text)
        *VEC_PUSH(&facts->list) = (struct fact){ .field = field, .kind = CELL_WORD, .text = text };
}

static void add_own(struct facts *facts, const struct run_record *run) {
    const struct {
        const char *field, *text;
    } texts[] = {
        { "status", state_name(run->state) },
        { "name", run->name },
        { "owner", run->owner },
        { "framework", run->framework },
        { "host", run->host },
        { "command", run->command },
        { "directory", run->directory },
        { "commit", run->code.commit },
        { "branch", run->code.branch },
    };
    int64_t created_us, updated_us;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        add_text(facts, texts[i].field, texts[i].text);
    if (run->code.is_read)
        *VEC_PUSH(&facts->list) =
            (struct fact){ .field = "dirty", .kind = CELL_TRUTH, .number = run->code.is_dirty };
    add_number(facts, "tasks", run->n_tasks);
    add_number(facts, "attempts", run->n_attempts);
    add_number(facts, "duration", run->elapsed_s);
    if (run->exit_status != EXIT_STATUS_NONE)
        add_number(facts, "exit_status", run->exit_status);
    if (time_read(run->updated_at, &updated_us))
        add_number(facts, "updated_at", (double)updated_us / 1e6);
    if (!run->created_at || !time_read(run->created_at, &created_us))
        return;
    add_number(facts, "created_at", (double)created_us / 1e6);
    if (run->n_attempts > 0)
        add_number(facts, "started_at", (double)created_us / 1e6 + run->attempts[0].started_s);
    if (state_is_final(run->state))
        add_number(facts, "finished_at", (double)created_us / 1e6 + run->elapsed_s);
}

/* Lists and objects are kept as the text that they are in JSON. */
static void add_value(struct facts *facts, const char *field, const char *json) {
    struct node node;
    struct error err;

    if (json_read(json, strlen(json), &facts->arena, &node, &err))
        return;
    switch ((enum node_kind)node.kind) {
    case NODE_NULL:
    case NODE_KIND_COUNT: break;
    case NODE_BOOL:
        *VEC_PUSH(&facts->list) =
            (struct fact){ .field = field, .kind = CELL_TRUTH, .number = node.truth };
        break;
    case NODE_INT: add_number(facts, field, (double)node.integer); break;
    case NODE_FLOAT: add_number(facts, field, node.number); break;
    case NODE_TEXT: add_text(facts, field, node.text); break;
    case NODE_LIST:
    case NODE_MAP: add_text(facts, field, json); break;
    }
}

static void add_tracked(struct facts *facts, const struct run_record *run) {
    for (int kind = 0; kind < TRACKED_ARTIFACTS; kind++)
        for (size_t i = 0; i < run->tracked[kind].n; i++) {
            const struct tracked_value *value = &run->tracked[kind].values[i];

            add_value(facts,
                      arena_printf(&facts->arena, "%s.%s", tracked_kind_name(kind), value->key),
                      value->json);
        }
}

/* ---- metrics ---- */

/* What is known of one name so far. */
struct metric_facts {
    const char *name;
    uint32_t rank, attempt; /* whose last value it is */
    double last;
    struct summary all;
};

static void add_series(struct metric_facts *metric, const struct series_info *info) {
    if (metric->all.count == 0 || info->rank < metric->rank ||
        (info->rank == metric->rank && info->attempt > metric->attempt)) {
        metric->rank = info->rank;
        metric->attempt = info->attempt;
        metric->last = info->all.last;
    }
    if (metric->all.count == 0)
        metric->all = info->all;
    else
        summary_append(&metric->all, &info->all);
}

static void add_metrics(struct facts *facts, const char *directory) {
    VEC(struct metric_facts) metrics = { 0 };
    struct map names = { 0 };
    struct series_reader *reader;
    struct error err;

    if (series_reader_open(directory, &reader, &err))
        return;
    for (uint32_t i = 0; i < series_reader_count(reader); i++) {
        const struct series_info info = series_reader_info(reader, i);
        uint64_t at = metrics.len;

        if (info.all.count == 0 || strncmp(info.name, system_prefix, sizeof system_prefix - 1) == 0)
            continue;
        if (!map_get(&names, info.name, strlen(info.name), &at)) {
            map_put(&names, info.name, strlen(info.name), at);
            VEC_PUSH(&metrics)->name = info.name;
        }
        add_series(&metrics.items[at], &info);
    }
    for (size_t i = 0; i < metrics.len; i++) {
        const struct metric_facts *metric = &metrics.items[i];

        add_number(facts, arena_printf(&facts->arena, "metrics.%s", metric->name), metric->last);
        add_number(facts, arena_printf(&facts->arena, "min.%s", metric->name), metric->all.min);
        add_number(facts, arena_printf(&facts->arena, "max.%s", metric->name), metric->all.max);
    }
    VEC_RELEASE(&metrics);
    map_release(&names);
    series_reader_free(reader);
}

void facts_gather(struct facts *facts, const struct run_record *run) {
    add_own(facts, run);
    add_tracked(facts, run);
    add_metrics(facts, run->rundir.series);
}
