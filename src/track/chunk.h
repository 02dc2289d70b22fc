/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk: up to 4096 points of one series as bytes. Pure.
 *
 * Its head says whose points they are and has a summary for each block of 256; its body has the
 * blocks, each by itself: who draws a chart reads heads, and unpacks a block only where a bucket
 * ends inside it.
 *
 *   head    varint series, varint count, then for each block: varint size of its bytes in the body,
 *           its summary (summary.h)
 *   body    for each block: the column (column.h) of steps less the block's first step, that of
 *           times likewise, u8 shift, the column of values, and u32 CRC-32C of these bytes
 *
 * A value becomes an integer: its 64 bits, shifted right by what is zero in all of the block (29
 * bits when they were float32), and, when the sign is set, the others inverted: so near values are
 * near integers. NaN is stored as 0x7ff8 << 48.
 */
#ifndef TRACK_CHUNK_H
#define TRACK_CHUNK_H

#include "track/column.h"
#include "track/summary.h"

enum {
    CHUNK_MOST = 4096,
    CHUNK_BLOCK = COLUMN_MOST,
    CHUNK_BLOCKS_MOST = CHUNK_MOST / CHUNK_BLOCK,
    CHUNK_HEAD_MOST = 16 + CHUNK_BLOCKS_MOST * 160, /* bytes; the longest there can be is less */
    CHUNK_BODY_MOST = CHUNK_MOST * 40,
};

/* Appends to both; 1 <= n <= CHUNK_MOST. Only one chunk's body belongs into a body. */
void chunk_encode(uint32_t series, const struct point *points, size_t n, struct bytes *head,
                  struct bytes *body);

struct chunk_head {
    uint32_t series;
    uint32_t n, n_blocks;
    struct {
        uint32_t at, size; /* in the body */
        struct summary summary;
    } blocks[CHUNK_BLOCKS_MOST];
    struct summary all;
};

/* False: these bytes are no head. */
bool chunk_head_decode(struct cursor in, struct chunk_head *out);

/* Reads the points of a block from its bytes in the body into out[0 .. its count). False: the sum
 * is wrong, or these bytes are no block. */
bool chunk_block_decode(struct cursor in, const struct summary *block,
                        struct point out[CHUNK_BLOCK]);

#endif
