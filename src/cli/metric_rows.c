/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/metric_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/number.h"

static struct task_name name_of(const struct run_record *run, uint32_t rank) {
    struct task_name unknown;

    if (rank < run->n_tasks)
        return task_name(&run->task_names[rank]);
    snprintf(unknown.text, sizeof unknown.text, "rank %u", rank);
    return unknown;
}

/* Buckets of one series over all that it holds. *out is released by the caller. */
static int make_buckets(const struct curves *curves, uint32_t series, const struct rows_wish *wish,
                        struct summary **out, struct error *err) {
    struct series_range range;
    struct summary *buckets = calloc(wish->n_buckets, sizeof *buckets);

    if (!buckets)
        abort();
    *out = buckets;
    if (!series_extent(curves->reader, &series, 1, wish->axis, &range))
        return 0;
    return series_buckets(curves->reader, &series, 1, &range, wish->n_buckets, buckets, err);
}

/* ---- CSV ---- */

void csv_text(FILE *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_number(FILE *out, double value) {
    char text[NUMBER_TEXT_MAX];

    number_format(value, text);
    fprintf(out, ",%s", text);
}

void csv_header(FILE *out, const struct rows_wish *wish) {
    fputs(wish->n_buckets == 0 ? "name,task,rank,attempt,step,time,value\n"
                               : "name,task,rank,attempt,first_step,last_step,first_time,last_time,"
                                 "count,nans,min,max,mean,last\n",
          out);
}

struct csv_row {
    FILE *out;
    const struct series_info *info;
    struct task_name task;
};

static void csv_begin(const struct csv_row *row) {
    csv_text(row->out, row->info->name);
    fprintf(row->out, ",%s,%u,%u", row->task.text, row->info->rank, row->info->attempt);
}

static bool csv_point(void *context, const struct point *point) {
    const struct csv_row *row = context;

    csv_begin(row);
    fprintf(row->out, ",%lld,%s", (long long)point->step,
            time_text(point->time_us, TIME_MICROSECONDS).text);
    csv_number(row->out, point->value);
    fputc('\n', row->out);
    return !ferror(row->out);
}

static void csv_bucket(const struct csv_row *row, const struct summary *bucket) {
    csv_begin(row);
    fprintf(row->out, ",%lld,%lld,%s,%s,%llu,%llu", (long long)bucket->first_step,
            (long long)bucket->last_step, time_text(bucket->first_time_us, TIME_MICROSECONDS).text,
            time_text(bucket->last_time_us, TIME_MICROSECONDS).text,
            (unsigned long long)bucket->count, (unsigned long long)bucket->nans);
    csv_number(row->out, bucket->min);
    csv_number(row->out, bucket->max);
    csv_number(row->out, bucket->mean);
    csv_number(row->out, bucket->last);
    fputc('\n', row->out);
}

static int csv_buckets(const struct csv_row *row, const struct curves *curves, uint32_t series,
                       const struct rows_wish *wish, struct error *err) {
    struct summary *buckets;
    const int status = make_buckets(curves, series, wish, &buckets, err);

    for (size_t i = 0; status == 0 && i < wish->n_buckets; i++)
        if (buckets[i].count > 0)
            csv_bucket(row, &buckets[i]);
    free(buckets);
    return status;
}

int csv_rows(FILE *out, const struct curves *curves, const struct rows_wish *wish, uint64_t *shown,
             struct error *err) {
    for (size_t i = 0; i < curves->series.len; i++) {
        const uint32_t series = curves->series.items[i];
        const struct series_info info = series_reader_info(curves->reader, series);
        struct csv_row row = { out, &info, name_of(wish->run, info.rank) };

        if (wish->n_buckets ? csv_buckets(&row, curves, series, wish, err)
                            : series_points(curves->reader, series, shown ? shown[series] : 0,
                                            info.all.count, csv_point, &row, err))
            return -1;
        if (shown)
            shown[series] = info.all.count;
    }
    return 0;
}

/* ---- JSON ---- */

void json_value(struct json *json, const char *key, double value) {
    json_key(json, key);
    if (isnan(value))
        json_text(json, "NaN");
    else if (isinf(value))
        json_text(json, value > 0 ? "Infinity" : "-Infinity");
    else
        json_number(json, value);
}

static void json_moment(struct json *json, const char *key, int64_t time_us) {
    json_key(json, key);
    json_text(json, time_text(time_us, TIME_MICROSECONDS).text);
}

static void json_count(struct json *json, const char *key, uint64_t count) {
    json_key(json, key);
    json_int(json, (int64_t)count);
}

static void json_summary(struct json *json, const struct summary *all) {
    json_count(json, "count", all->count);
    json_count(json, "nans", all->nans);
    json_value(json, "min", all->min);
    json_value(json, "max", all->max);
    json_value(json, "mean", all->mean);
    json_value(json, "last", all->last);
    json_key(json, "first_step");
    json_int(json, all->first_step);
    json_key(json, "last_step");
    json_int(json, all->last_step);
    json_moment(json, "first_time", all->first_time_us);
    json_moment(json, "last_time", all->last_time_us);
}

static bool json_point(void *context, const struct point *point) {
    struct json *json = context;

    json_object(json);
    json_key(json, "step");
    json_int(json, point->step);
    json_moment(json, "time", point->time_us);
    json_value(json, "value", point->value);
    json_end(json);
    return !json->failed;
}

static int json_buckets(struct json *json, const struct curves *curves, uint32_t series,
                        const struct rows_wish *wish, struct error *err) {
    struct summary *buckets;
    const int status = make_buckets(curves, series, wish, &buckets, err);

    for (size_t i = 0; status == 0 && i < wish->n_buckets; i++)
        if (buckets[i].count > 0) {
            json_object(json);
            json_summary(json, &buckets[i]);
            json_end(json);
        }
    free(buckets);
    return status;
}

int json_metrics(struct json *json, const struct curves *curves, const struct rows_wish *wish,
                 bool with_points, struct error *err) {
    int status = 0;

    json_array(json);
    for (size_t i = 0; status == 0 && i < curves->series.len; i++) {
        const uint32_t series = curves->series.items[i];
        const struct series_info info = series_reader_info(curves->reader, series);

        json_object(json);
        json_key(json, "name");
        json_text(json, info.name);
        json_key(json, "task");
        json_text(json, name_of(wish->run, info.rank).text);
        json_count(json, "rank", info.rank);
        json_count(json, "attempt", info.attempt);
        json_summary(json, &info.all);
        if (with_points) {
            json_key(json, wish->n_buckets ? "buckets" : "points");
            json_array(json);
            status = wish->n_buckets ? json_buckets(json, curves, series, wish, err)
                                     : series_points(curves->reader, series, 0, info.all.count,
                                                     json_point, json, err);
            json_end(json);
        }
        json_end(json);
    }
    json_end(json);
    return status;
}
