/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

void sha256_init(struct sha256 *hash) {
    *hash = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                        0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

static uint32_t rotate(uint32_t word, int bits) {
    return word >> bits | word << (32 - bits);
}

/* The j-th round of eight: the words a to h are s[-j], s[1 - j] and so on, modulo 8. */
static inline void round_of(uint32_t s[static 8], unsigned j, uint32_t input) {
    const uint32_t a = s[(0 - j) & 7], b = s[(1 - j) & 7], c = s[(2 - j) & 7];
    const uint32_t e = s[(4 - j) & 7], f = s[(5 - j) & 7], g = s[(6 - j) & 7];
    uint32_t *d = &s[(3 - j) & 7], *h = &s[(7 - j) & 7];
    const uint32_t one =
        *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + input;

    *d += one;
    *h = one + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));
}

static void take_block(struct sha256 *hash, const uint8_t *block) {
    uint32_t schedule[64], s[8];

    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                      (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = schedule[i - 15], b = schedule[i - 2];

        schedule[i] = schedule[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + schedule[i - 7] +
                      (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, hash->state, sizeof s);
    /* After eight rounds every word is in its place again: none is ever moved. */
    for (int i = 0; i < 64; i += 8)
#pragma GCC unroll 8
        for (unsigned j = 0; j < 8; j++)
            round_of(s, j, constants[i + (int)j] + schedule[i + (int)j]);
    for (int i = 0; i < 8; i++)
        hash->state[i] += s[i];
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t n) {
    const uint8_t *at = bytes;
    size_t held = hash->n % SHA256_BLOCK;

    hash->n += n;
    if (held > 0) {
        const size_t room = SHA256_BLOCK - held, part = n < room ? n : room;

        memcpy(hash->block + held, at, part);
        if (part < room)
            return;
        take_block(hash, hash->block);
        at += part;
        n -= part;
    }
    for (; n >= SHA256_BLOCK; at += SHA256_BLOCK, n -= SHA256_BLOCK)
        take_block(hash, at);
    if (n > 0)
        memcpy(hash->block, at, n);
}

void sha256_finish(struct sha256 *hash, char out[static SHA256_TEXT]) {
    static const uint8_t padding[SHA256_BLOCK] = { 0x80 };
    const uint64_t bits = hash->n * 8;
    const size_t held = hash->n % SHA256_BLOCK;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(hash, padding, held < 56 ? 56 - held : 120 - held);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", (unsigned)hash->state[i]);
}
