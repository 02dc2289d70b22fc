/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/utf8.h"

#include "base/attr.h"

static bool continues(unsigned char c) {
    return (c & 0xc0) == 0x80;
}

size_t utf8_length(const char *text, size_t n) {
    const unsigned char *p = (const unsigned char *)text;

    if (n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf && n >= 2 && continues(p[1]))
        return 2;
    if (p[0] >= 0xe0 && p[0] <= 0xef && n >= 3 && continues(p[1]) && continues(p[2]))
        return (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ? 0 : 3;
    if (p[0] >= 0xf0 && p[0] <= 0xf4 && n >= 4 && continues(p[1]) && continues(p[2]) &&
        continues(p[3]))
        return (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f) ? 0 : 4;
    return 0;
}

size_t utf8_valid_prefix(const char *text, size_t n) {
    size_t i = 0;

    while (i < n) {
        size_t length = utf8_length(text + i, n - i);

        if (length == 0)
            break;
        i += length;
    }
    return i;
}

size_t utf8_count(const char *text) {
    size_t n = 0;

    for (; *text; text++)
        n += !continues((unsigned char)*text);
    return n;
}

uint32_t utf8_point(const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text;
    uint32_t point = length > 1 ? p[0] & (0x7fu >> length) : p[0];

    for (size_t i = 1; i < length; i++)
        point = point << 6 | (p[i] & 0x3fu);
    return point;
}

bool utf8_is_cut(const char *text, size_t n) {
    static const char second[] = { '\x80', '\x90', '\xa0' }; /* one of them fits any first byte */
    const unsigned char first = n ? (unsigned char)text[0] : 0;
    const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    char tried[8];

    if (first < 0xc2 || n >= whole)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        for (size_t j = 0; j < whole; j++)
            tried[j] = j < n ? text[j] : j == 1 ? second[i] : '\x80';
        if (utf8_length(tried, whole) == whole)
            return true;
    }
    return false;
}

struct range {
    uint32_t from, to;
};

static bool is_within(const struct range *ranges, size_t n, uint32_t point) {
    for (size_t i = 0; i < n; i++)
        if (point >= ranges[i].from && point <= ranges[i].to)
            return true;
    return false;
}

bool utf8_is_hidden(uint32_t point) {
    static const struct range hidden[] = {
        { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x061c, 0x061c },
        { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x206f },
    };

    return is_within(hidden, ARRAY_LEN(hidden), point);
}

size_t utf8_columns(uint32_t point) {
    static const struct range none[] = {
        { 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a },
        { 0x064b, 0x065f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200d },
        { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
    };
    static const struct range wide[] = {
        { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },   { 0x23e9, 0x23f3 },
        { 0x25fd, 0x25fe },   { 0x2614, 0x2615 },   { 0x2648, 0x2653 },   { 0x267f, 0x267f },
        { 0x2693, 0x2693 },   { 0x26a1, 0x26a1 },   { 0x26aa, 0x26ab },   { 0x26bd, 0x26be },
        { 0x26c4, 0x26c5 },   { 0x26ce, 0x26ce },   { 0x26d4, 0x26d4 },   { 0x26ea, 0x26ea },
        { 0x26f2, 0x26f5 },   { 0x26fa, 0x26fd },   { 0x2705, 0x2705 },   { 0x270a, 0x270b },
        { 0x2728, 0x2728 },   { 0x274c, 0x274e },   { 0x2753, 0x2757 },   { 0x2795, 0x2797 },
        { 0x27b0, 0x27bf },   { 0x2b1b, 0x2b1c },   { 0x2b50, 0x2b55 },   { 0x2e80, 0x303e },
        { 0x3041, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },
        { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x16fe0, 0x18cff },
        { 0x1b000, 0x1b2ff }, { 0x1f004, 0x1f004 }, { 0x1f0cf, 0x1f0cf }, { 0x1f18e, 0x1f19a },
        { 0x1f200, 0x1f6ff }, { 0x1f7e0, 0x1f7eb }, { 0x1f90c, 0x1f9ff }, { 0x1fa70, 0x1faff },
        { 0x20000, 0x3fffd },
    };

    if (point < 0x300)
        return 1;
    return is_within(none, ARRAY_LEN(none), point)   ? 0
           : is_within(wide, ARRAY_LEN(wide), point) ? 2
                                                     : 1;
}
