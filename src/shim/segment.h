/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a spool segment (docs/spool.md) is written: a walk over its records, which another
 * process goes on writing. Pure, over bytes in any pieces, and ready for any bytes.
 *
 *   segment_begin(&segment, header, size)
 *   segment_walk(&segment, bytes from segment.at on, n) ...   until END or BAD; segment.good counts
 *
 * A record counts only if its checksum is right: one that is read while it is written would be sent
 * once and wrong for ever. After END or BAD a later look goes on from `good`.
 */
#ifndef SHIM_SEGMENT_H
#define SHIM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MYELIN_SPOOL_FORMAT
#include "myelin.h"

enum { SEGMENT_NAME_MAX = 63 };

struct segment {
    uint64_t size, nonce;
    uint64_t good; /* where the next record begins */
    uint64_t at;   /* where the next bytes belong */
    uint64_t word, hash;
    uint32_t left; /* bytes of its payload that are to come */
    bool is_within;
};

enum segment_end {
    SEGMENT_MORE, /* the bytes end before the records do */
    SEGMENT_END,  /* nothing is there yet, or the segment is full */
    SEGMENT_BAD,  /* a record that is damaged, or not yet whole */
};

/* Whether a file has the name of a segment, <pid>-<start>-<number>.spool. */
bool segment_is_name(const char *name);

/* False if that is no header of a segment of this size of file. */
bool segment_begin(struct segment *segment, const struct myelin_spool_header *header,
                   uint64_t file_size);

/* Bytes beyond the last multiple of 8 are left for the next time. */
enum segment_end segment_walk(struct segment *segment, const void *bytes, size_t n);

#endif
