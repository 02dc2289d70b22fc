/* SPDX-License-Identifier: Apache-2.0 */
/* Points as tests of series want them: random ones of many shapes, and how two compare. */
#ifndef TESTS_POINTS_H
#define TESTS_POINTS_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "track/point.h"

struct dice {
    uint64_t state;
};

/* A seed of its own for each run, printed, or the one of MYELIN_SEED. */
static inline struct dice dice_make(void) {
    const char *given = getenv("MYELIN_SEED");
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed = given ? strtoull(given, NULL, 0)
                 : (uint64_t)now.tv_nsec * 0x9e3779b9 + (uint64_t)now.tv_sec;
    printf("# MYELIN_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return (struct dice){ seed };
}

static inline uint64_t dice_roll(struct dice *dice) {
    uint64_t z = dice->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static inline uint64_t dice_below(struct dice *dice, uint64_t n) {
    return dice_roll(dice) % n;
}

static inline double dice_unit(struct dice *dice) {
    return (double)(dice_roll(dice) >> 11) / 9007199254740992.0;
}

static inline double odd_value(struct dice *dice) {
    static const double odd[] = { 0.0,     -0.0,     INFINITY, -INFINITY, (double)NAN,
                                  DBL_MAX, -DBL_MAX, DBL_MIN,  5e-324,    -5e-324,
                                  1.0,     -1.0,     1e-30,    1e300 };
    uint64_t bits = dice_roll(dice);
    double value;

    if (dice_below(dice, 2))
        return odd[dice_below(dice, ARRAY_LEN(odd))];
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int64_t odd_integer(struct dice *dice) {
    static const int64_t odd[] = { 0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1 };

    if (dice_below(dice, 2))
        return odd[dice_below(dice, ARRAY_LEN(odd))];
    return (int64_t)(dice_roll(dice) >> dice_below(dice, 64));
}

/* One of several shapes for a whole row: what is usual, what is constant, what is anything. */
static inline void points_fill(struct dice *dice, struct point *points, size_t n) {
    const unsigned of_steps = (unsigned)dice_below(dice, 4),
                   of_values = (unsigned)dice_below(dice, 6);
    const unsigned of_times = (unsigned)dice_below(dice, 3);
    int64_t step = (int64_t)dice_below(dice, 1000) - 500, time_us = 1700000000000000;

    for (size_t i = 0; i < n; i++) {
        const double noise = dice_unit(dice) - 0.5;

        step += of_steps == 1 ? (int64_t)dice_below(dice, 9) - 3 : 1;
        time_us += of_times == 1 ? (int64_t)dice_below(dice, 2000) - 500
                                 : 1000 + (int64_t)dice_below(dice, 100);
        points[i].step = of_steps == 2 ? 7 : of_steps == 3 ? odd_integer(dice) : step;
        points[i].time_us = of_times == 2 ? odd_integer(dice) : time_us;
        switch (of_values) {
        case 0: points[i].value = (double)(float)(0.5 + noise / 5); break;
        case 1: points[i].value = noise; break;
        case 2: points[i].value = 0.25; break;
        case 3: points[i].value = odd_value(dice); break;
        case 4: points[i].value = (double)i * 0.001; break;
        default: points[i].value = dice_below(dice, 50) ? 1 + noise : odd_value(dice); break;
        }
    }
}

static inline bool values_equal(double a, double b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static inline bool points_equal(const struct point *a, const struct point *b) {
    return a->step == b->step && a->time_us == b->time_us && values_equal(a->value, b->value);
}

#endif
