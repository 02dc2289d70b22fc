/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, as strictly as the standard has it: no overlong forms, no surrogates. */
#ifndef CODEC_UTF8_H
#define CODEC_UTF8_H

#include <stddef.h>

/* Bytes of the character that starts here, 0 if none does. */
size_t utf8_length(const char *text, size_t n);

/* The offset of the first byte that is no UTF-8, or n. */
size_t utf8_valid_prefix(const char *text, size_t n);

/* Characters of a text. */
size_t utf8_count(const char *text);

#endif
