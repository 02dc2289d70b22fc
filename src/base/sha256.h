/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of bytes that come in pieces:
 *
 *   struct sha256 hash;
 *   sha256_init(&hash);
 *   sha256_add(&hash, bytes, n);          as often as there is more
 *   sha256_finish(&hash, text);           64 digits in lower case, as sha256sum prints
 */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BLOCK = 64, SHA256_TEXT = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t n; /* bytes so far */
    uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t n);
void sha256_finish(struct sha256 *hash, char out[static SHA256_TEXT]);

#endif
