/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of texts printed in columns as wide as their widest cell. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdio.h>

#include "base/arena.h"
#include "base/vec.h"

enum { TABLE_COLUMNS_MAX = 64 };

struct table {
    struct arena arena;
    size_t n_columns;
    VEC(const char *) cells; /* row by row */
};

/* The header is the first row. */
void table_init(struct table *table, size_t n_columns);
void table_cell(struct table *table, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Prints with two blanks between columns; columns that are empty but for the header are left
 * out. The header is bold when asked. */
void table_print(const struct table *table, FILE *out, int bold_header);
void table_release(struct table *table);

#endif
