/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"

enum { US_PER_S = 1000000, NS_PER_S = 1000000000 };

/* Of the years that have four digits. */
#define FIRST_SECOND (-30610224000ll)
#define LAST_SECOND  253402300799ll

static int64_t read_clock(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t clock_wall_us(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void) {
    return read_clock(CLOCK_BOOTTIME);
}

struct time_text time_text(int64_t us, enum time_detail detail) {
    static const int units[] = {
        [TIME_SECONDS] = US_PER_S, [TIME_MILLISECONDS] = 1000, [TIME_MICROSECONDS] = 1
    };
    time_t second = (time_t)(us / US_PER_S);
    int64_t fraction = us % US_PER_S;
    struct tm utc;
    struct time_text out;
    char date[sizeof out.text - 8];

    if (fraction < 0) { /* before 1970 too, a second goes forward */
        fraction += US_PER_S;
        second--;
    }
    if (!gmtime_r(&second, &utc) || strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        snprintf(out.text, sizeof out.text, "?");
    else if (detail == TIME_SECONDS)
        snprintf(out.text, sizeof out.text, "%sZ", date);
    else
        snprintf(out.text, sizeof out.text, "%s.%0*dZ", date, (int)detail,
                 (int)(fraction / units[detail]));
    return out;
}

/* ---- moments from text ---- */

/* Reads exactly `digits` of them, which stand for lowest to highest. */
static bool read_number(const char **at, const char *end, int digits, int lowest, int highest,
                        int *out) {
    *out = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (*at == end || **at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return *out >= lowest && *out <= highest;
}

static bool read_mark(const char **at, const char *end, char mark) {
    if (*at == end || **at != mark)
        return false;
    (*at)++;
    return true;
}

/* What is less than a nanosecond is passed over. */
static long read_fraction(const char **at, const char *end) {
    long ns = 0, unit = NS_PER_S;

    if (!read_mark(at, end, '.'))
        return 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        unit /= 10;
        ns += unit * (**at - '0');
    }
    return ns;
}

/* How many seconds the place is ahead of UTC. */
static bool read_zone(const char **at, const char *end, int *ahead_s) {
    int hours, minutes, sign;

    *ahead_s = 0;
    if (read_mark(at, end, 'Z'))
        return true;
    sign = read_mark(at, end, '+') ? 1 : read_mark(at, end, '-') ? -1 : 0;
    if (sign == 0 || !read_number(at, end, 2, 0, 23, &hours) || !read_mark(at, end, ':') ||
        !read_number(at, end, 2, 0, 59, &minutes))
        return false;
    *ahead_s = sign * (hours * 60 + minutes) * 60;
    return true;
}

size_t time_scan(const char *text, size_t n, struct timespec *out) {
    static const struct {
        int digits, lowest, highest;
        char mark; /* that follows; 0: none */
    } parts[] = {
        { 4, 1000, 9999, '-' }, { 2, 1, 12, '-' }, { 2, 1, 31, 'T' },
        { 2, 0, 23, ':' },      { 2, 0, 59, ':' }, { 2, 0, 59, 0 }
    }; /* nobody here tells leap seconds */
    const char *at = text, *const end = text + n;
    int values[ARRAY_LEN(parts)], ahead_s;
    struct tm utc;
    time_t second;
    long ns;

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!read_number(&at, end, parts[i].digits, parts[i].lowest, parts[i].highest,
                         &values[i]) ||
            (parts[i].mark && !read_mark(&at, end, parts[i].mark)))
            return 0;
    ns = read_fraction(&at, end);
    if (!read_zone(&at, end, &ahead_s))
        return 0;
    utc = (struct tm){ .tm_year = values[0] - 1900,
                       .tm_mon = values[1] - 1,
                       .tm_mday = values[2],
                       .tm_hour = values[3],
                       .tm_min = values[4],
                       .tm_sec = values[5] };
    second = timegm(&utc) - ahead_s;
    if (second < FIRST_SECOND || second > LAST_SECOND)
        return 0;
    *out = (struct timespec){ .tv_sec = second, .tv_nsec = ns };
    return (size_t)(at - text);
}

bool time_read(const char *text, int64_t *us) {
    const size_t n = text ? strlen(text) : 0;
    struct timespec moment;

    if (n == 0 || time_scan(text, n, &moment) != n)
        return false;
    *us = (int64_t)moment.tv_sec * US_PER_S + moment.tv_nsec / 1000;
    return true;
}
