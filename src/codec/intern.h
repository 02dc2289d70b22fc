/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interned texts: equal texts of one document are one pointer, so 100,000 entries do not
 * keep 100,000 copies of "requests". Each carries a mark by which its user can tell in
 * one step whether a key was seen before in the same mapping.
 */
#ifndef CODEC_INTERN_H
#define CODEC_INTERN_H

#include "base/arena.h"

#include <stdint.h>

struct interned {
    uint32_t hash, len;
    uint32_t seen_in, seen_at; /* free for the user; 0 at first */
    char text[];
};

struct interns {
    struct arena *arena; /* where texts go */
    struct interned **slots;
    size_t n_slots, len;
    uint64_t seed;
};

struct interned *intern(struct interns *interns, const char *text, size_t len);

/* The record of a text that came from intern(). */
static inline struct interned *interned_of(const char *text) {
    return (struct interned *)(uintptr_t)(text - offsetof(struct interned, text));
}

void interns_release(struct interns *interns); /* the texts stay in the arena */

#endif
