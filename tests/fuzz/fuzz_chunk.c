/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a chunk of points: two bytes of length, a head, a body. The sums of blocks are
 * mended first, so that what is behind them is reached too. Beyond "no crash": what can be read is
 * the same after it was written again, and a summary that claims nothing false of its points is
 * what encoding them gives.
 */
#include <math.h>
#include <stdlib.h>

#include "track/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static void require(bool law) {
    if (!law)
        abort();
}

static bool same(const struct point *a, const struct point *b) {
    return a->step == b->step && a->time_us == b->time_us &&
           ((isnan(a->value) && isnan(b->value)) || memcmp(&a->value, &b->value, 8) == 0);
}

static void mend_sum(unsigned char *block, size_t n) {
    const uint32_t sum = n >= 4 ? htole32(crc32c(0, block, n - 4)) : 0;

    if (n >= 4)
        memcpy(block + n - 4, &sum, sizeof sum);
}

static void write_again(const struct point *points, size_t n) {
    static struct point again[CHUNK_BLOCK];
    static struct chunk_head head;
    struct bytes head_bytes = { 0 }, body = { 0 };

    chunk_encode(7, points, n, &head_bytes, &body);
    require(chunk_head_decode(cursor_over(head_bytes.data, head_bytes.len), &head));
    require(head.n == n && head.n_blocks == 1 && head.blocks[0].size == body.len);
    require(chunk_block_decode(cursor_over(body.data, body.len), &head.blocks[0].summary, again));
    for (size_t i = 0; i < n; i++)
        require(same(&points[i], &again[i]));
    bytes_release(&head_bytes);
    bytes_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct point points[CHUNK_BLOCK];
    static struct chunk_head head;
    unsigned char *copy;
    size_t head_length, body_length;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    head_length = (size_t)data[0] | (size_t)data[1] << 8;
    if (head_length > size - 2)
        head_length = size - 2;
    body_length = size - 2 - head_length;
    if (!chunk_head_decode(cursor_over(data + 2, head_length), &head))
        return 0;
    require(head.n > 0 && head.n <= CHUNK_MOST && head.all.count == head.n);
    copy = malloc(body_length + 1);
    require(copy);
    memcpy(copy, data + 2 + head_length, body_length);
    for (uint32_t i = 0; i < head.n_blocks; i++) {
        const size_t at = head.blocks[i].at, n = head.blocks[i].size;

        if (at > body_length || n > body_length - at)
            break;
        mend_sum(copy + at, n);
        if (chunk_block_decode(cursor_over(copy + at, n), &head.blocks[i].summary, points))
            write_again(points, head.blocks[i].summary.count);
    }
    free(copy);
    return 0;
}
