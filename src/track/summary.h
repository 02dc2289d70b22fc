/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a row of points without looking at them: of a block, a chunk, a series, or of
 * what falls into one bucket of a chart. Pure.
 *
 * NaN is counted apart: min, max and mean are those of the other values, and NaN when there are
 * none. The infinities are values. `last` is the last logged, NaN or not.
 */
#ifndef TRACK_SUMMARY_H
#define TRACK_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "track/bytes.h"
#include "track/point.h"

struct summary {
    uint64_t count; /* all points; 0: the rest means nothing */
    uint64_t nans;  /* those among them that are NaN */
    double min, max, mean, last;
    int64_t first_step, last_step, min_step, max_step; /* first and last in the order logged */
    int64_t first_time_us, last_time_us, min_time_us, max_time_us;
};

struct summary summary_of(const struct point *points, size_t n);
/* The summary of both, of which `next` was logged later. */
void summary_append(struct summary *summary, const struct summary *next);

/* What any row of points satisfies; what was read from a disk may not. */
bool summary_is_sane(const struct summary *summary);

/* Steps and times are stored as differences from these: where the row before ended, or 0. */
struct summary_origin {
    int64_t step, time_us;
};

/* To bytes and back; docs/series.md has the layout. The count is stored otherwise. */
void summary_put(const struct summary *summary, struct summary_origin origin, struct bytes *out);
bool summary_take(struct cursor *in, uint64_t count, struct summary_origin origin,
                  struct summary *out);

#endif
