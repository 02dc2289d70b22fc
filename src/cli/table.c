/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "codec/utf8.h"

void table_init(struct table *table, size_t n_columns) {
    assert(n_columns <= TABLE_COLUMNS_MAX);
    *table = (struct table){ .n_columns = n_columns };
}

void table_cell(struct table *table, const char *fmt, ...) {
    va_list args;

    va_start(args, fmt);
    *VEC_PUSH(&table->cells) = arena_vprintf(&table->arena, fmt, args);
    va_end(args);
}

void table_print(const struct table *table, FILE *out, int bold_header) {
    size_t widths[TABLE_COLUMNS_MAX] = { 0 };
    bool filled[TABLE_COLUMNS_MAX] = { false };
    size_t n = table->n_columns;

    assert(n > 0 && table->cells.len % n == 0);
    for (size_t i = 0; i < table->cells.len; i++) {
        size_t cell = utf8_count(table->cells.items[i]);

        if (cell > widths[i % n])
            widths[i % n] = cell;
        if (i >= n && cell > 0)
            filled[i % n] = true;
    }
    for (size_t row = 0; row < table->cells.len; row += n) {
        const char *const *cells = table->cells.items + row;
        size_t gap = 0;

        if (bold_header && row == 0)
            fputs("\033[1m", out);
        for (size_t c = 0; c < n; c++) {
            if (!filled[c])
                continue;
            if (*cells[c])
                fprintf(out, "%*s%s", (int)gap, "", cells[c]);
            /* Blanks wait for the next text, so that no line ends in them. */
            gap = (*cells[c] ? 0 : gap) + widths[c] - utf8_count(cells[c]) + 2;
        }
        fputs(bold_header && row == 0 ? "\033[0m\n" : "\n", out);
    }
}

void table_release(struct table *table) {
    VEC_RELEASE(&table->cells);
    arena_release(&table->arena);
}
