/* SPDX-License-Identifier: Apache-2.0 */
/* The query language: what it takes, what it says of what it does not take, and what fits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/query.h"

#include <cmocka.h>

struct parsed {
    struct arena arena;
    struct diags *diags;
    struct query query;
    int status;
};

static void parse(struct parsed *parsed, const char *text) {
    *parsed = (struct parsed){ .diags = diags_new() };
    parsed->status =
        query_parse(text, strlen(text), 0, &parsed->arena, parsed->diags, &parsed->query);
    assert_int_equal(parsed->status, parsed->diags->errors ? -1 : 0);
}

static void release(struct parsed *parsed) {
    diags_free(parsed->diags);
    arena_release(&parsed->arena);
}

static bool fits_number(const char *text, double number) {
    struct parsed parsed;
    bool fits;

    parse(&parsed, text);
    if (parsed.status)
        fail_msg("%s: %s", text, parsed.diags->list[0].message);
    fits = query_fits_number(&parsed.query.conditions[0], number) !=
           parsed.query.conditions[0].is_negated;
    release(&parsed);
    return fits;
}

static bool fits_text(const char *text, const char *value) {
    struct parsed parsed;
    bool fits;

    parse(&parsed, text);
    if (parsed.status)
        fail_msg("%s: %s", text, parsed.diags->list[0].message);
    fits = query_fits_text(&parsed.query.conditions[0], value) !=
           parsed.query.conditions[0].is_negated;
    release(&parsed);
    return fits;
}

/* The first mistake of a query begins at this byte and covers so many. */
static void assert_wrong(const char *text, uint32_t offset, uint32_t length) {
    struct parsed parsed;

    parse(&parsed, text);
    if (parsed.status == 0)
        fail_msg("'%s' was taken", text);
    if (parsed.diags->list[0].place.offset != offset ||
        parsed.diags->list[0].place.length != length)
        fail_msg("'%s': told at %u, %u bytes: %s", text, parsed.diags->list[0].place.offset,
                 parsed.diags->list[0].place.length, parsed.diags->list[0].message);
    release(&parsed);
}

static void a_query_is_conditions_that_all_hold(void **state) {
    struct parsed parsed;

    (void)state;
    parse(&parsed, " status:running ,metrics.loss:<0.3, params.lr:0.1|0.2, ~tags:x ");
    assert_int_equal(parsed.query.n, 4);
    assert_string_equal(parsed.query.conditions[1].field.name, "metrics.loss");
    assert_int_equal(parsed.query.conditions[1].test, QUERY_LESS);
    assert_int_equal(parsed.query.conditions[2].n_values, 2);
    assert_true(parsed.query.conditions[3].is_negated);
    release(&parsed);
    parse(&parsed, "  ");
    assert_int_equal(parsed.status, 0);
    assert_int_equal(parsed.query.n, 0);
    release(&parsed);
}

static void other_spellings_of_a_field_are_the_same_field(void **state) {
    static const char *const pairs[][2] = { { "metric.a:1", "metrics.a" },
                                            { "declarations.a:1", "params.a" },
                                            { "param.a:1", "params.a" },
                                            { "user:x", "owner" },
                                            { "metrics.\"a:b,c\":1", "metrics.a:b,c" } };
    struct parsed parsed;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        parse(&parsed, pairs[i][0]);
        assert_string_equal(parsed.query.conditions[0].field.name, pairs[i][1]);
        release(&parsed);
    }
}

static void numbers_are_compared_as_numbers(void **state) {
    (void)state;
    assert_true(fits_number("params.lr:0.1", 1e-1));
    assert_true(fits_number("params.lr:0.1|0.2", 0.2));
    assert_false(fits_number("params.lr:0.1|0.2", 0.3));
    assert_true(fits_number("metrics.a:<0.3", 0.2));
    assert_false(fits_number("metrics.a:<0.3", 0.3));
    assert_true(fits_number("metrics.a:<=0.3", 0.3));
    assert_true(fits_number("metrics.a:>-1e3", 0));
    assert_true(fits_number("metrics.a:>=5", 5));
    assert_true(fits_number("metrics.a:1..2", 1) && fits_number("metrics.a:1..2", 2));
    assert_true(fits_number("metrics.a: .5 .. 1.5 ", 0.5));
    assert_false(fits_number("metrics.a:1..2", 2.001));
    assert_true(fits_number("metrics.a:nan", NAN));
    assert_false(fits_number("metrics.a:<1", NAN) || fits_number("metrics.a:>=1", NAN));
}

