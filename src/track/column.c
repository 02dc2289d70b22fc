/* SPDX-License-Identifier: Apache-2.0 */
#include "track/column.h"

#include <assert.h>

enum { ORDER_MOST = 2, EXCEPTIONS_MOST = 255, EXCEPTIONS_BIT = 0x80 };

/* How one choice of order would be stored, and what it would take. */
struct layout {
    size_t bits; /* of packed numbers and exceptions */
    unsigned width, wide, n_exceptions;
    int64_t base;
};

static unsigned bit_length(uint64_t value) {
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

static struct layout choose_width(const int64_t *in, size_t n) {
    unsigned of_length[65] = { 0 }, above = 0;
    struct layout best = { .base = n ? in[0] : 0 };
    unsigned most = 64;

    for (size_t i = 0; i < n; i++)
        best.base = in[i] < best.base ? in[i] : best.base;
    for (size_t i = 0; i < n; i++)
        of_length[bit_length((uint64_t)in[i] - (uint64_t)best.base)]++;
    while (most > 0 && of_length[most] == 0)
        most--;
    best.width = best.wide = most;
    best.bits = n * most;
    for (unsigned width = most; width > 0; width--) {
        size_t bits;

        above += of_length[width];
        bits = n * (width - 1) + 16 + above * (size_t)(8 + most - (width - 1));
        if (above > EXCEPTIONS_MOST)
            break;
        if (bits < best.bits) {
            best.bits = bits;
            best.width = width - 1;
            best.n_exceptions = above;
        }
    }
    return best;
}

/* Appends n numbers, of each the `width` bits above the lowest `skip`. */
static void pack(const uint64_t *in, size_t n, unsigned skip, unsigned width, struct bytes *out) {
    unsigned char *at = bytes_reserve(out, n * 8 + 16);
    const uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
    uint64_t held = 0, word;
    unsigned n_held = 0;

    out->len += (n * width + 7) / 8;
    if (width == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        const uint64_t value = in[i] >> skip & mask;

        held |= value << n_held;
        if (n_held + width >= 64) {
            word = htole64(held);
            memcpy(at, &word, 8);
            at += 8;
            held = n_held ? value >> 1 >> (63 - n_held) : 0;
            n_held = n_held + width - 64;
        } else {
            n_held += width;
        }
    }
    word = htole64(held);
    memcpy(at, &word, 8);
}

/* A copy with room behind it, so that any number is read by one load, or two when it is wide. */
static bool unpack(struct cursor *in, size_t n, unsigned width, uint64_t *out) {
    unsigned char padded[COLUMN_MOST * 8 + 16];
    const size_t size = (n * width + 7) / 8;
    const uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
    const unsigned char *from = cursor_take(in, size);

    if (!from)
        return false;
    memcpy(padded, from, size);
    memset(padded + size, 0, 16);
    for (size_t i = 0, bit = 0; i < n; i++, bit += width) {
        const unsigned shift = bit & 7;
        uint64_t word;

        memcpy(&word, padded + bit / 8, 8);
        word = le64toh(word) >> shift;
        if (shift + width > 64)
            word |= (uint64_t)padded[bit / 8 + 8] << (64 - shift);
        out[i] = word & mask;
    }
    return true;
}

static void put_exceptions(const uint64_t *packed, size_t n, const struct layout *layout,
                           struct bytes *out) {
    uint64_t upper[EXCEPTIONS_MOST];
    size_t n_upper = 0;

    for (size_t i = 0; i < n; i++)
        if (bit_length(packed[i]) > layout->width) {
            bytes_u8(out, (unsigned)i);
            upper[n_upper++] = packed[i];
        }
    pack(upper, n_upper, layout->width, layout->wide - layout->width, out);
}

void column_encode(const int64_t *in, size_t n, struct bytes *out) {
    int64_t of_order[ORDER_MOST + 1][COLUMN_MOST];
    struct layout layouts[ORDER_MOST + 1];
    uint64_t packed[COLUMN_MOST] = { 0 };
    unsigned order = 0, orders = 1;

    assert(n > 0 && n <= COLUMN_MOST);
    memcpy(of_order[0], in, n * sizeof *in);
    layouts[0] = choose_width(in, n);
    for (; orders <= ORDER_MOST && orders < n && layouts[order].width > 0; orders++) {
        const int64_t *before = of_order[orders - 1];

        /* Half of the width is gone, or more: differences of differences hardly mend noise. */
        for (size_t i = 0; i + orders < n; i++)
            of_order[orders][i] = wrapping_sub(before[i + 1], before[i]);
        layouts[orders] = choose_width(of_order[orders], n - orders);
        if (layouts[orders].bits + 16 < layouts[order].bits)
            order = orders;
    }

    const struct layout *best = &layouts[order];
    const size_t m = n - order;

    bytes_u8(out, best->width | (best->n_exceptions ? EXCEPTIONS_BIT : 0));
    bytes_u8(out, order);
    if (best->n_exceptions) {
        bytes_u8(out, best->n_exceptions);
        bytes_u8(out, best->wide - best->width);
    }
    for (unsigned i = 0; i < order; i++)
        bytes_zigzag(out, of_order[i][0]);
    bytes_zigzag(out, best->base);
    for (size_t i = 0; i < m; i++)
        packed[i] = (uint64_t)of_order[order][i] - (uint64_t)best->base;
    pack(packed, m, 0, best->width, out);
    if (best->n_exceptions)
        put_exceptions(packed, m, best, out);
}

static bool take_exceptions(struct cursor *in, unsigned n_exceptions, unsigned width, unsigned more,
                            size_t n, uint64_t *numbers) {
    const unsigned char *which = cursor_take(in, n_exceptions);
    uint64_t upper[EXCEPTIONS_MOST];

    if (!which || width + more > 64 || width == 64 || !unpack(in, n_exceptions, more, upper))
        return false;
    for (unsigned i = 0; i < n_exceptions; i++) {
        if (which[i] >= n)
            return false;
        numbers[which[i]] |= upper[i] << width;
    }
    return true;
}

bool column_decode(struct cursor *in, size_t n, int64_t *out) {
    const unsigned first = cursor_u8(in), order = cursor_u8(in),
                   width = first & (EXCEPTIONS_BIT - 1);
    const bool has_exceptions = first & EXCEPTIONS_BIT;
    const unsigned n_exceptions = has_exceptions ? cursor_u8(in) : 0;
    const unsigned more = has_exceptions ? cursor_u8(in) : 0;
    uint64_t numbers[COLUMN_MOST];
    int64_t seeds[ORDER_MOST], base;
    size_t m;

    if (n == 0 || n > COLUMN_MOST || width > 64 || order > ORDER_MOST || order >= n)
        return false;
    for (unsigned i = 0; i < order; i++)
        seeds[i] = cursor_zigzag(in);
    base = cursor_zigzag(in);
    m = n - order;
    if (!unpack(in, m, width, numbers))
        return false;
    if (has_exceptions && !take_exceptions(in, n_exceptions, width, more, m, numbers))
        return false;
    for (size_t i = 0; i < m; i++)
        out[order + i] = (int64_t)(numbers[i] + (uint64_t)base);
    for (unsigned level = order; level-- > 0;) {
        out[level] = seeds[level];
        for (size_t i = level + 1; i < n; i++)
            out[i] = wrapping_add(out[i], out[i - 1]);
    }
    return !in->is_bad;
}
