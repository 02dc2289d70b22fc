/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/hash.h"

static uint32_t hash_of(const struct interns *interns, const char *text, size_t len) {
    const uint64_t hash = hash_bytes(interns->seed, text, len);

    return (uint32_t)(hash ^ hash >> 32);
}

static void grow(struct interns *interns) {
    size_t n = interns->n_slots ? interns->n_slots * 2 : 256;
    struct interned **slots = calloc(n, sizeof *slots);

    if (!slots)
        abort();
    /* Random bytes of the process: nobody can prepare a file of colliding keys. */
    if (interns->n_slots == 0)
        memcpy(&interns->seed, (const void *)getauxval(AT_RANDOM), sizeof interns->seed);
    for (size_t i = 0; i < interns->n_slots; i++) {
        struct interned *one = interns->slots[i];

        if (!one)
            continue;
        size_t at = one->hash & (n - 1);

        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = one;
    }
    free(interns->slots);
    interns->slots = slots;
    interns->n_slots = n;
}

struct interned *intern(struct interns *interns, const char *text, size_t len) {
    uint32_t hash;
    struct interned *one;
    size_t at;

    if (interns->len * 2 >= interns->n_slots)
        grow(interns);
    hash = hash_of(interns, text, len);
    at = hash & (interns->n_slots - 1);
    while ((one = interns->slots[at])) {
        if (one->hash == hash && one->len == len && memcmp(one->text, text, len) == 0)
            return one;
        at = (at + 1) & (interns->n_slots - 1);
    }
    one = arena_alloc(interns->arena, sizeof *one + len + 1);
    one->hash = hash;
    one->len = (uint32_t)len;
    if (len)
        memcpy(one->text, text, len);
    interns->slots[at] = one;
    interns->len++;
    return one;
}

void interns_release(struct interns *interns) {
    free(interns->slots);
    *interns = (struct interns){ 0 };
}
