/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times of the command line: a unit is part of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "cli/amounts.h"

static void a_span_has_a_unit_unless_it_is_nothing(void **state) {
    static const struct {
        const char *text;
        int64_t us; /* -1: refused */
    } rows[] = {
        { "10s", 10000000 },
        { "5m", 300000000 },
        { "1.5h", 5400000000 },
        { "2d", 172800000000 },
        { "3w", 1814400000000 },
        { "0", 0 },
        { "0.0", 0 },
        { "0d", 0 },
        { ".5s", 500000 },
        { "30", -1 },
        { "0.5", -1 },
        { "", -1 },
        { "d", -1 },
        { "-1d", -1 },
        { "+1d", -1 },
        { " 1d", -1 },
        { "1 d", -1 },
        { "1D", -1 },
        { "1dd", -1 },
        { "1d2h", -1 },
        { "0x10d", -1 },
        { "nan", -1 },
        { "infd", -1 },
        { "1e400d", -1 },
        { "99999999999w", -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t us = -1;
        const bool is_read = amount_span(rows[i].text, &us);

        if (is_read != (rows[i].us >= 0) || us != rows[i].us)
            fail_msg("'%s' is %lld us", rows[i].text, (long long)us);
    }
}

static void a_size_has_a_unit_unless_it_is_nothing(void **state) {
    static const struct {
        const char *text;
        int64_t bytes; /* -1: refused */
    } rows[] = {
        { "500B", 500 }, { "64K", 65536 }, { "64KiB", 65536 }, { "1.5K", 1536 }, { "1M", 1 << 20 },
        { "0", 0 },      { "0G", 0 },      { "20", -1 },       { "1.5", -1 },    { "", -1 },
        { "K", -1 },     { "-1K", -1 },    { "1GB", -1 },      { "1BiB", -1 },   { "1 K", -1 },
        { "0x1K", -1 },  { "nanK", -1 },   { "1e400K", -1 },   { "2G", -1 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t bytes = UINT64_MAX;
        const bool is_read = amount_bytes(rows[i].text, 1 << 30, &bytes);

        if (is_read != (rows[i].bytes >= 0) || bytes != (uint64_t)rows[i].bytes)
            fail_msg("'%s' is %llu bytes", rows[i].text, (unsigned long long)bytes);
    }
}

static void only_a_number_alone_lacks_its_unit(void **state) {
    static const char *const lacking[] = { "30", "0.5", "1e3" };
    static const char *const others[] = { "0", "30d", "", "x", "-3", "3 d" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lacking); i++)
        assert_true(amount_lacks_unit(lacking[i]));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_false(amount_lacks_unit(others[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_has_a_unit_unless_it_is_nothing),
        cmocka_unit_test(a_size_has_a_unit_unless_it_is_nothing),
        cmocka_unit_test(only_a_number_alone_lacks_its_unit),
    };

    return cmocka_run_group_tests_name("amounts", tests, NULL, NULL);
}
