/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of myelin.c, which alone includes it: numbers, names and paths as text. Numbers and names
 * may be made in a signal handler, paths of media may not.
 */
#ifndef MYELIN_TEXT_H
#define MYELIN_TEXT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "myelin.h"

static char *put_number(char *to, uint64_t value, unsigned base, int least) {
    char digits[24];
    int n = 0;

    do
        digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (n < least)
        digits[n++] = '0';
    while (n)
        *to++ = digits[--n];
    return to;
}

static uint64_t hash_of(const char *text, size_t n) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* How many bytes the character at text has; 0 if they are not UTF-8. */
static size_t utf8_length(const unsigned char *text, size_t n) {
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint32_t value = text[0] & (unsigned char)~forms[i].mask;

        if ((text[0] & forms[i].mask) != forms[i].lead)
            continue;
        if (i + 1 > n)
            return 0;
        for (size_t k = 1; k <= i; k++) {
            if ((text[k] & 0xc0) != 0x80)
                return 0;
            value = value << 6 | (text[k] & 0x3f);
        }
        return value < forms[i].least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)
                   ? 0
                   : i + 1;
    }
    return 0;
}

/* The name as it is kept: valid, and at most MYELIN_NAME_MAX bytes. A longer one ends in '~' and
 * the hash of all its bytes, so that two which begin alike stay two. */
static size_t clean_name(const char *name, size_t n, char out[MYELIN_NAME_MAX]) {
    const size_t most = n > MYELIN_NAME_MAX ? MYELIN_NAME_MAX - 17 : MYELIN_NAME_MAX;
    size_t length = 0;

    for (size_t i = 0; i < n;) {
        size_t width = utf8_length((const unsigned char *)name + i, n - i);
        const bool is_plain =
            width > 1 || (width && (unsigned char)name[i] >= 0x20 && name[i] != 0x7f);

        width += !width;
        if (length + width > most)
            break;
        if (is_plain)
            memcpy(out + length, name + i, width);
        else
            out[length] = '?';
        length += width;
        i += width;
    }
    if (n > MYELIN_NAME_MAX) {
        out[length++] = '~';
        put_number(out + length, hash_of(name, n), 16, 16);
        length += 16;
    }
    return length;
}

/* outputs/media/<name>, with a slash at its end; 0 where it is too long. A part that begins with a
 * dot begins with '_' instead, so that no name leads out. */
static size_t media_folder(const char *outputs, const char *name, char out[static PATH_MAX]) {
    char clean[MYELIN_NAME_MAX];
    const size_t n = clean_name(name, strlen(name), clean);
    const int begun = snprintf(out, PATH_MAX, "%s/media/", outputs);
    size_t length = (size_t)begun;

    if (begun < 0 || length + n + 2 > PATH_MAX)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const bool is_first = out[length - 1] == '/';

        if (clean[i] != '/' || !is_first)
            out[length++] = is_first && clean[i] == '.' ? '_' : clean[i];
    }
    if (length == (size_t)begun)
        out[length++] = '_';
    if (out[length - 1] != '/')
        out[length++] = '/';
    out[length] = '\0';
    return length;
}

#endif
