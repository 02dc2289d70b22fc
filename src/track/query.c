/* SPDX-License-Identifier: Apache-2.0 */
#include "track/query.h"

#include <math.h>
#include <stdlib.h>

#include "track/reader.h"

__extension__ typedef unsigned __int128 wide;

/* ---- points */

struct walk {
    struct series_reader *reader;
    uint64_t at; /* position of what comes next */
    uint64_t from, to;
    point_visit *visit;
    void *context;
    bool is_over;
};

static void walk_points(struct walk *walk, const struct point *points, size_t n) {
    for (size_t i = 0; i < n && !walk->is_over; i++, walk->at++)
        if (walk->at >= walk->to ||
            (walk->at >= walk->from && !walk->visit(walk->context, &points[i])))
            walk->is_over = true;
}

/* Whether the next n points are all outside; they are then passed over. */
static bool walk_past(struct walk *walk, uint64_t n) {
    if (walk->at < walk->to && walk->at + n > walk->from)
        return false;
    walk->at += n;
    return true;
}

static void walk_chunk(struct walk *walk, const struct data_node *leaf) {
    struct catalog *catalog = &walk->reader->catalog;
    const uint64_t end = walk->at + leaf->summary.count;
    struct point points[CHUNK_BLOCK];
    struct chunk_head head;
    uint64_t body_at;

    if (!catalog_head(catalog, leaf, &head, &body_at)) {
        walk->at = end;
        return;
    }
    for (uint32_t i = 0; i < head.n_blocks && !walk->is_over; i++) {
        const uint64_t n = head.blocks[i].summary.count;

        if (walk_past(walk, n))
            continue;
        if (catalog_block(catalog, &head, body_at, i, points))
            walk_points(walk, points, n);
        else
            walk->at += n;
    }
}

static void walk_node(struct walk *walk, const struct data_node *node, uint32_t depth) {
    const uint64_t end = walk->at + node->summary.count;
    struct data_node below[DATA_FAN];
    size_t n;

    if (walk->is_over || walk_past(walk, node->summary.count))
        return;
    if (depth == 0) {
        walk_chunk(walk, node);
        return;
    }
    n = catalog_children(&walk->reader->catalog, node, below);
    for (size_t i = 0; i < n; i++)
        walk_node(walk, &below[i], depth - 1);
    if (!walk->is_over)
        walk->at = end; /* also when some of it is damaged */
}

int series_points(struct series_reader *reader, uint32_t series, uint64_t from, uint64_t to,
                  point_visit *visit, void *context, struct error *err) {
    const struct catalog_series *found = &reader->catalog.series.items[series];
    const struct tail *tail = &reader->tails.items[series];
    struct walk walk = { reader, 0, from, to, visit, context, false };
    const uint64_t damaged = reader->catalog.damaged;

    if (found->root.summary.count > 0)
        walk_node(&walk, &found->root, found->depth);
    for (uint32_t i = found->first_loose; i; i = reader->catalog.loose.items[i - 1].next)
        walk_node(&walk, &reader->catalog.loose.items[i - 1].node, 0);
    walk_points(&walk, tail->items, tail->len);
    if (reader->catalog.damaged > damaged)
        return error_set(err, ERROR_IO, "some points of %s are damaged on the disk", found->name);
    return 0;
}

/* ---- buckets */

struct chart {
    struct series_reader *reader;
    struct series_range range;
    wide width; /* of the range: up to 2^64 */
    size_t n;
    struct summary *out;
    int64_t at; /* position of what comes next */
    /* The bucket of the last point, and its keys: points come in rows. */
    size_t bucket;
    int64_t low, high;
    bool has_bucket;
};

static bool is_inside(const struct chart *chart, int64_t key) {
    return key >= chart->range.from && key <= chart->range.to;
}

static size_t bucket_of(const struct chart *chart, int64_t key) {
    const uint64_t offset = (uint64_t)key - (uint64_t)chart->range.from;

    return (size_t)((wide)offset * chart->n / chart->width);
}

