/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_decode(const char *text, size_t n, char *out, size_t *len) {
    uint32_t bits = 0;
    size_t digits = 0, padding = 0, written = 0;

    for (size_t i = 0; i < n; i++) {
        const char *digit;

        if (strchr(" \t\r\n", text[i]))
            continue;
        if (text[i] == '=') {
            padding++;
            continue;
        }
        digit = memchr(alphabet, text[i], sizeof alphabet - 1);
        if (!digit || padding > 0)
            return false;
        bits = bits << 6 | (uint32_t)(digit - alphabet);
        if (++digits % 4 != 1)
            out[written++] = (char)(bits >> (6 - (digits - 1) % 4 * 2));
    }
    if (digits % 4 == 1 || (digits + padding) % 4 != 0 || padding > 2)
        return false;
    out[written] = '\0';
    *len = written;
    return true;
}

void base64_encode(const char *bytes, size_t n, char *out) {
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t bits = (uint32_t)(unsigned char)bytes[i] << 16 |
                              (left > 1 ? (uint32_t)(unsigned char)bytes[i + 1] << 8 : 0) |
                              (left > 2 ? (uint32_t)(unsigned char)bytes[i + 2] : 0);

        *out++ = alphabet[bits >> 18];
        *out++ = alphabet[bits >> 12 & 63];
        *out++ = left > 1 ? alphabet[bits >> 6 & 63] : '=';
        *out++ = left > 2 ? alphabet[bits & 63] : '=';
    }
    *out = '\0';
}
