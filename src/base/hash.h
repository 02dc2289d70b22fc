/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash of the tables in memory: FNV-1a. Whoever chooses the bytes can make them collide, unless
 * the hash begins with a number that he does not know. Nothing that is kept depends on it: the
 * formats of files have sums of their own.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_INIT UINT64_C(0xcbf29ce484222325)

/* Of what `hash` already stands for, and then these bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    const unsigned char *at = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
