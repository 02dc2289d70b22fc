/* SPDX-License-Identifier: Apache-2.0 */
/* The rows were written beside what PyYAML 6.0.3 makes of the same texts, and Python 3 of numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/number.h"
#include "codec/scalar.h"

#define T        NODE_TEXT, 0, 0
#define I(value) NODE_INT, value, 0
#define F(value) NODE_FLOAT, 0, value
#define B(value) NODE_BOOL, value, 0
#define N        NODE_NULL, 0, 0

static const struct {
    const char *text;
    enum node_kind kind;
    int64_t integer;
    double number;
} scalars[] = {
    { "", N },
    { "~", N },
    { "null", N },
    { "Null", N },
    { "NULL", N },
    { "nULL", T },
    { "~~", T },
    { "true", B(1) },
    { "True", B(1) },
    { "TRUE", B(1) },
    { "tRUE", T },
    { "yes", B(1) },
    { "Yes", B(1) },
    { "YES", B(1) },
    { "yES", T },
    { "on", B(1) },
    { "On", B(1) },
    { "ON", B(1) },
    { "oN", T },
    { "y", T },
    { "Y", T },
    { "false", B(0) },
    { "False", B(0) },
    { "FALSE", B(0) },
    { "no", B(0) },
    { "No", B(0) },
    { "NO", B(0) },
    { "nO", T },
    { "off", B(0) },
    { "Off", B(0) },
    { "OFF", B(0) },
    { "n", T },
    { "N", T },
    { "0", I(0) },
    { "-0", I(0) },
    { "+0", I(0) },
    { "1", I(1) },
    { "+1", I(1) },
    { "-1", I(-1) },
    { "--1", T },
    { "1 ", T },
    { "1_000", I(1000) },
    { "1__0_", I(10) },
    { "_1", T },
    { "-_1", T },
    { "010", I(8) },
    { "-010", I(-8) },
    { "0_7", I(7) },
    { "00", I(0) },
    { "0_", I(0) },
    { "08", T },
    { "09", T },
    { "0o7", T },
    { "0b101", I(5) },
    { "-0b1_1", I(-3) },
    { "0b2", T },
    { "0b", T },
    { "0B1", T },
    { "0_b1", T },
    { "0x1F", I(31) },
    { "0x_1f", I(31) },
    { "+0xff", I(255) },
    { "0x", T },
    { "0xg", T },
    { "0X1", T },
    { "9223372036854775807", I(INT64_MAX) },
    { "-9223372036854775808", I(INT64_MIN) },
    { "0x7fffffffffffffff", I(INT64_MAX) },
    /* Whole in PyYAML; here they do not fit, and stay as they are written. */
    { "9223372036854775808", T },
    { "-9223372036854775809", T },
    { "123456789012345678901234567890", T },
    { "1:30", I(90) },
    { "-1:30", I(-90) },
    { "190:20:30", I(685230) },
    { "1:5", I(65) },
    { "1:60", T },
    { "1:059", T },
    { "1:", T },
    { "1::2", T },
    { "0:30", T },
    { "1_0:30", I(630) },
    { "1:3_0", T },
    { "153722867280912930:7", I(INT64_MAX) },
    { "153722867280912930:8", T },
    { "1:30.5", F(90.5) },
    { "0:30.5", F(30.5) },
    { "1:30.", F(90) },
    { "-190:20:30.15", F(-685230.15) },
    { "2:22.33", F(142.32999999999998) },
    { "1:60.5", T },
    { "1.5", F(1.5) },
    { "-1.5", F(-1.5) },
    { "+1.5", F(1.5) },
    { "1.", F(1) },
    { "-0.0", F(-0.0) },
    { ".5", F(.5) },
    { "+.5", T },
    { "-.5", T },
    { ".", T },
    { "..5", T },
    { "._5", T },
    { ".5_", F(.5) },
    { "1_0.5_0", F(10.5) },
    { "1.5.5", T },
    { "1e3", T },
    { "1E3", T },
    { "1e+3", T },
    { "1.5e3", T },
    { "1.5e+3", F(1500) },
    { "1.5E-3", F(.0015) },
    { "1.e+3", F(1000) },
    { ".5e+1", F(5) },
    { "1.5e+", T },
    { "1.5e+1_0", T },
    { "1.0e+999", F(INFINITY) },
    { "09.5", F(9.5) },
    { ".inf", F(INFINITY) },
    { ".Inf", F(INFINITY) },
    { ".INF", F(INFINITY) },
    { "+.inf", F(INFINITY) },
    { "-.inf", F(-INFINITY) },
    { "-.INF", F(-INFINITY) },
    { ".iNF", T },
    { "inf", T },
    { ".nan", F(NAN) },
    { ".NaN", F(NAN) },
    { ".NAN", F(NAN) },
    { "+.nan", T },
    { "nan", T },
    /* Dates in PyYAML; a polyaxonfile has no use for them. */
    { "2001-01-01", T },
    { "2001-12-14t21:59:43.10-05:00", T },
    { "1.2.3.4", T },
    { "1-2", T },
    { "+", T },
    { "-", T },
    { "=", T },
    { "true ", T },
};