static void quoted_text_is_neither_number_nor_pattern(void **state) {
    (void)state;
    assert_false(fits_number("params.lr:\"0.1\"", 0.1));
    assert_true(fits_text("params.lr:'0.1'", "0.1"));
    assert_true(fits_text("name:\"a, b|c\"", "a, b|c"));
    assert_true(fits_text("name:'%a%'", "%a%"));
    assert_false(fits_text("name:'%a%'", "bab"));
}

static void a_pattern_stands_for_any_text_and_any_case(void **state) {
    (void)state;
    assert_true(fits_text("name:%nis%", "MNIST"));
    assert_true(fits_text("name:mn%", "mnist") && !fits_text("name:mn%", "amnist"));
    assert_true(fits_text("name:%st", "mnist") && !fits_text("name:%st", "mnists"));
    assert_true(fits_text("name:%", "") && fits_text("name:%", "x") && fits_text("name:%%", "x"));
    assert_true(fits_text("name:mnist", "mnist") && !fits_text("name:mnist", "MNIST"));
}

static void a_time_that_leaves_out_the_end_is_a_span(void **state) {
    const double march = 1772323200; /* 2026-03-01 */

    (void)state;
    assert_true(fits_number("created_at:2026-03", march));
    assert_true(fits_number("created_at:2026-03", march + 31 * 86400 - 1));
    assert_false(fits_number("created_at:2026-03", march + 31 * 86400));
    assert_true(fits_number("created_at:<=2026-03-01", march + 86399));
    assert_false(fits_number("created_at:>2026-03-01", march + 86399));
    assert_true(fits_number("created_at:>2026-03-01", march + 86400));
    assert_true(fits_number("created_at:2026-02..2026-03", march + 86400));
    assert_true(fits_number("created_at:2026-03-01 00:00:01", march + 1));
    assert_true(fits_number("created_at:>=2026-03-01T00:00:00.5Z", march + 0.5));
    assert_false(fits_number("created_at:2026-03-01 00:00", march + 60));
    assert_true(fits_number("created_at:2026", march));
    assert_false(fits_number("created_at:2026", march + 306 * 86400));
    assert_true(fits_number("created_at:2026-03-01T02:00+02:00", march + 59));
    assert_true(fits_number("created_at:2026", march) && !fits_number("created_at:2025", march));
}

static void who_names_no_field_is_told_all_of_them(void **state) {
    static const char text[] = "zzzzzzzz:1";
    AUTO_PTR(diags) diags = diags_new();
    AUTO(arena) arena = ARENA_INIT;
    struct query query;

    (void)state;
    assert_int_equal(query_parse(text, strlen(text), 0, &arena, diags, &query), -1);
    assert_int_equal(diags->len, 1);
    for (const struct query_own_field *own = query_own_fields; own->name; own++)
        assert_non_null(strstr(diags->list[0].help, own->name));
}

