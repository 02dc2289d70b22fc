/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Curves drawn with characters: a chart with axes, each cell a grid of 2 x 4 dots (braille), or one
 * line of eight heights. Pure: columns in, text out.
 *
 * A column is what falls into one dot's width: the dots from its least to its greatest value are
 * set, so an extreme is seen however much is pressed into the width, and columns are joined by
 * lines. What is not a finite number leaves a gap.
 */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include <stdbool.h>

#include "base/buf.h"

enum { PLOT_DOTS_ACROSS = 2, PLOT_DOTS_DOWN = 4, PLOT_CURVES_MOST = 8 };

struct plot_column {
    bool has; /* false: nothing is known here */
    double min, max, mean;
};

struct plot_curve {
    const char *label;                 /* shown when there are several */
    const struct plot_column *columns; /* PLOT_DOTS_ACROSS for each cell of the width */
};

struct plot {
    const char *title;
    unsigned width, height; /* of the canvas, in cells */
    const char *x_from, *x_to;
    bool is_coloured;
    bool is_logarithmic; /* values up to 0 leave gaps then */
    const struct plot_curve *curves;
    size_t n_curves; /* those beyond PLOT_CURVES_MOST are not drawn */
};

/* How many cells are taken at the left by the axis. */
enum { PLOT_MARGIN = 11 };

MUST_CHECK int plot_draw(const struct plot *plot, struct buf *out, struct error *err);

/* One character for each column, by its mean between the least and the greatest of all. */
MUST_CHECK int plot_spark(const struct plot_column *columns, size_t n, struct buf *out,
                          struct error *err);

/* A number in at most 9 characters: 0.03125, 1.2e-07, 123456, nan. */
struct plot_number {
    char text[16];
};
struct plot_number plot_number(double value);

#endif
