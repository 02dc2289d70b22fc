/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "cli/terminal.h"
#include "codec/visible.h"

enum { GAP = 2, NARROWEST = 12 /* a column is cut down to no less */ };

static const char ellipsis[] = "…";

struct layout {
    size_t n, widths[TABLE_COLUMNS_MAX];
    bool is_filled[TABLE_COLUMNS_MAX];
    size_t room; /* of a line; 0: any */
};

void table_init(struct table *table, size_t n_columns) {
    assert(n_columns <= TABLE_COLUMNS_MAX);
    *table = (struct table){ .n_columns = n_columns };
}

void table_cell(struct table *table, const char *fmt, ...) {
    va_list args;

    va_start(args, fmt);
    *VEC_PUSH(&table->cells) = arena_vprintf(&table->arena, fmt, args);
    va_end(args);
    *VEC_PUSH(&table->paints) = NULL;
}

void table_paint(struct table *table, const char *colour) {
    assert(table->paints.len > 0);
    table->paints.items[table->paints.len - 1] = colour;
}

static size_t line_width(const struct layout *layout) {
    size_t width = 0;

    for (size_t c = 0; c < layout->n; c++)
        if (layout->is_filled[c])
            width += (width ? GAP : 0) + layout->widths[c];
    return width;
}

/* Takes from the widest column, column by column, until all of them fit. */
static void narrow(struct layout *layout) {
    while (layout->room && line_width(layout) > layout->room) {
        const size_t too_much = line_width(layout) - layout->room;
        size_t widest = 0, second = NARROWEST, taken;

        for (size_t c = 0; c < layout->n; c++)
            if (layout->is_filled[c] && layout->widths[c] > layout->widths[widest])
                widest = c;
        for (size_t c = 0; c < layout->n; c++)
            if (c != widest && layout->is_filled[c] && layout->widths[c] > second)
                second = layout->widths[c];
        if (layout->widths[widest] <= NARROWEST)
            return; /* lines are cut at their end */
        taken = layout->widths[widest] > second ? layout->widths[widest] - second : 1;
        layout->widths[widest] -= taken < too_much ? taken : too_much;
    }
}

static struct layout lay_out(const struct table *table, FILE *out) {
    struct layout layout = { .n = table->n_columns,
                             .room = table->width ? table->width : terminal_columns(out) };

    for (size_t i = 0; i < table->cells.len; i++) {
        const size_t width = visible_columns(table->cells.items[i]), c = i % layout.n;

        if (width > layout.widths[c])
            layout.widths[c] = width;
        if (i >= layout.n && width > 0)
            layout.is_filled[c] = true;
    }
    for (size_t c = 0; c < layout.n; c++)
        if (!layout.is_filled[c])
            layout.widths[c] = 0;
    narrow(&layout);
    return layout;
}

/* Prints the cell, or as much of it as there is room for; returns its columns. */
static size_t print_cell(const char *cell, size_t width, const char *paint, FILE *out) {
    const size_t n = strlen(cell), whole = visible_columns(cell);
    const bool is_cut = whole > width;
    const size_t fits = is_cut ? visible_fit(cell, n, width - 1) : n;

    if (paint)
        fprintf(out, "\033[%sm", paint);
    fprintf(out, "%.*s%s%s", (int)fits, cell, is_cut ? ellipsis : "", paint ? "\033[0m" : "");
    if (!is_cut)
        return whole;
    return visible_columns(cell) - visible_columns(cell + fits) + 1;
}

static void print_row(const struct table *table, const struct layout *layout, size_t row,
                      bool has_colours, FILE *out) {
    size_t gap = 0, used = 0;

    for (size_t c = 0; c < layout->n; c++) {
        const char *cell = table->cells.items[row + c], *paint = table->paints.items[row + c];
        size_t width = layout->widths[c], shown = 0;

        if (!layout->is_filled[c])
            continue;
        /* Blanks wait for the next text, so that no line ends in them. */
        if (*cell) {
            if (layout->room && used + gap + 1 > layout->room)
                return;
            if (layout->room && used + gap + width > layout->room)
                width = layout->room - used - gap;
            fprintf(out, "%*s", (int)gap, "");
            shown = print_cell(cell, width, has_colours ? paint : NULL, out);
            used += gap + shown;
            gap = 0;
        }
        gap += (layout->widths[c] > shown ? layout->widths[c] - shown : 0) + GAP;
    }
}

void table_print(const struct table *table, FILE *out, int has_colours) {
    const struct layout layout = lay_out(table, out);

    assert(layout.n > 0 && table->cells.len % layout.n == 0);
    for (size_t row = 0; row < table->cells.len; row += layout.n) {
        const bool is_bold = has_colours && row == 0;

        fputs(is_bold ? "\033[1m" : "", out);
        print_row(table, &layout, row, has_colours, out);
        fputs(is_bold ? "\033[0m\n" : "\n", out);
    }
}

void table_release(struct table *table) {
    VEC_RELEASE(&table->cells);
    VEC_RELEASE(&table->paints);
    arena_release(&table->arena);
}