static void a_plain_scalar_means_what_pyyaml_makes_of_it(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        const char *text = scalars[i].text;
        struct node node = scalar_resolve(text, strlen(text), (struct place){ 3, 4, 5 });

        if (node.kind != scalars[i].kind)
            fail_msg("`%s` became %s", text, node_kind_name(&node));
        assert_int_equal(node.offset * 100 + node.length * 10 + node.source, 345);
        if (node.kind == NODE_INT && node.integer != scalars[i].integer)
            fail_msg("`%s` became %lld", text, (long long)node.integer);
        if (node.kind == NODE_BOOL && node.truth != (scalars[i].integer != 0))
            fail_msg("`%s` became %d", text, node.truth);
        if (node.kind == NODE_FLOAT && memcmp(&node.number, &scalars[i].number, 8) != 0 &&
            !(isnan(node.number) && isnan(scalars[i].number)))
            fail_msg("`%s` became %.17g", text, node.number);
        if (node.kind == NODE_TEXT)
            assert_ptr_equal(node.text, text);
    }
}

static void a_scalar_is_read_no_further_than_its_length(void **state) {
    (void)state;
    assert_int_equal(scalar_resolve("123", 2, (struct place){ 0 }).integer, 12);
    assert_int_equal(scalar_resolve("truely", 4, (struct place){ 0 }).kind, NODE_BOOL);
    assert_int_equal(scalar_resolve("1.5e+3", 3, (struct place){ 0 }).kind, NODE_FLOAT);
}

static void a_number_of_any_length_is_taken_without_harm(void **state) {
    char *digits = malloc(100001);

    (void)state;
    for (size_t n = 300; n < 100000; n += n / 7) {
        struct node node;

        memset(digits, '1', n);
        node = scalar_resolve(digits, n, (struct place){ 0 });
        assert_int_equal(node.kind, NODE_TEXT);
        assert_int_equal(node.count, n);
        digits[1] = '.';
        node = scalar_resolve(digits, n, (struct place){ 0 });
        assert_true(node.kind == NODE_FLOAT || node.kind == NODE_TEXT);
    }
    free(digits);
}

static void a_number_prints_as_python_prints_it(void **state) {
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        { 0, "0.0" },
        { -0.0, "-0.0" },
        { 1, "1.0" },
        { 0.1, "0.1" },
        { 0.01, "0.01" },
        { 0.0001, "0.0001" },
        { 0.00001, "1e-05" },
        { 0.00012345, "0.00012345" },
        { 1.5e-7, "1.5e-07" },
        { 1e15, "1000000000000000.0" },
        { 1e16, "1e+16" },
        { 123456789012345680.0, "1.2345678901234568e+17" },
        { 9007199254740993.0, "9007199254740992.0" },
        { 1e22, "1e+22" },
        { 1e23, "1e+23" },
        { 1e100, "1e+100" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1.0 / 3, "0.3333333333333333" },
        { 2.0 / 3, "0.6666666666666666" },
        { 100.25, "100.25" },
        { -1.5, "-1.5" },
        { 5e-324, "5e-324" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 4.35, "4.35" },
        { 1234567890123456.7, "1234567890123456.8" },
        { INFINITY, "inf" },
        { -INFINITY, "-inf" },
        { NAN, "nan" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[NUMBER_TEXT_MAX];
        size_t n = number_format(rows[i].value, text);

        assert_string_equal(text, rows[i].text);
        assert_int_equal(n, strlen(text));
    }
}

static void a_printed_number_reads_back_as_itself(void **state) {
    uint64_t bits = 88172645463325252;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        char text[NUMBER_TEXT_MAX];
        double value, again;
        size_t n;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        if (i % 3 == 0)
            value = (double)(int64_t)bits / 1000; /* ordinary sizes */
        else
            memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        n = number_format(value, text);
        again = strtod(text, NULL);
        assert_true(n < NUMBER_TEXT_MAX && strlen(text) == n);
        assert_memory_equal(&again, &value, sizeof value);
        assert_non_null(strpbrk(text, ".e")); /* never taken for a whole number */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_scalar_means_what_pyyaml_makes_of_it),
        cmocka_unit_test(a_scalar_is_read_no_further_than_its_length),
        cmocka_unit_test(a_number_of_any_length_is_taken_without_harm),
        cmocka_unit_test(a_number_prints_as_python_prints_it),
        cmocka_unit_test(a_printed_number_reads_back_as_itself),
    };

    return cmocka_run_group_tests_name("scalar", tests, NULL, NULL);
}
