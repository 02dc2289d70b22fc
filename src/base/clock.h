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
#include <time.h>

int64_t clock_wall_us(void); /* microseconds since 1970 */
int64_t clock_monotonic_us(void);

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

/* Reads a moment at the start of n bytes, of the years 1000 to 9999 and of any time zone
 * ("2026-03-01T13:00:00.123456789+01:00"). Returns its length; 0: there is none. */
size_t time_scan(const char *text, size_t n, struct timespec *out);
/* Likewise a text that is nothing else, as time_text writes it; false for what is no time. */
bool time_read(const char *text, int64_t *us);

#endif
