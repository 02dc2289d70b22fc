/* SPDX-License-Identifier: Apache-2.0 */
/* Chance that can be played again: a test sets `state` to the seed of MYELIN_TEST_SEED, or of now,
 * which is printed. */
#ifndef TESTS_CHANCE_H
#define TESTS_CHANCE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t seed, state;

static inline uint32_t random_below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

/* To set up a group of tests. */
static inline int choose_seed(void **unused) {
    const char *given = getenv("MYELIN_TEST_SEED");

    (void)unused;
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# MYELIN_TEST_SEED=%llu\n", (unsigned long long)seed);
    return 0;
}

#endif