/* The first key of a bucket, of n + 1. */
static int64_t bucket_start(const struct chart *chart, size_t bucket) {
    const wide start = ((wide)bucket * chart->width + chart->n - 1) / chart->n;

    return (int64_t)((uint64_t)chart->range.from + (uint64_t)start);
}

static void enter_bucket(struct chart *chart, int64_t key) {
    if (chart->has_bucket && key >= chart->low && key <= chart->high)
        return;
    chart->bucket = bucket_of(chart, key);
    chart->low = bucket_start(chart, chart->bucket);
    /* Unsigned: a bucket may start one behind the last key that there is. */
    chart->high = chart->bucket + 1 < chart->n
                      ? (int64_t)((uint64_t)bucket_start(chart, chart->bucket + 1) - 1)
                      : chart->range.to;
    chart->has_bucket = true;
}

static int64_t key_of(const struct chart *chart, const struct point *point, int64_t position) {
    switch (chart->range.axis) {
    case SERIES_BY_STEP: return point->step;
    case SERIES_BY_TIME: return point->time_us;
    case SERIES_BY_INDEX: return position;
    }
    return 0;
}

/* Rows of points that fall into one bucket are summed up together. */
static void chart_points(struct chart *chart, const struct point *points, size_t n) {
    size_t i = 0;

    while (i < n) {
        const int64_t key = key_of(chart, &points[i], chart->at + (int64_t)i);
        size_t end = i + 1;

        if (is_inside(chart, key)) {
            struct summary row;

            enter_bucket(chart, key);
            for (; end < n; end++) {
                const int64_t next = key_of(chart, &points[end], chart->at + (int64_t)end);

                if (next < chart->low || next > chart->high)
                    break;
            }
            row = summary_of(points + i, end - i);
            summary_append(&chart->out[chart->bucket], &row);
        }
        i = end;
    }
    chart->at += (int64_t)n;
}

/* Takes in what is wholly in one bucket, or in none. False: it has to be looked into. */
static bool chart_summary(struct chart *chart, const struct summary *s) {
    int64_t low = chart->at, high = chart->at + (int64_t)s->count - 1;

    if (chart->range.axis == SERIES_BY_STEP) {
        low = s->min_step;
        high = s->max_step;
    } else if (chart->range.axis == SERIES_BY_TIME) {
        low = s->min_time_us;
        high = s->max_time_us;
    }
    if (high >= chart->range.from && low <= chart->range.to) {
        if (!is_inside(chart, low) || !is_inside(chart, high))
            return false;
        enter_bucket(chart, low);
        if (high > chart->high)
            return false;
        summary_append(&chart->out[chart->bucket], s);
    }
    chart->at += (int64_t)s->count;
    return true;
}

static void chart_chunk(struct chart *chart, const struct data_node *leaf) {
    struct catalog *catalog = &chart->reader->catalog;
    struct point points[CHUNK_BLOCK];
    struct chunk_head head;
    uint64_t body_at;

    if (!catalog_head(catalog, leaf, &head, &body_at))
        return;
    for (uint32_t i = 0; i < head.n_blocks; i++) {
        const struct summary *block = &head.blocks[i].summary;

        if (chart_summary(chart, block))
            continue;
        if (catalog_block(catalog, &head, body_at, i, points))
            chart_points(chart, points, block->count);
        else
            chart->at += (int64_t)block->count;
    }
}

static void chart_node(struct chart *chart, const struct data_node *node, uint32_t depth) {
    const int64_t end = chart->at + (int64_t)node->summary.count;
    struct data_node below[DATA_FAN];
    size_t n;

    if (chart_summary(chart, &node->summary))
        return;
    if (depth == 0) {
        chart_chunk(chart, node);
    } else {
        n = catalog_children(&chart->reader->catalog, node, below);
        for (size_t i = 0; i < n; i++)
            chart_node(chart, &below[i], depth - 1);
    }
    chart->at = end; /* also when some of it is damaged */
}

