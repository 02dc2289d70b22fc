/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the index keeps of one field of one run, in 8 bytes: a number as it is, or one of the NaNs
 * that no arithmetic makes, with the number of a word, a truth, or nothing in it.
 */
#ifndef SEARCH_CELL_H
#define SEARCH_CELL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t cell;

enum cell_kind { CELL_NUMBER, CELL_WORD, CELL_TRUTH, CELL_NONE };

#define CELL_TAG(kind) ((uint64_t)(0xfff8 + (kind)) << 48)
#define CELL_NOTHING   CELL_TAG(CELL_NONE)

static inline enum cell_kind cell_kind(cell c) {
    const uint64_t top = c >> 48;

    return top > 0xfff8 && top <= 0xfff8 + CELL_NONE ? (enum cell_kind)(top - 0xfff8) : CELL_NUMBER;
}

static inline cell cell_of_number(double x) {
    const double plain = isnan(x) ? (double)NAN : x;
    cell c;

    memcpy(&c, &plain, sizeof c);
    return isnan(x) ? c & ~(1ULL << 63) : c;
}

static inline double cell_number(cell c) {
    double x;

    memcpy(&x, &c, sizeof x);
    return x;
}

static inline cell cell_of_word(uint64_t word) {
    return CELL_TAG(CELL_WORD) | word;
}
static inline uint64_t cell_word(cell c) {
    return c & 0xffffffffffffULL;
}

static inline cell cell_of_truth(bool truth) {
    return CELL_TAG(CELL_TRUTH) | truth;
}
static inline bool cell_truth(cell c) {
    return c & 1;
}

#endif
