/* SPDX-License-Identifier: Apache-2.0 */
#include "model/uuid.h"

#include <string.h>

bool uuid_is_valid(const char *text) {
    return text && strlen(text) == UUID_DIGITS && strspn(text, "0123456789abcdef") == UUID_DIGITS;
}
