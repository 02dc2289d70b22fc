/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a name in the tables of the shim: FNV-1a, which anybody can make collide. */
#ifndef SHIM_HASH_H
#define SHIM_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_of(const char *name, size_t n) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
