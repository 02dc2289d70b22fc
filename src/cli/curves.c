/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/curves.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char system_prefix[] = "system/";

static bool is_wished(const struct curves_wish *wish, const struct series_info *info) {
    if (info->all.count == 0 || (wish->rank != CURVES_ANY && wish->rank != info->rank) ||
        (wish->attempt != CURVES_ANY && wish->attempt != info->attempt))
        return false;
    for (size_t i = 0; i < wish->n_names; i++)
        if (strcmp(wish->names[i], info->name) == 0 || fnmatch(wish->names[i], info->name, 0) == 0)
            return true;
    return wish->n_names == 0 &&
           (wish->with_system || strncmp(info->name, system_prefix, sizeof system_prefix - 1) != 0);
}

static int compare_numbers(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

static int compare_series(const void *a, const void *b, void *context) {
    const struct series_info x = series_reader_info(context, *(const uint32_t *)a);
    const struct series_info y = series_reader_info(context, *(const uint32_t *)b);
    const int by_name = strcmp(x.name, y.name), by_rank = compare_numbers(x.rank, y.rank);

    return by_name ? by_name : by_rank ? by_rank : compare_numbers(x.attempt, y.attempt);
}

void curves_select(struct curves *curves, struct series_reader *reader,
                   const struct curves_wish *wish) {
    *curves = (struct curves){ .reader = reader };
    for (uint32_t i = 0; i < series_reader_count(reader); i++) {
        const struct series_info info = series_reader_info(reader, i);

        if (is_wished(wish, &info))
            *VEC_PUSH(&curves->series) = i;
    }
    if (curves->series.len)
        qsort_r(curves->series.items, curves->series.len, sizeof curves->series.items[0],
                compare_series, reader);
    for (uint32_t i = 0; i < curves->series.len; i++) {
        const struct series_info info = series_reader_info(reader, curves->series.items[i]);
        struct metric *metric =
            curves->metrics.len ? &curves->metrics.items[curves->metrics.len - 1] : NULL;
        struct curve *curve = curves->list.len ? &curves->list.items[curves->list.len - 1] : NULL;
        const bool is_new_name = !metric || strcmp(metric->name, info.name) != 0;

        if (is_new_name) {
            metric = VEC_PUSH(&curves->metrics);
            *metric = (struct metric){ .name = info.name, .first = (uint32_t)curves->list.len };
        }
        if (is_new_name || curve->rank != info.rank) {
            curve = VEC_PUSH(&curves->list);
            *curve = (struct curve){ .rank = info.rank, .first = i };
            metric->n++;
        }
        curve->n++;
    }
}

void curves_release(struct curves *curves) {
    VEC_RELEASE(&curves->series);
    VEC_RELEASE(&curves->list);
    VEC_RELEASE(&curves->metrics);
}

struct summary curve_summary(const struct curves *curves, const struct curve *curve) {
    struct summary all = series_reader_info(curves->reader, curves->series.items[curve->first]).all;

    for (uint32_t i = 1; i < curve->n; i++) {
        const struct series_info next =
            series_reader_info(curves->reader, curves->series.items[curve->first + i]);

        summary_append(&all, &next.all);
    }
    return all;
}

struct summary metric_summary(const struct curves *curves, const struct metric *metric) {
    struct summary all = curve_summary(curves, &curves->list.items[metric->first]);

    for (uint32_t i = 1; i < metric->n; i++) {
        const struct summary next = curve_summary(curves, &curves->list.items[metric->first + i]);

        summary_append(&all, &next);
    }
    return all;
}

const uint32_t *metric_series(const struct curves *curves, const struct metric *metric, size_t *n) {
    const struct curve *first = &curves->list.items[metric->first];
    const struct curve *last = &curves->list.items[metric->first + metric->n - 1];

    *n = last->first + last->n - first->first;
    return &curves->series.items[first->first];
}

struct plot_column plot_column_of(const struct summary *bucket) {
    return (struct plot_column){
        .has = bucket->count > 0, .min = bucket->min, .max = bucket->max, .mean = bucket->mean
    };
}
