/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over any bytes as over a segment of the spool. Beyond "no crash": pieces change nothing,
 * and what counts lies within the segment and at the border of a word.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct segment walk(struct segment segment, const uint8_t *data, size_t size, size_t piece,
                           enum segment_end *end) {
    *end = SEGMENT_MORE;
    while (*end == SEGMENT_MORE && segment.at + 8 <= size) {
        const size_t left = size - (size_t)segment.at;

        *end = segment_walk(&segment, data + segment.at, left < piece ? left : piece);
    }
    return segment;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct myelin_spool_header header;
    struct segment segment, whole, pieces;
    enum segment_end end, end_of_pieces;

    if (size < sizeof header)
        return 0;
    memcpy(&header, data, sizeof header);
    /* A right checksum is not found by chance: with it, the records are reached. */
    header.size = size;
    header.checksum = 0;
    header.checksum = myelin_spool_checksum(0, &header, MYELIN_SPOOL_FIXED);
    if (!segment_begin(&segment, &header, size))
        return 0;
    whole = walk(segment, data, size, size, &end);
    pieces = walk(segment, data, size, 8 + size % 64 / 8 * 8, &end_of_pieces);
    if (end != end_of_pieces || whole.good != pieces.good || whole.good > size ||
        whole.good < sizeof header || whole.good % 8)
        abort();
    return 0;
}
