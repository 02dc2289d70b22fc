/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a task wrote what: logs/<task>.idx, beside logs/<task>.log.
 *
 * The file is a row of 16-byte records, two little-endian 64-bit numbers each:
 *
 *   time    microseconds since 1970    offset             the bytes of the log from this offset
 *                                                         on came at this time, or later
 *   count   bytes                      offset | 2^63      a gap: so many bytes were lost here,
 *                                                         by a full disk or the log's limit
 *
 * Offsets and times never decrease. The time is that of the run's start plus what has passed on
 * a clock that only goes forward (and that counts the time a machine sleeps): when somebody sets
 * the wall clock, the lines of the tasks are still in the order in which they came.
 *
 * Invariants that readers rely on:
 *   1. A record stands in the index before the bytes it speaks of stand in the log; a gap's may
 *      come after.
 *   2. The last record may be cut, or be a gap that still grows. All before it are final.
 *   3. Without an index, or with less of it than there should be, the log is whole, and only
 *      times are missing.
 */
#ifndef STORE_LOGINDEX_H
#define STORE_LOGINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOGINDEX_RECORD = 16 };

struct logindex_entry {
    int64_t time_us; /* or, of a gap, the bytes lost */
    uint64_t offset;
    bool is_gap;
};

void logindex_encode(const struct logindex_entry *entry, unsigned char out[LOGINDEX_RECORD]);
struct logindex_entry logindex_decode(const unsigned char in[LOGINDEX_RECORD]);

/* A reader. It holds some records only, whatever the size of the file. */
struct logindex {
    int fd;     /* -1: there is no index */
    uint64_t n; /* records at the last look */
    uint64_t window_at;
    size_t window_n;
    unsigned char window[256 * LOGINDEX_RECORD];
};

/* Opens the index of a task; one that is not there is empty, and looked for again. */
void logindex_open(struct logindex *index, const char *directory, const char *task);
void logindex_close(struct logindex *index);

/* The i-th record; false beyond the last. Looks at the file again when it has grown. */
bool logindex_get(struct logindex *index, uint64_t i, struct logindex_entry *out);

/* The number of the first record that says: this time, or later. Gaps are passed over. Equal to
 * the number of records when there is none. */
uint64_t logindex_find_time(struct logindex *index, int64_t time_us);

/* The number of the last record that is no gap and whose offset is at most this one. False when
 * there is none. */
bool logindex_find_offset(struct logindex *index, uint64_t offset, uint64_t *out);

#endif
