/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

void vec_reserve(void **items, size_t *capacity, size_t len, size_t item_size) {
    if (len == *capacity) {
        size_t grown = *capacity ? *capacity * 2 : 8;
        void *moved = reallocarray(*items, grown, item_size);

        if (!moved)
            abort();
        *items = moved;
        *capacity = grown;
    }
    memset((char *)*items + len * item_size, 0, item_size);
}

void vec_free(void *items) {
    free(items);
}