/* xorshift: the same queries each time. */
static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void every_value_fits_either_a_condition_or_its_negation(void **state) {
    static const char *const tests[] = {
        "1", "<1", "<=1", ">1", ">=1", "0..1", "1|2", "nan", "-inf"
    };
    static const double values[] = { 0, 1, 2, -1, 0.5, NAN, INFINITY, -INFINITY };
    char plain[64], before[64], behind[64], twice[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        for (size_t j = 0; j < ARRAY_LEN(values); j++) {
            snprintf(plain, sizeof plain, "metrics.a:%s", tests[i]);
            snprintf(before, sizeof before, "~metrics.a:%s", tests[i]);
            snprintf(behind, sizeof behind, "metrics.a:~%s", tests[i]);
            snprintf(twice, sizeof twice, "~metrics.a:~%s", tests[i]);
            assert_true(fits_number(plain, values[j]) != fits_number(before, values[j]));
            assert_true(fits_number(before, values[j]) == fits_number(behind, values[j]));
            assert_true(fits_number(plain, values[j]) == fits_number(twice, values[j]));
        }
}

static void a_range_is_both_of_its_comparisons(void **state) {
    uint64_t seed = 7;
    char range[96], least[64], most[64];

    (void)state;
    for (int i = 0; i < 300; i++) {
        const double a = (double)(next_random(&seed) % 100) / 4;
        const double b = a + (double)(next_random(&seed) % 20) / 4;
        const double x = (double)(next_random(&seed) % 120) / 4;

        snprintf(range, sizeof range, "min.a:%g..%g", a, b);
        snprintf(least, sizeof least, "min.a:>=%g", a);
        snprintf(most, sizeof most, "min.a:<=%g", b);
        assert_true(fits_number(range, x) == (fits_number(least, x) && fits_number(most, x)));
    }
}

static void a_mistake_is_told_at_its_place(void **state) {
    (void)state;
    assert_wrong("statu:running", 0, 5);
    assert_wrong("status:running, colour:red", 16, 6);
    assert_wrong("status:runing", 7, 6);
    assert_wrong("metrics.a:<x", 11, 1);
    assert_wrong("name:<x", 6, 1);
    assert_wrong("metrics.a:2..1", 10, 4);
    assert_wrong("metrics.a:1..2|3", 14, 1);
    assert_wrong("metrics.a:3|1..2", 12, 3);
    assert_wrong("metrics.a:<1|2", 12, 1);
    assert_wrong("created_at:2026-13", 11, 7);
    assert_wrong("created_at:2026-02-30", 11, 10);
    assert_wrong("tasks:many", 6, 4);
    assert_wrong("name:\"x", 5, 2);
    assert_wrong("status", 0, 6);
    assert_wrong("status:", 7, 0);
    assert_wrong("status:running,", 15, 0);
    assert_wrong("params.:1", 0, 7);
    assert_wrong("group:3", 0, 5);
    assert_wrong("params.lr:1||2", 12, 0);
}

static void all_mistakes_are_told_at_once(void **state) {
    struct parsed parsed;

    (void)state;
    parse(&parsed, "colour:red, status:x, name:ok, tasks:y");
    assert_int_equal(parsed.diags->errors, 3);
    release(&parsed);
}

static void a_sort_is_fields_with_signs(void **state) {
    AUTO(arena) arena = ARENA_INIT;
    AUTO_PTR(diags) diags = diags_new();
    struct query_sort sort;

    (void)state;
    assert_int_equal(query_sort_parse("-created_at, metrics.loss", 25, 0, &arena, diags, &sort), 0);
    assert_int_equal(sort.n, 2);
    assert_true(sort.orders[0].is_descending && !sort.orders[1].is_descending);
    assert_string_equal(sort.orders[1].field.name, "metrics.loss");
    assert_int_equal(query_sort_parse("tags", 4, 0, &arena, diags, &sort), -1);
    assert_int_equal(query_fields_parse("-id", 3, 0, &arena, diags, &sort), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_conditions_that_all_hold),
        cmocka_unit_test(other_spellings_of_a_field_are_the_same_field),
        cmocka_unit_test(numbers_are_compared_as_numbers),
        cmocka_unit_test(quoted_text_is_neither_number_nor_pattern),
        cmocka_unit_test(a_pattern_stands_for_any_text_and_any_case),
        cmocka_unit_test(a_time_that_leaves_out_the_end_is_a_span),
        cmocka_unit_test(who_names_no_field_is_told_all_of_them),
        cmocka_unit_test(every_value_fits_either_a_condition_or_its_negation),
        cmocka_unit_test(a_range_is_both_of_its_comparisons),
        cmocka_unit_test(a_mistake_is_told_at_its_place),
        cmocka_unit_test(all_mistakes_are_told_at_once),
        cmocka_unit_test(a_sort_is_fields_with_signs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
