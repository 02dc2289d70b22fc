/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

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

static void a_moment_is_as_exact_as_it_is_given(void **unused) {
    static const struct {
        const char *text;
        enum time_unit unit;
        bool has_zone;
        int64_t second;
        long ns;
    } rows[] = {
        { "2026", UNIT_YEAR, false, 1767225600, 0 },
        { "2026-03", UNIT_MONTH, false, 1772323200, 0 },
        { "2026-03-01", UNIT_DAY, false, 1772323200, 0 },
        { "2026-03-01Z", UNIT_DAY, true, 1772323200, 0 },
        { "2026-03-01-05:00", UNIT_DAY, true, 1772341200, 0 },
        { "2026-03-01T12:30", UNIT_MINUTE, false, 1772368200, 0 },
        { "2026-03-01 12:30+0100", UNIT_MINUTE, true, 1772364600, 0 },
        { "2026-03-01T12:30:01", UNIT_SECOND, false, 1772368201, 0 },
        { "2026-03-01 12:30:01z", UNIT_SECOND, true, 1772368201, 0 },
        { "2026-03-01T12:30:01.0", UNIT_FRACTION, false, 1772368201, 0 },
        { "2024-02-29T12:00:00.123456789Z", UNIT_FRACTION, true, 1709208000, 123456789 },
    };
    struct time_given given;
    int64_t us;

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(time_parse(rows[i].text, strlen(rows[i].text), &given));
        assert_int_equal(given.unit, rows[i].unit);
        assert_int_equal(given.has_zone, rows[i].has_zone);
        assert_int_equal(given.moment.tv_sec, rows[i].second);
        assert_int_equal(given.moment.tv_nsec, rows[i].ns);
        /* Only what is exact is a moment by itself. */
        assert_int_equal(time_read(rows[i].text, &us), given.has_zone && given.unit >= UNIT_SECOND);
    }
}

static void a_moment_is_never_looked_for_past_its_bytes(void **unused) {
    static const char line[] = "2024-02-29T12:00:00.123+01:00 and so on";
    static const size_t whole[] = { 4, 7, 10, 16, 19, 21, 22, 23, 29 };
    struct time_given given;

    (void)unused;
    for (size_t n = 0, i = 0; n < sizeof line; n++) {
        const bool is_whole = i < ARRAY_LEN(whole) && whole[i] == n;

        assert_int_equal(time_parse(line, n, &given), is_whole);
        i += is_whole;
    }
}

/* The same days as timegm knows them: what comes back as another day is in no calendar. */
static void every_day_of_the_calendar_is_read_and_no_other(void **unused) {
    static const int years[] = { 1900, 2000, 2024, 2026 };
    struct time_given given;
    char text[48];

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(years); i++)
        for (int month = 0; month <= 13; month++)
            for (int day = 0; day <= 32; day++) {
                struct tm tm = { .tm_year = years[i] - 1900, .tm_mon = month - 1, .tm_mday = day };
                const time_t second = timegm(&tm);
                const bool is_one = tm.tm_year == years[i] - 1900 && tm.tm_mon == month - 1;

                snprintf(text, sizeof text, "%d-%02d-%02d", years[i], month, day);
                assert_int_equal(time_parse(text, strlen(text), &given), is_one);
                if (is_one)
                    assert_int_equal(given.moment.tv_sec, second);
            }
}

static void what_people_mistype_is_no_time(void **unused) {
    static const char *const texts[] = { "026",
                                         "0026-03-01",
                                         "2026-3-1",
                                         "2026-03- 1",
                                         "2026-03-01 ",
                                         "2026-03-01t12:00",
                                         "2026-03-01  12:00",
                                         "2026-03-01T12",
                                         "2026-03-01T12Z",
                                         "2026-03-01T9:00",
                                         "2026-03-01T+9:00",
                                         "2026-03-01T12:00.5",
                                         "2026-03-01T12:00:00.",
                                         "2026-03-01T12:00:00.Z",
                                         "2026-03-01T12:00:00,5",
                                         "2026-03-01T12:00:60",
                                         "2026-03-01T12:00+-9:00",
                                         "2026-03-01T12:00+ 9:00",
                                         "2026-03-01T12:00+09",
                                         "2026-03-01T12:00+09:",
                                         "2026-03-01T12:00+09:60",
                                         "2026-03-01T12:00ZZ",
                                         "2026Z",
                                         "2026-03Z",
                                         "2026-03:00" };
    struct time_given given = { .unit = UNIT_YEAR };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(time_parse(texts[i], strlen(texts[i]), &given));
    assert_false(time_parse("2026\0", 5, &given));
    assert_int_equal(given.moment.tv_sec, 0);
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
                                         "2026-02-31T12:00:00Z",
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

static void milliseconds_are_seconds_and_the_rest_in_microseconds(void **unused) {
    static const int64_t rows[] = { 0, 1, 999, 1000, 1001, 59999, UINT32_MAX };

    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct timeval at = clock_timeval(rows[i]);

        assert_in_range(at.tv_usec, 0, 999999);
        assert_int_equal(at.tv_sec * 1000 + at.tv_usec / 1000, rows[i]);
    }
}

static void a_pause_lasts_as_long_as_it_says(void **unused) {
    const int64_t before_us = clock_monotonic_us();

    (void)unused;
    clock_pause_ms(20);
    assert_true(clock_monotonic_us() - before_us >= 20000);
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
        cmocka_unit_test(a_moment_is_as_exact_as_it_is_given),
        cmocka_unit_test(a_moment_is_never_looked_for_past_its_bytes),
        cmocka_unit_test(every_day_of_the_calendar_is_read_and_no_other),
        cmocka_unit_test(what_people_mistype_is_no_time),
        cmocka_unit_test(what_is_no_moment_is_not_read),
        cmocka_unit_test(milliseconds_are_seconds_and_the_rest_in_microseconds),
        cmocka_unit_test(a_pause_lasts_as_long_as_it_says),
        cmocka_unit_test(a_signal_is_told_by_number_and_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
