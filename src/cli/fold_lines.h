/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folds what several ranks say alike into one line: eight workers that print the same become
 * one line of eight. Pure: it knows no terminal and no clock.
 *
 *   fold_lines_feed(fold, 3, "step 1", 6, now);   for each line of each rank, as it comes
 *   fold_lines_tick(fold, now);                   when FOLD_HOLD_US have passed in silence
 *   fold_lines_flush(fold);                       at the end
 *
 * Laws:
 *   1. Each rank's lines come out in the rank's own order, each exactly once.
 *   2. Nothing is moved: lines come out in the order in which they were first fed. A line that
 *      another rank wrote before, and that is still held, joins that one, at its place, unless
 *      the rank wrote another line in between: then it stands for itself.
 *   3. A line is held for FOLD_HOLD_US at most (by the times that are fed and ticked), and not at
 *      all once every rank that is still there has written it: then all before it goes out, too.
 *   4. At most FOLD_GROUPS_MOST lines of FOLD_BYTES_MOST bytes are held: the oldest goes out for
 *      a new one.
 */
#ifndef CLI_FOLD_LINES_H
#define CLI_FOLD_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FOLD_HOLD_US = 100 * 1000,
    FOLD_GROUPS_MOST = 1024,
    FOLD_BYTES_MOST = 1024 * 1024,
};

/* One line of one rank or more. Valid during the call. */
struct folded {
    const char *line;
    size_t n;
    int64_t stamp; /* as it was fed by the first rank */
    uint32_t n_ranks;
    uint32_t first;        /* the lowest rank */
    const uint64_t *ranks; /* a bit for each */
};

static inline bool folded_has(const struct folded *folded, uint32_t rank) {
    return folded->ranks[rank / 64] >> rank % 64 & 1;
}

typedef void fold_sink(void *context, const struct folded *folded);

struct fold_lines;

struct fold_lines *fold_lines_new(uint32_t n_ranks, fold_sink *sink, void *context);
void fold_lines_free(struct fold_lines *fold);

/* `stamp` is handed through. `now_us` is of any clock; one that is set back lets lines go early. */
void fold_lines_feed(struct fold_lines *fold, uint32_t rank, const char *line, size_t n,
                     int64_t stamp, int64_t now_us);
/* The rank writes no more: nobody waits for it. */
void fold_lines_ended(struct fold_lines *fold, uint32_t rank);
/* It writes again. */
void fold_lines_goes_on(struct fold_lines *fold, uint32_t rank);
void fold_lines_tick(struct fold_lines *fold, int64_t now_us);
void fold_lines_flush(struct fold_lines *fold);
bool fold_lines_holds(const struct fold_lines *fold);

#endif
