/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "codec/visible.h"

static char *printed(const struct table *table, int has_colours) {
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);

    assert_non_null(out);
    table_print(table, out, has_colours);
    fclose(out);
    return text;
}

static void fill(struct table *table) {
    static const char *const cells[] = { "ID",    "STATUS",
                                         "EMPTY", "REASON",
                                         "1",     "failed",
                                         "",      "a reason of many words that goes on and on" };

    table_init(table, 4);
    for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
        table_cell(table, "%s", cells[i]);
        if (strcmp(cells[i], "failed") == 0)
            table_paint(table, "31");
    }
}

static void every_cell_is_whole_where_there_is_no_terminal(void **unused) {
    struct table table;
    char *text;

    (void)unused;
    fill(&table);
    text = printed(&table, 0);
    assert_string_equal(text, "ID  STATUS  REASON\n"
                              "1   failed  a reason of many words that goes on and on\n");
    free(text);
    table_release(&table);
}

static void no_line_is_wider_than_the_terminal(void **unused) {
    struct table table;

    (void)unused;
    fill(&table);
    for (table.width = 3; table.width < 80; table.width++) {
        char *text = printed(&table, 1), *rest = text, *line;

        while ((line = strsep(&rest, "\n")))
            assert_true(visible_columns(line) <= table.width);
        free(text);
    }
    table.width = 30;
    char *text = printed(&table, 0);
    assert_string_equal(text, "ID  STATUS  REASON\n1   failed  a reason of many …\n");
    free(text);
    table_release(&table);
}

static void colours_are_there_only_when_asked_and_take_no_room(void **unused) {
    struct table table;
    char *text;

    (void)unused;
    fill(&table);
    text = printed(&table, 1);
    assert_string_equal(text,
                        "\x1b[1mID  STATUS  REASON\x1b[0m\n"
                        "1   \x1b[31mfailed\x1b[0m  a reason of many words that goes on and on\n");
    free(text);
    table_release(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_is_whole_where_there_is_no_terminal),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(colours_are_there_only_when_asked_and_take_no_room),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
