/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/acks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/hash.h"

enum { ROOM_FIRST = 64 };

/* 0 is a free slot. */
static uint64_t mark_of(const char *name, size_t n) {
    const uint64_t hash = hash_of(name, n);

    return hash ? hash : 1;
}

/* The slot of a hash, or the free one where it belongs. */
static struct ack *slot_of(const struct acks *acks, uint64_t hash) {
    size_t i = hash & (acks->room - 1);

    while (acks->slots[i].hash && acks->slots[i].hash != hash)
        i = (i + 1) & (acks->room - 1);
    return &acks->slots[i];
}

void acks_release(struct acks *acks) {
    free(acks->slots);
    *acks = (struct acks){ 0 };
}

/* At most half of the slots are used. */
static bool make_room(struct acks *acks) {
    struct acks wider = { .n = acks->n, .room = acks->room ? acks->room * 2 : ROOM_FIRST };

    if (acks->n * 2 < acks->room)
        return true;
    if (acks->n >= ACKS_MAX || !(wider.slots = calloc(wider.room, sizeof *wider.slots)))
        return false;
    for (size_t i = 0; i < acks->room; i++)
        if (acks->slots[i].hash)
            *slot_of(&wider, acks->slots[i].hash) = acks->slots[i];
    free(acks->slots);
    *acks = wider;
    return true;
}

void acks_put(struct acks *acks, const char *name, size_t n, uint64_t offset) {
    const uint64_t hash = mark_of(name, n);
    struct ack *slot = acks->room ? slot_of(acks, hash) : NULL;

    if (!slot || !slot->hash) {
        if (!make_room(acks))
            return;
        slot = slot_of(acks, hash);
        acks->n++;
    }
    slot->hash = hash;
    if (slot->offset < offset)
        slot->offset = offset;
}

uint64_t acks_get(const struct acks *acks, const char *name) {
    return acks->room ? slot_of(acks, mark_of(name, strlen(name)))->offset : 0;
}