static void chart_series(struct chart *chart, uint32_t series) {
    const struct catalog_series *found = &chart->reader->catalog.series.items[series];
    const struct tail *tail = &chart->reader->tails.items[series];

    if (found->root.summary.count > 0)
        chart_node(chart, &found->root, found->depth);
    for (uint32_t i = found->first_loose; i; i = chart->reader->catalog.loose.items[i - 1].next)
        chart_node(chart, &chart->reader->catalog.loose.items[i - 1].node, 0);
    chart_points(chart, tail->items, tail->len);
}

int series_buckets(struct series_reader *reader, const uint32_t *series, size_t n_series,
                   const struct series_range *range, size_t n_buckets, struct summary *out,
                   struct error *err) {
    const uint64_t damaged = reader->catalog.damaged;
    struct chart chart = {
        .reader = reader,
        .range = *range,
        .width = (wide)((uint64_t)range->to - (uint64_t)range->from) + 1,
        .n = n_buckets,
        .out = out,
    };

    if (range->from > range->to || n_buckets == 0)
        return error_set(err, ERROR_INVALID, "an empty range has no buckets");
    for (size_t i = 0; i < n_buckets; i++)
        out[i] = (struct summary){ 0 };
    for (size_t i = 0; i < n_series; i++)
        chart_series(&chart, series[i]);
    if (reader->catalog.damaged > damaged)
        return error_set(err, ERROR_IO, "some points are damaged on the disk");
    return 0;
}

bool series_extent(const struct series_reader *reader, const uint32_t *series, size_t n_series,
                   enum series_axis axis, struct series_range *out) {
    struct summary all = { 0 };

    for (size_t i = 0; i < n_series; i++)
        summary_append(&all, &reader->catalog.series.items[series[i]].all);
    if (all.count == 0)
        return false;
    *out = (struct series_range){ .axis = axis, .from = 0, .to = (int64_t)all.count - 1 };
    if (axis == SERIES_BY_STEP) {
        out->from = all.min_step;
        out->to = all.max_step;
    } else if (axis == SERIES_BY_TIME) {
        out->from = all.min_time_us;
        out->to = all.max_time_us;
    }
    return true;
}

/* ---- several ranks as one */

struct folded {
    double value;
    uint64_t n;
};

static void fold_value(struct folded *folded, double value, enum series_fold fold) {
    if (isnan(value))
        return;
    if (folded->n == 0)
        folded->value = value;
    else if (fold == SERIES_FOLD_MIN)
        folded->value = fmin(folded->value, value);
    else if (fold == SERIES_FOLD_MAX)
        folded->value = fmax(folded->value, value);
    else
        folded->value = folded->value * ((double)folded->n / (double)(folded->n + 1)) +
                        value / (double)(folded->n + 1);
    folded->n++;
}

int series_fold_buckets(struct series_reader *reader, const uint32_t *series, size_t n_series,
                        const struct series_range *range, enum series_fold fold, size_t n_buckets,
                        struct summary *out, struct error *err) {
    struct summary *one = calloc(n_buckets, sizeof *one);
    struct folded *means = calloc(n_buckets, sizeof *means);
    struct folded *lasts = calloc(n_buckets, sizeof *lasts);
    int status = 0;

    if (!one || !means || !lasts)
        abort();
    for (size_t b = 0; b < n_buckets; b++)
        out[b] = (struct summary){ 0 };
    for (size_t i = 0; i < n_series && status == 0; i++) {
        status = series_buckets(reader, &series[i], 1, range, n_buckets, one, err);
        for (size_t b = 0; b < n_buckets && status == 0; b++) {
            if (one[b].count == 0)
                continue;
            summary_append(&out[b], &one[b]);
            fold_value(&means[b], one[b].mean, fold);
            fold_value(&lasts[b], one[b].last, fold);
        }
    }
    for (size_t b = 0; b < n_buckets; b++) {
        out[b].mean = means[b].n ? means[b].value : NAN;
        out[b].last = lasts[b].n ? lasts[b].value : NAN;
    }
    free(one);
    free(means);
    free(lasts);
    return status;
}
