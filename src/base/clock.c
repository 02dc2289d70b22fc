/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

enum { US_PER_S = 1000000 };

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

bool time_read(const char *text, int64_t *us) {
    struct tm utc = { 0 };
    const char *rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) : NULL;
    int64_t fraction = 0, unit = US_PER_S;

    if (!rest || utc.tm_sec > 59) /* nothing of ours tells leap seconds */
        return false;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9'; rest++) {
            unit /= 10; /* what is less than a microsecond is passed over */
            fraction += (*rest - '0') * unit;
        }
    if (rest[0] != 'Z' || rest[1] != '\0')
        return false;
    *us = (int64_t)timegm(&utc) * US_PER_S + fraction;
    return true;
}
