/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/utf8.h"

#include <stdbool.h>
#include <stdint.h>

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
