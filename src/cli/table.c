/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

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

/* Characters, not bytes. */
static size_t width(const char *text) {
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void table_print(const struct table *table, FILE *out, int bold_header) {
    size_t widths[TABLE_COLUMNS_MAX] = { 0 };
    bool filled[TABLE_COLUMNS_MAX] = { false };
    size_t n = table->n_columns, last = 0;

    assert(n > 0 && table->cells.len % n == 0);
    for (size_t i = 0; i < table->cells.len; i++) {
        size_t cell = width(table->cells.items[i]);

        if (cell > widths[i % n])
            widths[i % n] = cell;
        if (i >= n && cell > 0)
            filled[i % n] = true;
    }
    for (size_t c = 0; c < n; c++)
        if (filled[c])
            last = c;
    for (size_t i = 0; i < table->cells.len; i++) {
        size_t c = i % n;
        const char *text = table->cells.items[i];

        if (bold_header && i == 0)
            fputs("\033[1m", out);
        if (filled[c]) {
            fputs(text, out);
            if (c < last)
                fprintf(out, "%*s", (int)(widths[c] - width(text) + 2), "");
        }
        if (c + 1 == n)
            fputs(bold_header && i == c ? "\033[0m\n" : "\n", out);
    }
}

void table_release(struct table *table) {
    VEC_RELEASE(&table->cells);
    arena_release(&table->arena);
}
