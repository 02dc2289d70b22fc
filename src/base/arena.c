/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t used, size;
    _Alignas(ALIGNMENT) char bytes[];
};

static struct arena_chunk *grow(struct arena *arena, size_t need) {
    size_t size = arena->chunk ? arena->chunk->size * 2 : FIRST_CHUNK;
    struct arena_chunk *chunk;

    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < need)
        size = need;
    chunk = calloc(1, sizeof *chunk + size);
    if (!chunk)
        abort();
    chunk->size = size;
    chunk->older = arena->chunk;
    arena->chunk = chunk;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t size) {
    struct arena_chunk *chunk = arena->chunk;
    void *place;

    assert(size <= SIZE_MAX / 2);
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!chunk || chunk->size - chunk->used < size)
        chunk = grow(arena, size);
    place = chunk->bytes + chunk->used;
    chunk->used += size;
    arena->allocated += size;
    return place;
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size) {
    void *copy = arena_alloc(arena, size);

    if (size)
        memcpy(copy, bytes, size);
    return copy;
}

char *arena_text(struct arena *arena, const char *text, size_t n) {
    char *copy = arena_alloc(arena, n + 1);

    if (n)
        memcpy(copy, text, n);
    return copy;
}

char *arena_vprintf(struct arena *arena, const char *fmt, va_list args) {
    va_list again;
    char *text;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    assert(n >= 0); /* only a bad format string can do this */
    text = arena_alloc(arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *fmt, ...) {
    va_list args;
    char *text;

    va_start(args, fmt);
    text = arena_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}

void arena_release(struct arena *arena) {
    for (struct arena_chunk *chunk = arena->chunk, *older; chunk; chunk = older) {
        older = chunk->older;
        free(chunk);
    }
    *arena = (struct arena)ARENA_INIT;
}
