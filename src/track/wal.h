/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of series/wal: the log of commits, and the one file that says what the others mean.
 * Pure: who reads and writes the file is series.c and reader.c.
 *
 *   preamble   "myelWAL\n", u32 version (1), u32 nonce (random, of this file)
 *   frames     u32 length, u32 CRC-32C of (nonce, offset of the frame in the file, payload),
 * payload
 *
 * The first frame is the manifest, with all marks; it is whole before the file gets its name. Each
 * later frame is one commit. A frame that is cut or whose sum is wrong ends the log: it was never
 * committed. A payload is a row of records, each led by a varint:
 *
 *   0 define     varint rank, varint attempt, varint n, n bytes of name. Series are numbered from 0
 *                in the order of their definitions, those in the data file first
 *   1 mark       varint n, n bytes of source, varint offset
 *   2 unmark     varint n, n bytes of source
 *   3 manifest   varint generation of the data file (0: none yet), varint length of it that counts,
 *                varint offset of its index (0: none)
 *   8 + series   a point: zigzag step and zigzag time_us, each less that of the point before in
 * this payload (0 before the first), and the 8 bytes of the value
 */
#ifndef TRACK_WAL_H
#define TRACK_WAL_H

#include "track/bytes.h"
#include "track/point.h"

enum { WAL_PREAMBLE = 16, WAL_FRAME = 8, WAL_VERSION = 1, WAL_PAYLOAD_MOST = 1 << 28 };

struct wal_manifest {
    uint64_t generation, data_length, index_at;
};

/* A frame in the making. Its first WAL_FRAME bytes are for the length and the sum. */
struct wal_frame {
    struct bytes bytes;
    int64_t step, time_us; /* of the last point */
};

void wal_preamble(uint32_t nonce, struct bytes *out);

void wal_frame_begin(struct wal_frame *frame);
void wal_put_define(struct wal_frame *frame, const char *name, size_t n, uint32_t rank,
                    uint32_t attempt);
void wal_put_mark(struct wal_frame *frame, const char *source, size_t n, uint64_t offset);
void wal_put_unmark(struct wal_frame *frame, const char *source, size_t n);
void wal_put_manifest(struct wal_frame *frame, const struct wal_manifest *manifest);
void wal_put_point(struct wal_frame *frame, uint32_t series, const struct point *point);
/* Fills in length and sum, for this place of the file. */
void wal_frame_end(struct wal_frame *frame, uint32_t nonce, uint64_t offset);

/* What stands in the log; what is not wanted may be NULL. Texts are not terminated. */
struct wal_visitor {
    void (*define)(void *context, const char *name, size_t n, uint32_t rank, uint32_t attempt);
    void (*mark)(void *context, const char *source, size_t n, uint64_t offset);
    void (*unmark)(void *context, const char *source, size_t n);
    void (*manifest)(void *context, const struct wal_manifest *manifest);
    void (*point)(void *context, uint32_t series, const struct point *point);
};

/* Visits all whole frames. Returns where they end, or 0 when there is no preamble of a version
 * that is known, or no first frame. */
size_t wal_read(const unsigned char *data, size_t n, const struct wal_visitor *visitor,
                void *context);
uint32_t wal_nonce(const unsigned char data[WAL_PREAMBLE]);

#endif
