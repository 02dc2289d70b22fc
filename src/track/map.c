/* SPDX-License-Identifier: Apache-2.0 */
#include "track/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static uint64_t hash_of(const void *key, size_t n) {
    const uint64_t hash = hash_bytes(HASH_INIT, key, n);

    return hash ^ hash >> 29;
}

static struct map_entry *find(const struct map *map, const void *key, size_t n, uint64_t hash) {
    if (map->n_slots == 0)
        return NULL;
    for (size_t i = hash & (map->n_slots - 1); map->slots[i]; i = (i + 1) & (map->n_slots - 1)) {
        struct map_entry *entry = &map->entries.items[map->slots[i] - 1];

        if (entry->key && entry->hash == hash && entry->n == n && memcmp(entry->key, key, n) == 0)
            return entry;
    }
    return NULL;
}

static void insert(struct map *map, size_t number) {
    size_t i = map->entries.items[number].hash & (map->n_slots - 1);

    while (map->slots[i])
        i = (i + 1) & (map->n_slots - 1);
    map->slots[i] = (uint32_t)number + 1;
}

/* Room for one more: removed entries go, and at least half of the slots are free. */
static void make_room(struct map *map) {
    size_t kept = 0;

    if (map->entries.len < map->n_slots / 2)
        return;
    for (size_t i = 0; i < map->entries.len; i++)
        if (map->entries.items[i].key)
            map->entries.items[kept++] = map->entries.items[i];
    map->entries.len = kept;
    map->n_slots = 16;
    while (map->n_slots < 4 * (kept + 1))
        map->n_slots *= 2;
    free(map->slots);
    map->slots = calloc(map->n_slots, sizeof *map->slots);
    if (!map->slots)
        abort();
    for (size_t i = 0; i < kept; i++)
        insert(map, i);
}

bool map_get(const struct map *map, const void *key, size_t n, uint64_t *out) {
    const struct map_entry *entry = find(map, key, n, hash_of(key, n));

    if (entry)
        *out = entry->value;
    return entry;
}

void map_put(struct map *map, const void *key, size_t n, uint64_t value) {
    const uint64_t hash = hash_of(key, n);
    struct map_entry *entry = find(map, key, n, hash);

    if (!entry) {
        make_room(map);
        entry = VEC_PUSH(&map->entries);
        *entry = (struct map_entry){ .key = malloc(n + 1), .n = n, .hash = hash };
        if (!entry->key)
            abort();
        memcpy(entry->key, key, n);
        entry->key[n] = '\0';
        insert(map, map->entries.len - 1);
    }
    entry->value = value;
}

void map_remove(struct map *map, const void *key, size_t n) {
    struct map_entry *entry = find(map, key, n, hash_of(key, n));

    if (!entry)
        return;
    free(entry->key);
    entry->key = NULL;
}

void map_release(struct map *map) {
    for (size_t i = 0; i < map->entries.len; i++)
        free(map->entries.items[i].key);
    VEC_RELEASE(&map->entries);
    free(map->slots);
    *map = (struct map){ 0 };
}
