/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor has on its disk, by the names of files. A name is kept as its hash of 64
 * bits, and beyond ACKS_MAX names no more are taken: of such a file it is not known, and it is sent
 * again.
 */
#ifndef SHIM_ACKS_H
#define SHIM_ACKS_H

#include <stddef.h>
#include <stdint.h>

enum { ACKS_MAX = 1 << 17 };

struct acks {
    struct ack {
        uint64_t hash; /* 0: free */
        uint64_t offset;
    } * slots;
    size_t n, room; /* room is a power of 2 */
};

void acks_release(struct acks *acks);

/* A smaller offset than the one that is known changes nothing: it was overtaken on its way. */
void acks_put(struct acks *acks, const char *name, size_t n, uint64_t offset);

/* 0 where nothing is known. */
uint64_t acks_get(const struct acks *acks, const char *name);

#endif
