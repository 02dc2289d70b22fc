/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers to bytes and back, as all files of the store have them: little-endian, or as varints of
 * seven bits a byte, least first (LEB128); signed ones go zigzag (0, -1, 1, -2, …).
 *
 * A cursor reads bytes of the outside. It never goes beyond its end: a read that would gives 0 and
 * leaves the cursor bad, so that a caller may read a whole record and ask once.
 */
#ifndef TRACK_BYTES_H
#define TRACK_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Grows as it is written to; running out of memory aborts, so whoever fills it bounds it. */
struct bytes {
    unsigned char *data;
    size_t len, capacity;
};

void bytes_grow(struct bytes *bytes, size_t n);
void bytes_release(struct bytes *bytes);

/* The place for n more bytes, which the caller fills and counts. */
static inline unsigned char *bytes_reserve(struct bytes *bytes, size_t n) {
    if (bytes->capacity - bytes->len < n)
        bytes_grow(bytes, n);
    return bytes->data + bytes->len;
}

static inline void bytes_put(struct bytes *bytes, const void *from, size_t n) {
    if (n == 0)
        return;
    memcpy(bytes_reserve(bytes, n), from, n);
    bytes->len += n;
}

static inline void bytes_u8(struct bytes *bytes, unsigned value) {
    *bytes_reserve(bytes, 1) = (unsigned char)value;
    bytes->len++;
}

static inline void bytes_u32(struct bytes *bytes, uint32_t value) {
    value = htole32(value);
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_u64(struct bytes *bytes, uint64_t value) {
    value = htole64(value);
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_varint(struct bytes *bytes, uint64_t value) {
    unsigned char *at = bytes_reserve(bytes, 10);
    size_t n = 0;

    while (value >= 0x80) {
        at[n++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    at[n++] = (unsigned char)value;
    bytes->len += n;
}

static inline void bytes_zigzag(struct bytes *bytes, int64_t value) {
    bytes_varint(bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void bytes_double(struct bytes *bytes, double value) {
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    bytes_u64(bytes, bits);
}

struct cursor {
    const unsigned char *at, *end;
    bool is_bad;
};

static inline struct cursor cursor_over(const void *data, size_t n) {
    const unsigned char *at = data;

    return (struct cursor){ .at = at, .end = n ? at + n : at };
}

static inline size_t cursor_left(const struct cursor *cursor) {
    return (size_t)(cursor->end - cursor->at);
}

/* The next n bytes, or NULL. */
static inline const unsigned char *cursor_take(struct cursor *cursor, size_t n) {
    const unsigned char *at = cursor->at;

    if (cursor->is_bad || cursor_left(cursor) < n) {
        cursor->is_bad = true;
        return NULL;
    }
    cursor->at += n;
    return at;
}

static inline unsigned cursor_u8(struct cursor *cursor) {
    const unsigned char *at = cursor_take(cursor, 1);

    return at ? *at : 0;
}

static inline uint32_t cursor_u32(struct cursor *cursor) {
    const unsigned char *at = cursor_take(cursor, 4);
    uint32_t value = 0;

    if (at)
        memcpy(&value, at, sizeof value);
    return le32toh(value);
}

static inline uint64_t cursor_u64(struct cursor *cursor) {
    const unsigned char *at = cursor_take(cursor, 8);
    uint64_t value = 0;

    if (at)
        memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static inline double cursor_double(struct cursor *cursor) {
    const uint64_t bits = cursor_u64(cursor);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t cursor_varint(struct cursor *cursor) {
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        const unsigned byte = cursor_u8(cursor);

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    cursor->is_bad = true;
    return 0;
}

static inline int64_t cursor_zigzag(struct cursor *cursor) {
    const uint64_t value = cursor_varint(cursor);

    return (int64_t)(value >> 1 ^ -(value & 1));
}

/* Sums and differences of any steps and times: they wrap, both ways alike. */
static inline int64_t wrapping_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrapping_sub(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* CRC-32C (Castagnoli), continued from `crc`; 0 to begin. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);

#endif
