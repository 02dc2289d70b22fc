/* SPDX-License-Identifier: Apache-2.0 */
#include "track/chunk.h"

#include <assert.h>
#include <math.h>

#define NAN_BITS (0x7ff8ull << 48)

static uint64_t value_bits(double value) {
    uint64_t bits;

    if (isnan(value))
        return NAN_BITS;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The sign bit, after the shift, stands at 63 - shift. */
static int64_t value_order(uint64_t bits, unsigned shift) {
    const uint64_t shifted = bits >> shift, sign = 1ull << (63 - shift);

    return shifted & sign ? (int64_t) ~(shifted & ~sign) : (int64_t)shifted;
}

static bool value_restore(int64_t ordered, unsigned shift, double *out) {
    const uint64_t sign = 1ull << (63 - shift);
    const uint64_t magnitude = ordered < 0 ? ~(uint64_t)ordered : (uint64_t)ordered;
    const uint64_t bits = (ordered < 0 ? magnitude | sign : magnitude) << shift;

    if (magnitude >= sign)
        return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static void encode_values(const struct point *points, size_t n, struct bytes *body) {
    int64_t column[CHUNK_BLOCK];
    uint64_t bits[CHUNK_BLOCK], all = 0;
    unsigned shift;

    for (size_t i = 0; i < n; i++) {
        bits[i] = value_bits(points[i].value);
        all |= bits[i];
    }
    shift = all ? (unsigned)__builtin_ctzll(all) : 0;
    for (size_t i = 0; i < n; i++)
        column[i] = value_order(bits[i], shift);
    bytes_u8(body, shift);
    column_encode(column, n, body);
}

static void encode_block(const struct point *points, size_t n, struct bytes *body) {
    const size_t start = body->len;
    int64_t column[CHUNK_BLOCK];

    for (size_t i = 0; i < n; i++)
        column[i] = wrapping_sub(points[i].step, points[0].step);
    column_encode(column, n, body);
    for (size_t i = 0; i < n; i++)
        column[i] = wrapping_sub(points[i].time_us, points[0].time_us);
    column_encode(column, n, body);
    encode_values(points, n, body);
    bytes_u32(body, crc32c(0, body->data + start, body->len - start));
}

void chunk_encode(uint32_t series, const struct point *points, size_t n, struct bytes *head,
                  struct bytes *body) {
    struct summary_origin origin = { 0 };

    assert(n > 0 && n <= CHUNK_MOST);
    bytes_varint(head, series);
    bytes_varint(head, n);
    for (size_t at = 0; at < n; at += CHUNK_BLOCK) {
        const size_t n_block = n - at < CHUNK_BLOCK ? n - at : CHUNK_BLOCK, before = body->len;
        const struct summary summary = summary_of(points + at, n_block);

        encode_block(points + at, n_block, body);
        bytes_varint(head, body->len - before);
        summary_put(&summary, origin, head);
        origin = (struct summary_origin){ summary.last_step, summary.last_time_us };
    }
}

bool chunk_head_decode(struct cursor in, struct chunk_head *out) {
    const uint64_t series = cursor_varint(&in), n = cursor_varint(&in);
    struct summary_origin origin = { 0 };
    uint64_t at = 0;

    if (in.is_bad || series >= UINT32_MAX || n == 0 || n > CHUNK_MOST)
        return false;
    out->series = (uint32_t)series;
    out->n = (uint32_t)n;
    out->n_blocks = (uint32_t)((n + CHUNK_BLOCK - 1) / CHUNK_BLOCK);
    out->all = (struct summary){ 0 };
    for (uint32_t i = 0; i < out->n_blocks; i++) {
        const uint64_t size = cursor_varint(&in), left = n - (uint64_t)i * CHUNK_BLOCK;
        struct summary *summary = &out->blocks[i].summary;

        if (size > CHUNK_BODY_MOST || at + size > CHUNK_BODY_MOST ||
            !summary_take(&in, left < CHUNK_BLOCK ? left : CHUNK_BLOCK, origin, summary))
            return false;
        out->blocks[i].at = (uint32_t)at;
        out->blocks[i].size = (uint32_t)size;
        at += size;
        origin = (struct summary_origin){ summary->last_step, summary->last_time_us };
        summary_append(&out->all, summary);
    }
    return cursor_left(&in) == 0;
}

/* Takes the sum off the end of a block. */
static bool is_sound(struct cursor *in) {
    struct cursor sum;

    if (cursor_left(in) < 4)
        return false;
    in->end -= 4;
    sum = cursor_over(in->end, 4);
    return crc32c(0, in->at, cursor_left(in)) == cursor_u32(&sum);
}

bool chunk_block_decode(struct cursor in, const struct summary *block,
                        struct point out[CHUNK_BLOCK]) {
    int64_t steps[CHUNK_BLOCK], times[CHUNK_BLOCK], values[CHUNK_BLOCK];
    const size_t n = block->count;
    unsigned shift;

    if (n == 0 || n > CHUNK_BLOCK || !is_sound(&in) || !column_decode(&in, n, steps) ||
        !column_decode(&in, n, times))
        return false;
    shift = cursor_u8(&in);
    if (in.is_bad || shift > 63 || !column_decode(&in, n, values) || cursor_left(&in) > 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        out[i].step = wrapping_add(steps[i], block->first_step);
        out[i].time_us = wrapping_add(times[i], block->first_time_us);
        if (!value_restore(values[i], shift, &out[i].value))
            return false;
    }
    return true;
}
