/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the store of series of a run (series.h), also while somebody writes it.
 *
 * A reader shows the store as it was at one moment, between two commits or, of the last, none:
 * each series is a prefix of what was logged. To see more, open it again. A reader holds two open
 * files and the last points; it never waits for the writer and leaves nothing behind.
 *
 * Charts come as buckets. A range of steps, times or positions is cut into n equal parts; each
 * bucket has the extremes, the mean and the last of the points that fall into it, exactly (the
 * mean up to rounding). Whole chunks and blocks are taken from their summaries, so that the cost
 * goes with the number of buckets, not with the number of points.
 */
#ifndef TRACK_QUERY_H
#define TRACK_QUERY_H

#include "track/series.h"
#include "track/summary.h"

struct series_reader;

/* ERROR_NOT_FOUND: nothing was ever logged there. */
MUST_CHECK int series_reader_open(const char *directory, struct series_reader **out,
                                  struct error *err);
void series_reader_free(struct series_reader *reader);
DEFINE_AUTO_PTR(series_reader)

struct series_info {
    const char *name; /* as long as the reader lives; NUL-terminated */
    uint32_t rank, attempt;
    struct summary all; /* of all its points: summary.h */
};

/* Series are numbered from 0 in the order in which they were first logged. */
uint32_t series_reader_count(const struct series_reader *reader);
struct series_info series_reader_info(const struct series_reader *reader, uint32_t series);

/* Damaged chunks that were passed over so far: 0 on a sound disk. */
uint64_t series_reader_damaged(const struct series_reader *reader);

/* The points at positions [from, to), in the order they were logged. The callback returns false
 * to end it. */
typedef bool point_visit(void *context, const struct point *point);
MUST_CHECK int series_points(struct series_reader *reader, uint32_t series, uint64_t from,
                             uint64_t to, point_visit *visit, void *context, struct error *err);

enum series_axis { SERIES_BY_STEP, SERIES_BY_TIME, SERIES_BY_INDEX };

/* Both ends belong to it; from <= to. Bucket i of n holds the keys k with
 * floor((k - from) * n / (to - from + 1)) == i. */
struct series_range {
    enum series_axis axis;
    int64_t from, to;
};

/* The smallest range that holds all points of these series. False: they have none. */
bool series_extent(const struct series_reader *reader, const uint32_t *series, size_t n_series,
                   enum series_axis axis, struct series_range *out);

/* Fills out[0 .. n_buckets). Several series are joined in the given order, as the attempts of one
 * rank are: positions go on counting, and "last" is that of the later series. A bucket without
 * points has count 0. */
MUST_CHECK int series_buckets(struct series_reader *reader, const uint32_t *series, size_t n_series,
                              const struct series_range *range, size_t n_buckets,
                              struct summary *out, struct error *err);

enum series_fold { SERIES_FOLD_MEAN, SERIES_FOLD_MIN, SERIES_FOLD_MAX };

/* One curve of several ranks. Each series counts alike, however many points it has in a bucket:
 * mean and last are the mean (least, greatest) of the series' means and lasts, without NaN where
 * there is another; min and max are those of all. */
MUST_CHECK int series_fold_buckets(struct series_reader *reader, const uint32_t *series,
                                   size_t n_series, const struct series_range *range,
                                   enum series_fold fold, size_t n_buckets, struct summary *out,
                                   struct error *err);

#endif
