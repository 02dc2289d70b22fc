/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of texts printed in columns as wide as their widest cell. Into a pipe or a file every cell
 * is whole. On a terminal no line is wrapped: the widest columns are cut, with an ellipsis, until
 * the table fits.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/vec.h"

enum { TABLE_COLUMNS_MAX = 64 };

struct table {
    struct arena arena;
    size_t n_columns;
    size_t width;             /* columns of the terminal; 0: those of the stream it is printed to */
    VEC(const char *) cells;  /* row by row */
    VEC(const char *) paints; /* of each cell: parameters of a colour sequence; NULL: none */
};

/* The header is the first row. */
void table_init(struct table *table, size_t n_columns);
void table_cell(struct table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Gives the last cell a colour, such as "31"; NULL: none. */
void table_paint(struct table *table, const char *colour);
/* Prints with two blanks between columns; columns that are empty but for the header are left
 * out. With colours the header is bold, and cells have theirs. */
void table_print(const struct table *table, FILE *out, int has_colours);
void table_release(struct table *table);

#endif
