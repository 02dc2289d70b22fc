/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for other programs: points, or buckets of points, as CSV and JSON (docs/json.md). */
#ifndef CLI_METRIC_ROWS_H
#define CLI_METRIC_ROWS_H

#include <stdio.h>

#include "cli/curves.h"
#include "codec/json.h"
#include "store/record.h"

struct rows_wish {
    const struct run_record *run;
    enum series_axis axis;
    size_t n_buckets; /* 0: every point */
};

/* Text as a field of CSV, in quotes where it needs them. */
void csv_text(FILE *out, const char *text);

void csv_header(FILE *out, const struct rows_wish *wish);
/* `shown`, by series of the reader, says how many points were printed before, and is counted on;
 * NULL: all are printed. */
MUST_CHECK int csv_rows(FILE *out, const struct curves *curves, const struct rows_wish *wish,
                        uint64_t *shown, struct error *err);

/* A member. JSON has no NaN and no infinities: they are texts, as in most of its dialects. */
void json_value(struct json *json, const char *key, double value);

/* One object for each metric and task: what is known of it and, where they are asked for, its
 * points or buckets. */
MUST_CHECK int json_metrics(struct json *json, const struct curves *curves,
                            const struct rows_wish *wish, bool with_points, struct error *err);

#endif
