/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = 0xff, LABEL_EVERY = 4 };

/* The canvas: which dots of a cell are set, and which curve was there last. */
struct canvas {
    unsigned width, height; /* in cells */
    unsigned char *dots, *curves;
};

struct scale {
    double from, to; /* of what is drawn: values, or their logarithms */
    bool is_logarithmic;
};

struct plot_number plot_number(double value) {
    struct plot_number number;

    if (isnan(value))
        return (struct plot_number){ "nan" };
    snprintf(number.text, sizeof number.text, "%.5g", value);
    if (strlen(number.text) > 9)
        snprintf(number.text, sizeof number.text, "%.3g", value);
    return number;
}

static bool is_drawn(const struct scale *scale, double value) {
    return isfinite(value) && (!scale->is_logarithmic || value > 0);
}

static double place(const struct scale *scale, double value) {
    return scale->is_logarithmic ? log10(value) : value;
}

static double value_at(const struct scale *scale, double place) {
    return scale->is_logarithmic ? pow(10, place) : place;
}

static void widen(struct scale *scale, double value) {
    if (!is_drawn(scale, value))
        return;
    value = place(scale, value);
    scale->from = value < scale->from ? value : scale->from;
    scale->to = value > scale->to ? value : scale->to;
}

/* The smallest that holds everything; a flat curve lies in its middle. */
static struct scale find_scale(const struct plot *plot, size_t n_columns) {
    struct scale scale = { INFINITY, -INFINITY, plot->is_logarithmic };

    for (size_t i = 0; i < plot->n_curves; i++)
        for (size_t x = 0; x < n_columns; x++)
            if (plot->curves[i].columns[x].has) {
                widen(&scale, plot->curves[i].columns[x].min);
                widen(&scale, plot->curves[i].columns[x].max);
            }
    if (scale.from > scale.to)
        scale.from = scale.to = 0;
    if (scale.to - scale.from <= 0) {
        const double half = scale.from == 0 ? 1 : fabs(scale.from) / 2;

        scale.from -= half;
        scale.to += half;
    }
    return scale;
}

/* From the bottom, in dots. */
static long row_of(const struct canvas *canvas, const struct scale *scale, double value) {
    const double share = (place(scale, value) - scale->from) / (scale->to - scale->from);
    const long rows = (long)canvas->height * PLOT_DOTS_DOWN;
    const long row = lround(share * (double)(rows - 1));

    return row < 0 ? 0 : row >= rows ? rows - 1 : row;
}

static void set_dots(struct canvas *canvas, size_t x, long from, long to, unsigned char curve) {
    static const unsigned char bits[PLOT_DOTS_ACROSS][PLOT_DOTS_DOWN] = {
        { 0x40, 0x04, 0x02, 0x01 }, /* from the bottom up */
        { 0x80, 0x20, 0x10, 0x08 },
    };

    if (from > to) {
        const long swapped = from;

        from = to;
        to = swapped;
    }
    for (long row = from; row <= to; row++) {
        const size_t line = canvas->height - 1 - (size_t)row / PLOT_DOTS_DOWN;
        const size_t cell = line * canvas->width + x / PLOT_DOTS_ACROSS;

        canvas->dots[cell] |= bits[x % PLOT_DOTS_ACROSS][row % PLOT_DOTS_DOWN];
        canvas->curves[cell] = curve;
    }
}

/* A straight line between two means, also over columns that hold nothing. */
static void join(struct canvas *canvas, size_t x0, long row0, size_t x1, long row1,
                 unsigned char curve) {
    for (size_t x = x0 + 1; x <= x1; x++) {
        const long before = row0 + (row1 - row0) * (long)(x - 1 - x0) / (long)(x1 - x0);
        const long here = row0 + (row1 - row0) * (long)(x - x0) / (long)(x1 - x0);

        set_dots(canvas, x, before, here, curve);
    }
}

static void draw_curve(struct canvas *canvas, const struct scale *scale,
                       const struct plot_curve *curve, unsigned char number) {
    const size_t n = (size_t)canvas->width * PLOT_DOTS_ACROSS;
    size_t last_x = n;
    long last_row = 0;

    for (size_t x = 0; x < n; x++) {
        const struct plot_column *column = &curve->columns[x];
        long row;

        if (!column->has)
            continue;
        if (!is_drawn(scale, column->mean)) {
            last_x = n; /* a gap, not a bridge */
            continue;
        }
        row = row_of(canvas, scale, column->mean);
        set_dots(canvas, x, row, row, number);
        if (is_drawn(scale, column->min) && is_drawn(scale, column->max))
            set_dots(canvas, x, row_of(canvas, scale, column->min),
                     row_of(canvas, scale, column->max), number);
        if (last_x < n)
            join(canvas, last_x, last_row, x, row, number);
        last_x = x;
        last_row = row;
    }
}

/* ---- as text ---- */

static const char *const colours[PLOT_CURVES_MOST] = { "36", "33", "35", "32",
                                                       "34", "31", "96", "93" };

static int put_cell(struct buf *out, unsigned char dots, struct error *err) {
    /* U+2800 and the dots above it, in UTF-8. */
    const char text[] = { (char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)) };

    return dots ? buf_append(out, text, sizeof text, err) : buf_append(out, " ", 1, err);
}

