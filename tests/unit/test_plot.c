/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cli/plot.h"

enum { WIDTH = 20, HEIGHT = 5, COLUMNS = WIDTH * PLOT_DOTS_ACROSS };

/* Draws one curve and gives the canvas back as dots, [row from the bottom][column]. */
static void draw(const struct plot_column *columns, bool is_logarithmic,
                 bool dots[HEIGHT * PLOT_DOTS_DOWN][COLUMNS]) {
    static const int bit_of[PLOT_DOTS_ACROSS][PLOT_DOTS_DOWN] = { { 6, 2, 1, 0 }, { 7, 5, 4, 3 } };
    const struct plot_curve curve = { .label = "a", .columns = columns };
    const struct plot plot = { .title = "t",
                               .width = WIDTH,
                               .height = HEIGHT,
                               .x_from = "0",
                               .x_to = "1",
                               .is_logarithmic = is_logarithmic,
                               .curves = &curve,
                               .n_curves = 1 };
    AUTO(buf) text = BUF_INIT(1 << 16);
    struct error err;
    const char *at;

    assert_int_equal(plot_draw(&plot, &text, &err), 0);
    memset(dots, 0, sizeof(bool) * HEIGHT * PLOT_DOTS_DOWN * COLUMNS);
    at = strchr(text.data, '\n') + 1;
    for (int line = 0; line < HEIGHT; line++) {
        at = strstr(at, "\xe2\x94") + 3; /* behind the axis */
        for (int x = 0; *at != '\n'; x++) {
            int cell = 0;

            assert_true(x < WIDTH);
            if (*at == ' ')
                at++;
            else {
                cell = ((unsigned char)at[1] & 3) << 6 | ((unsigned char)at[2] & 0x3f);
                at += 3;
            }
            for (int i = 0; i < PLOT_DOTS_ACROSS; i++)
                for (int j = 0; j < PLOT_DOTS_DOWN; j++)
                    dots[(HEIGHT - 1 - line) * PLOT_DOTS_DOWN + j][x * PLOT_DOTS_ACROSS + i] =
                        cell >> bit_of[i][j] & 1;
        }
    }
}

static struct plot_column at(double value) {
    return (struct plot_column){ true, value, value, value };
}

static void every_extreme_is_seen(void **state) {
    bool dots[HEIGHT * PLOT_DOTS_DOWN][COLUMNS];
    struct plot_column columns[COLUMNS];

    (void)state;
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = at(1);
    columns[7].max = 9;
    columns[23].min = -3;
    draw(columns, false, dots);
    for (int x = 0; x < COLUMNS; x++) {
        assert_true(dots[HEIGHT * PLOT_DOTS_DOWN - 1][x] == (x == 7));
        assert_true(dots[0][x] == (x == 23));
    }
}

static void what_is_no_number_leaves_a_gap_and_what_is_missing_is_bridged(void **state) {
    bool dots[HEIGHT * PLOT_DOTS_DOWN][COLUMNS];
    struct plot_column columns[COLUMNS];

    (void)state;
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = at(i);
    columns[10] = at(NAN);
    columns[20].has = false;
    columns[30] = at(INFINITY);
    draw(columns, false, dots);
    for (int x = 0; x < COLUMNS; x++) {
        bool has = false;

        for (int row = 0; row < HEIGHT * PLOT_DOTS_DOWN; row++)
            has |= dots[row][x];
        assert_true(has == (x != 10 && x != 30));
    }
}

static void a_flat_curve_lies_in_the_middle(void **state) {
    static const double values[] = { 0, 5, -2, 1e300, 1e-300 };
    bool dots[HEIGHT * PLOT_DOTS_DOWN][COLUMNS];
    struct plot_column columns[COLUMNS];

    (void)state;
    for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
        for (int i = 0; i < COLUMNS; i++)
            columns[i] = at(values[k]);
        draw(columns, false, dots);
        for (int row = 0; row < HEIGHT * PLOT_DOTS_DOWN; row++)
            if (dots[row][3]) /* there are two middle rows */
                assert_in_range(row, HEIGHT * PLOT_DOTS_DOWN / 2 - 1, HEIGHT * PLOT_DOTS_DOWN / 2);
    }
}

static void a_logarithmic_scale_makes_a_decay_straight(void **state) {
    bool dots[HEIGHT * PLOT_DOTS_DOWN][COLUMNS];
    struct plot_column columns[COLUMNS];

    (void)state;
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = at(pow(10, -i));
    draw(columns, true, dots);
    assert_true(dots[HEIGHT * PLOT_DOTS_DOWN - 1][0]);
    assert_true(dots[HEIGHT * PLOT_DOTS_DOWN / 2][COLUMNS / 2 - 1]);
    assert_true(dots[0][COLUMNS - 1]);
}

static void a_spark_has_a_character_for_each_column(void **state) {
    const struct plot_column columns[] = { at(0), at(7), { .has = false }, at(NAN), at(3.5) };
    AUTO(buf) text = BUF_INIT(256);
    struct error err;

    (void)state;
    assert_int_equal(plot_spark(columns, 5, &text, &err), 0);
    assert_string_equal(text.data, "▁█  ▅");
}

static void a_number_is_short(void **state) {
    static const double values[] = { 0,   -0.000123456789, 123456789, -1.7976931348623157e308,
                                     0.1, 5e-324 };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_in_range(strlen(plot_number(values[i]).text), 1, 10);
    assert_string_equal(plot_number(NAN).text, "nan");
    assert_string_equal(plot_number(INFINITY).text, "inf");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_extreme_is_seen),
        cmocka_unit_test(what_is_no_number_leaves_a_gap_and_what_is_missing_is_bridged),
        cmocka_unit_test(a_flat_curve_lies_in_the_middle),
        cmocka_unit_test(a_logarithmic_scale_makes_a_decay_straight),
        cmocka_unit_test(a_spark_has_a_character_for_each_column),
        cmocka_unit_test(a_number_is_short),
    };

    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
