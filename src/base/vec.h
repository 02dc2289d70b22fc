/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array on the heap, for what is gathered before its size is known:
 *
 *   VEC(struct node) found = { 0 };
 *   *VEC_PUSH(&found) = node;
 *   ... found.items[i], found.len ...
 *   VEC_RELEASE(&found);
 *
 * VEC_PUSH gives the place of a new, zeroed item; it is valid until the next push.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stddef.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t len, capacity;                                                                      \
    }

/* clang-format off */
#define VEC_PUSH(vec) \
    (vec_reserve((void **)&(vec)->items, &(vec)->capacity, (vec)->len, sizeof *(vec)->items), \
     &(vec)->items[(vec)->len++])
#define VEC_RELEASE(vec) (vec_free((vec)->items), (vec)->items = NULL, (vec)->len = (vec)->capacity = 0)
/* clang-format on */

void vec_reserve(void **items, size_t *capacity, size_t len, size_t item_size);
void vec_free(void *items);

#endif