static int put_line(const struct plot *plot, const struct canvas *canvas, size_t line,
                    struct buf *out, struct error *err) {
    const size_t at = line * canvas->width;
    unsigned char shown = NOBODY;
    size_t end = canvas->width;

    while (end > 0 && !canvas->dots[at + end - 1])
        end--;
    for (size_t x = 0; x < end; x++) {
        const unsigned char curve = canvas->dots[at + x] ? canvas->curves[at + x] : shown;

        if (plot->is_coloured && curve != shown && curve != NOBODY &&
            buf_printf(out, err, "\x1b[%sm", colours[curve]))
            return -1;
        shown = curve;
        if (put_cell(out, canvas->dots[at + x], err))
            return -1;
    }
    if (plot->is_coloured && shown != NOBODY && buf_printf(out, err, "\x1b[0m"))
        return -1;
    return buf_append(out, "\n", 1, err);
}

static int put_axis(const struct plot *plot, const struct scale *scale, size_t line,
                    struct buf *out, struct error *err) {
    const double rows = plot->height > 1 ? plot->height - 1 : 1;
    const bool has_label = line % LABEL_EVERY == 0 || line + 1 == plot->height;
    const double at = scale->to - (scale->to - scale->from) * (double)line / rows;

    if (!has_label)
        return buf_printf(out, err, "%*s │", PLOT_MARGIN - 2, "");
    return buf_printf(out, err, "%*s ┤", PLOT_MARGIN - 2, plot_number(value_at(scale, at)).text);
}

static int put_foot(const struct plot *plot, struct buf *out, struct error *err) {
    const size_t left = strlen(plot->x_from), right = strlen(plot->x_to);
    const int gap = left + right < plot->width ? (int)(plot->width - left - right) : 1;

    if (buf_printf(out, err, "%*s └", PLOT_MARGIN - 2, ""))
        return -1;
    for (unsigned x = 0; x < plot->width; x++)
        if (buf_printf(out, err, "─"))
            return -1;
    return buf_printf(out, err, "\n%*s%s%*s%s\n", PLOT_MARGIN, "", plot->x_from, gap, "",
                      plot->x_to);
}

static int put_legend(const struct plot *plot, struct buf *out, struct error *err) {
    if (plot->n_curves < 2)
        return 0;
    if (buf_printf(out, err, "%*s", PLOT_MARGIN, ""))
        return -1;
    for (size_t i = 0; i < plot->n_curves && i < PLOT_CURVES_MOST; i++) {
        const char *const before = plot->is_coloured ? colours[i] : NULL;

        if (before ? buf_printf(out, err, "\x1b[%sm━ %s\x1b[0m  ", before, plot->curves[i].label)
                   : buf_printf(out, err, "%s  ", plot->curves[i].label))
            return -1;
    }
    out->len -= 2;
    if (plot->n_curves > PLOT_CURVES_MOST &&
        buf_printf(out, err, "  and %zu more", plot->n_curves - PLOT_CURVES_MOST))
        return -1;
    return buf_append(out, "\n", 1, err);
}

static int put_plot(const struct plot *plot, const struct canvas *canvas, const struct scale *scale,
                    struct buf *out, struct error *err) {
    if (buf_printf(out, err, "%s\n", plot->title))
        return -1;
    for (size_t line = 0; line < plot->height; line++)
        if (put_axis(plot, scale, line, out, err) || put_line(plot, canvas, line, out, err))
            return -1;
    if (put_foot(plot, out, err))
        return -1;
    return put_legend(plot, out, err);
}

int plot_draw(const struct plot *plot, struct buf *out, struct error *err) {
    const size_t cells = (size_t)plot->width * plot->height;
    struct canvas canvas = { .width = plot->width,
                             .height = plot->height,
                             .dots = calloc(cells ? cells : 1, 1),
                             .curves = calloc(cells ? cells : 1, 1) };
    const struct scale scale = find_scale(plot, (size_t)plot->width * PLOT_DOTS_ACROSS);
    int status;

    if (!canvas.dots || !canvas.curves)
        abort();
    for (size_t i = plot->n_curves; i-- > 0;) /* the first one lies on top */
        if (i < PLOT_CURVES_MOST)
            draw_curve(&canvas, &scale, &plot->curves[i], (unsigned char)i);
    status = put_plot(plot, &canvas, &scale, out, err);
    free(canvas.dots);
    free(canvas.curves);
    return status;
}

int plot_spark(const struct plot_column *columns, size_t n, struct buf *out, struct error *err) {
    static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    const int top = (int)(sizeof heights / sizeof heights[0]) - 1;
    double from = INFINITY, to = -INFINITY;

    for (size_t i = 0; i < n; i++)
        if (columns[i].has && isfinite(columns[i].mean)) {
            from = fmin(from, columns[i].mean);
            to = fmax(to, columns[i].mean);
        }
    for (size_t i = 0; i < n; i++) {
        const double mean = columns[i].mean;
        const bool is_drawn_here = columns[i].has && isfinite(mean);
        const int height =
            to > from && is_drawn_here ? (int)lround((mean - from) / (to - from) * top) : top / 2;

        assert(height >= 0 && height <= top);
        if (buf_printf(out, err, "%s", is_drawn_here ? heights[height] : " "))
            return -1;
    }
    return 0;
}
