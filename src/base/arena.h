/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: memory with one life. A document (a parsed file, a plan) allocates
 * from its arena and is released whole; nothing in it is freed by itself.
 *
 * Memory is zeroed and aligned for any object. What is sized by the outside is
 * bounded before it comes here (a file by its reader's ceiling), so running out
 * of memory aborts.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#include "base/attr.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk; /* the newest; older ones hang behind it */
    size_t allocated;          /* bytes handed out so far, for those who bound work by memory */
};

#define ARENA_INIT                                                                                 \
    { 0 }

void *arena_alloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *bytes, size_t size);

/* A NUL-terminated copy of n bytes of text. */
char *arena_text(struct arena *arena, const char *text, size_t n);
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *arena, const char *fmt, va_list args) PRINTF_LIKE(2, 0);

#define ARENA_NEW(arena, type)      ((type *)arena_alloc(arena, sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_alloc(arena, sizeof(type) * (n)))

void arena_release(struct arena *arena);

#endif
