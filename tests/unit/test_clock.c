/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/signals.h"

#include <cmocka.h>

static void a_moment_is_told_in_the_detail_that_is_asked_for(void **unused) {
    static const struct {
        int64_t us;
        enum time_detail detail;
        const char *text;
    } rows[] = {
        { 0, TIME_SECONDS, "1970-01-01T00:00:00Z" },
        { 1772366400123456, TIME_SECONDS, "2026-03-01T12:00:00Z" },
        { 1772366400123456, TIME_MILLISECONDS, "2026-03-01T12:00:00.123Z" },
        { 1772366400123456, TIME_MICROSECONDS, "2026-03-01T12:00:00.123456Z" },
        { 1772366400000001, TIME_MICROSECONDS, "2026-03-01T12:00:00.000001Z" },
        { INT64_MIN, TIME_MICROSECONDS, "-290308-12-21T19:59:05.224192Z" },
        { INT64_MAX, TIME_SECONDS, "294247-01-10T04:00:54Z" },
        { -1, TIME_MICROSECONDS, "1969-12-31T23:59:59.999999Z" },
    };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(time_text(rows[i].us, rows[i].detail).text, rows[i].text);
}

static void a_moment_reads_back_as_it_was_written(void **unused) {
    static const int64_t moments[] = { 0, 1, 999999, 1772366400123456, 4102444800000000 };
    int64_t us;

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        assert_true(time_read(time_text(moments[i], TIME_MICROSECONDS).text, &us));
        assert_int_equal(us, moments[i]);
    }
    assert_true(time_read("2026-03-01T12:00:00.5Z", &us));
    assert_int_equal(us, 1772366400500000);
    assert_true(time_read("2026-03-01T12:00:00.1234567899Z", &us));
    assert_int_equal(us, 1772366400123456);
}

static void a_moment_of_another_time_zone_is_the_same_moment(void **unused) {
    int64_t us;

    (void)unused;
    assert_true(time_read("2026-03-01T13:30:00.5+01:30", &us));
    assert_int_equal(us, 1772366400500000);
    assert_true(time_read("2026-03-01T07:00:00.5-05:00", &us));
    assert_int_equal(us, 1772366400500000);
    assert_true(time_read("1969-12-31T23:59:59.25Z", &us));
    assert_int_equal(us, -750000);
}

static void a_moment_is_found_at_the_start_of_bytes_and_nowhere_past_them(void **unused) {
    static const char line[] = "2024-02-29T12:00:00.123456789Z and so on";
    struct timespec moment = { 0 };

    (void)unused;
    assert_int_equal(time_scan(line, strlen(line), &moment), 30);
    assert_int_equal(moment.tv_sec, 1709208000);
    assert_int_equal(moment.tv_nsec, 123456789);
    for (size_t n = 0; n < 30; n++)
        assert_int_equal(time_scan(line, n, &moment), 0);
}

static void what_is_no_moment_is_not_read(void **unused) {
    static const char *const texts[] = { "",
                                         "?",
                                         "yesterday",
                                         "2026-03-01",
                                         "2026-03-01T12:00:00",
                                         "2026-03-01T12:00:00.5",
                                         "2026-03-01T12:00:00Z ",
                                         "2026-13-01T12:00:00Z",
                                         "9999-12-31T23:59:60Z",
                                         "9999-12-31T23:59:59-00:01",
                                         "1000-01-01T00:00:00+00:01",
                                         "2026-3-1T12:00:00Z",
                                         " 2026-03-01T12:00:00Z",
                                         "2026-03-01T24:00:00Z",
                                         "2026-03-01T12:00:00+1:00",
                                         "2026-03-01T12:00:00+24:00" };
    int64_t us = 7;

    (void)unused;
    assert_false(time_read(NULL, &us));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(time_read(texts[i], &us));
    assert_int_equal(us, 7);
}

static void a_signal_is_told_by_number_and_name(void **unused) {
    (void)unused;
    assert_string_equal(signal_text(SIGKILL).text, "signal 9 (SIGKILL)");
    assert_string_equal(signal_name(SIGINT).text, "SIGINT");
    assert_string_equal(signal_text(60).text, "signal 60");
    assert_string_equal(signal_name(60).text, "");
    assert_string_equal(signal_name(-1).text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_told_in_the_detail_that_is_asked_for),
        cmocka_unit_test(a_moment_reads_back_as_it_was_written),
        cmocka_unit_test(a_moment_of_another_time_zone_is_the_same_moment),
        cmocka_unit_test(a_moment_is_found_at_the_start_of_bytes_and_nowhere_past_them),
        cmocka_unit_test(what_is_no_moment_is_not_read),
        cmocka_unit_test(a_signal_is_told_by_number_and_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
