/* SPDX-License-Identifier: Apache-2.0 */
/* A map from byte strings to numbers, on the heap. */
#ifndef TRACK_MAP_H
#define TRACK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct map_entry {
    char *key; /* NUL-terminated copy; NULL: removed */
    size_t n;
    uint64_t hash, value;
};

struct map {
    VEC(struct map_entry) entries; /* in the order they were added */
    uint32_t *slots;               /* number of an entry + 1; 0: free */
    size_t n_slots;
};

bool map_get(const struct map *map, const void *key, size_t n, uint64_t *out);
void map_put(struct map *map, const void *key, size_t n, uint64_t value);
void map_remove(struct map *map, const void *key, size_t n);
void map_release(struct map *map);

#endif
