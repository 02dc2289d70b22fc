/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648), as Kubernetes holds bytes in it and HTTP takes passwords. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Blanks and line ends between are passed over, as Go's reader passes them over. `out` has room for
 * n / 4 * 3 + 4 bytes, of which the last becomes NUL. False: it is no base64. */
bool base64_decode(const char *text, size_t n, char *out, size_t *len);

/* `out` has room for (n + 2) / 3 * 4 + 1 bytes. */
void base64_encode(const char *bytes, size_t n, char *out);

#endif
