/* SPDX-License-Identifier: Apache-2.0 */
#include "track/bytes.h"

#include <stdlib.h>

void bytes_grow(struct bytes *bytes, size_t n) {
    size_t capacity = bytes->capacity ? bytes->capacity : 256;

    while (capacity - bytes->len < n)
        capacity *= 2;
    bytes->data = realloc(bytes->data, capacity);
    if (!bytes->data)
        abort();
    bytes->capacity = capacity;
}

void bytes_release(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){ 0 };
}

enum { POLYNOMIAL_REFLECTED = (int)0x82f63b78 };

/* Eight bytes a turn, by a table for each. */
static uint32_t crc_table[8][256];

__attribute__((constructor)) static void crc_tables_make(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? (uint32_t)POLYNOMIAL_REFLECTED : 0);
        crc_table[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t before = crc_table[k - 1][i];

            crc_table[k][i] = before >> 8 ^ crc_table[0][before & 0xff];
        }
}

uint32_t crc32c(uint32_t crc, const void *data, size_t n) {
    const unsigned char *at = data;

    crc = ~crc;
    for (; n >= 8; n -= 8, at += 8) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        word = le64toh(word) ^ crc;
        crc = 0;
        for (unsigned k = 0; k < 8; k++)
            crc ^= crc_table[7 - k][word >> (8 * k) & 0xff];
    }
    for (; n > 0; n--, at++)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
