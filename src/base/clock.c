/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { US_PER_S = 1000000, NS_PER_S = 1000000000 };

/* Of the years that have four digits. */
#define FIRST_SECOND (-30610224000ll)
#define LAST_SECOND  253402300799ll

static int64_t read_clock(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return time_us(now);
}

int64_t clock_wall_us(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void) {
    return read_clock(CLOCK_BOOTTIME);
}

struct timeval clock_timeval(int64_t ms) {
    return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

void clock_pause_ms(int64_t ms) {
    const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    nanosleep(&pause, NULL);
}

int64_t time_us(struct timespec moment) {
    return (int64_t)moment.tv_sec * US_PER_S + moment.tv_nsec / 1000;
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

/* One of the marks. */
static bool read_mark(const char **at, const char *end, const char *marks) {
    if (*at == end || **at == '\0' || !strchr(marks, **at))
        return false;
    (*at)++;
    return true;
}

/* The parts of a moment, and the marks one of which stands before each. Nobody here tells leap
 * seconds. */
enum { PART_YEAR, PART_MONTH, PART_DAY, PART_HOUR, PART_MINUTE, PART_SECOND, PART_COUNT };
static const struct {
    const char *marks;
    int digits, lowest, highest;
} parts[PART_COUNT] = {
    [PART_YEAR] = { "", 4, 1000, 9999 }, [PART_MONTH] = { "-", 2, 1, 12 },
    [PART_DAY] = { "-", 2, 1, 31 },      [PART_HOUR] = { "T ", 2, 0, 23 },
    [PART_MINUTE] = { ":", 2, 0, 59 },   [PART_SECOND] = { ":", 2, 0, 59 },
};

/* As many of the parts as are given; an hour has minutes. */
static bool read_parts(const char **at, const char *end, int values[static PART_COUNT],
                       enum time_unit *unit) {
    static const enum time_unit units[PART_COUNT] = {
        [PART_YEAR] = UNIT_YEAR,     [PART_MONTH] = UNIT_MONTH,   [PART_DAY] = UNIT_DAY,
        [PART_MINUTE] = UNIT_MINUTE, [PART_SECOND] = UNIT_SECOND,
    };
    int i = PART_YEAR;

    do {
        if (!read_number(at, end, parts[i].digits, parts[i].lowest, parts[i].highest, &values[i]))
            return false;
    } while (++i < PART_COUNT && read_mark(at, end, parts[i].marks));
    *unit = units[i - 1];
    return i - 1 != PART_HOUR;
}

/* What follows the point; what is less than a nanosecond is passed over. */
static bool read_fraction(const char **at, const char *end, long *ns) {
    const char *const start = *at;
    long unit = NS_PER_S;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        unit /= 10;
        *ns += unit * (**at - '0');
    }
    return *at > start;
}

/* How many seconds the place is ahead of UTC. */
static bool read_zone(const char **at, const char *end, int *ahead_s) {
    int hours, minutes, sign;

    if (read_mark(at, end, "Zz"))
        return true;
    sign = read_mark(at, end, "+") ? 1 : read_mark(at, end, "-") ? -1 : 0;
    if (sign == 0 || !read_number(at, end, 2, 0, 23, &hours))
        return false;
    read_mark(at, end, ":");
    if (!read_number(at, end, 2, 0, 59, &minutes))
        return false;
    *ahead_s = sign * (hours * 60 + minutes) * 60;
    return true;
}

bool time_parse(const char *text, size_t n, struct time_given *out) {
    const char *at = text, *const end = text + n;
    int values[PART_COUNT] = { [PART_MONTH] = 1, [PART_DAY] = 1 }, ahead_s = 0;
    struct time_given given = { 0 };
    struct tm utc;

    if (!read_parts(&at, end, values, &given.unit))
        return false;
    if (given.unit == UNIT_SECOND && read_mark(&at, end, ".")) {
        if (!read_fraction(&at, end, &given.moment.tv_nsec))
            return false;
        given.unit = UNIT_FRACTION;
    }
    given.has_zone = given.unit >= UNIT_DAY && at < end;
    if ((given.has_zone && !read_zone(&at, end, &ahead_s)) || at != end)
        return false;
    utc = (struct tm){ .tm_year = values[PART_YEAR] - 1900,
                       .tm_mon = values[PART_MONTH] - 1,
                       .tm_mday = values[PART_DAY],
                       .tm_hour = values[PART_HOUR],
                       .tm_min = values[PART_MINUTE],
                       .tm_sec = values[PART_SECOND] };
    given.moment.tv_sec = timegm(&utc) - ahead_s;
    /* Of a day that the calendar does not have, as the 31st of June, timegm makes another. */
    if (utc.tm_mday != values[PART_DAY] || given.moment.tv_sec < FIRST_SECOND ||
        given.moment.tv_sec > LAST_SECOND)
        return false;
    *out = given;
    return true;
}

bool time_read(const char *text, int64_t *us) {
    struct time_given given;

    if (!text || !time_parse(text, strlen(text), &given) || given.unit < UNIT_SECOND ||
        !given.has_zone)
        return false;
    *us = time_us(given.moment);
    return true;
}
