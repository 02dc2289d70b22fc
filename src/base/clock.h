/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time: the clocks, and moments as text.
 *
 * The wall clock is for people: somebody may set it, by hours, at any moment. What is measured,
 * ordered or waited for goes by the monotonic one, which counts on from boot, also while the
 * machine sleeps, only goes forward, and is the same for all processes of one boot.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

int64_t clock_wall_us(void); /* microseconds since 1970 */
int64_t clock_monotonic_us(void);

/* For the timers of the event loop. */
struct timeval clock_timeval(int64_t ms);
/* Sleeps so long, or until a signal comes. */
void clock_pause_ms(int64_t ms);

/* How much of the second is told: the number of digits. */
enum time_detail {
    TIME_SECONDS = 0,
    TIME_MILLISECONDS = 3,
    TIME_MICROSECONDS = 6,
};

/* "2026-03-01T12:00:00.123Z": ISO 8601, UTC. "?" for a year that no calendar has. */
struct time_text {
    char text[48];
};
struct time_text time_text(int64_t us, enum time_detail detail);

/* How exactly a moment is given: the unit that it is a whole one of. */
enum time_unit {
    UNIT_YEAR,
    UNIT_MONTH,
    UNIT_DAY,
    UNIT_MINUTE,
    UNIT_SECOND,
    UNIT_FRACTION,
};

/* A moment as somebody gave it. */
struct time_given {
    struct timespec moment; /* the beginning of the unit; of UTC where no zone is given */
    enum time_unit unit;
    bool has_zone;
};

/* Reads n bytes that are nothing else: "2026", "2026-03", "2026-03-01", "2026-03-01T12:30", with
 * seconds, with a fraction; with a blank for the T; from a day on with a zone ("Z", "+01:00",
 * "+0100"). The years 1000 to 9999, and the days that the calendar has. */
bool time_parse(const char *text, size_t n, struct time_given *out);
/* Likewise a moment to the second with its zone, as time_text writes it. */
bool time_read(const char *text, int64_t *us);
int64_t time_us(struct timespec moment);

#endif
