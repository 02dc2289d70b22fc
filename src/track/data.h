/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of series/data-<generation>: frames, appended. Pure.
 *
 *   frame   u32 kind, u32 length of head, u32 length of body, u32 CRC-32C of the three before and
 *           the head; head; body, whose parts have sums of their own
 *
 *   kind 1  chunk   points of one series: chunk.h
 *   kind 2  names   head: varint n, then n definitions: varint rank, varint attempt, varint length,
 *                   name. They go on from those before
 *   kind 3  nodes   body: nodes of 128 bytes
 *   kind 4  index   head: varint n, then of each series: a definition; varint count (0: no points,
 *                   and nothing follows); varint depth; varint at; varint size; its summary
 *
 * An index says of each series where all its points before the index are. They are the leaves of a
 * tree. A node stands for up to 16 nodes below it, or, at depth 0, for a chunk: `at` is where those
 * stand in the file, and `size` how many nodes, or bytes of the chunk's frame. A node is, in 64-bit
 * words: count, nans; min, max, mean, last; first, last, least and greatest step; the same of
 * time_us; at; and u32 size, u32 CRC-32C of all before.
 */
#ifndef TRACK_DATA_H
#define TRACK_DATA_H

#include "track/chunk.h"

enum data_kind { DATA_CHUNK = 1, DATA_NAMES, DATA_NODES, DATA_INDEX };

enum { DATA_FRAME = 16, DATA_NODE = 128, DATA_FAN = 16, DATA_DEPTH_MOST = 12 };

struct data_frame {
    enum data_kind kind;
    uint32_t head_length, body_length, head_sum;
};

struct data_node {
    struct summary summary;
    uint64_t at;
    uint32_t size;
};

void data_frame_put(enum data_kind kind, const struct bytes *head, const struct bytes *body,
                    struct bytes *out);
/* False: no frame begins with these bytes. The sums are not looked at. */
bool data_frame_take(const unsigned char in[DATA_FRAME], struct data_frame *out);
/* Whether the head, which follows the frame's 16 bytes, is as it was written. */
bool data_head_is_sound(const unsigned char *frame, const struct data_frame *parsed);
uint64_t data_frame_size(const struct data_frame *frame);

void data_node_put(const struct data_node *node, struct bytes *out);
bool data_node_take(const unsigned char in[DATA_NODE], struct data_node *out);

void data_definition_put(const char *name, size_t n, uint32_t rank, uint32_t attempt,
                         struct bytes *out);
/* The name, not terminated, or NULL. */
const char *data_definition_take(struct cursor *in, size_t *n, uint32_t *rank, uint32_t *attempt);

#endif
