/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series of a run are looked at, and as which curves: by name, then by task, then by attempt.
 * The attempts of one task are one curve, one behind the other.
 */
#ifndef CLI_CURVES_H
#define CLI_CURVES_H

#include "base/vec.h"
#include "cli/plot.h"
#include "track/query.h"

#define CURVES_ANY UINT32_MAX /* as rank or attempt */

struct curves_wish {
    const char *const *names; /* patterns as a shell's; none: all but system metrics */
    size_t n_names;
    bool with_system; /* also those of myelin itself, where no name is given */
    uint32_t rank, attempt;
};

/* What one task logged under one name. */
struct curve {
    uint32_t rank;
    uint32_t first, n; /* of `curves.series` */
};

/* What was logged under one name. */
struct metric {
    const char *name;
    uint32_t first, n; /* of `curves.list` */
};

struct curves {
    struct series_reader *reader;
    VEC(uint32_t) series; /* of the reader, in order */
    VEC(struct curve) list;
    VEC(struct metric) metrics;
};

/* The reader is borrowed. */
void curves_select(struct curves *curves, struct series_reader *reader,
                   const struct curves_wish *wish);
void curves_release(struct curves *curves);

/* All that was logged by a task, or under a name, in one. */
struct summary curve_summary(const struct curves *curves, const struct curve *curve);
struct summary metric_summary(const struct curves *curves, const struct metric *metric);

/* The series of a metric, one behind the other. */
const uint32_t *metric_series(const struct curves *curves, const struct metric *metric, size_t *n);

struct plot_column plot_column_of(const struct summary *bucket);

#endif
