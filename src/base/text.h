/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that may be absent. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Also where both are NULL. */
static inline bool text_is_same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

#endif
