/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, as strictly as the standard has it: no overlong forms, no surrogates. */
#ifndef CODEC_UTF8_H
#define CODEC_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that starts here, 0 if none does. */
size_t utf8_length(const char *text, size_t n);

/* The code point of a valid character of that length. */
uint32_t utf8_point(const char *text, size_t length);

/* Whether the bytes can become a character when more of them come. */
bool utf8_is_cut(const char *text, size_t n);

/* The offset of the first byte that is no UTF-8, or n. */
size_t utf8_valid_prefix(const char *text, size_t n);

/* Characters of a text. */
size_t utf8_count(const char *text);

/* Characters that a reader does not see but that change what the reader sees: controls (C0, DEL,
 * C1), marks that turn the direction of reading, line and paragraph separators. This is the only
 * list of them: whatever is shown to people or written as JSON or YAML asks here. */
bool utf8_is_hidden(uint32_t point);

/* Columns that a terminal uses for the character: 0 for combining marks, 2 for wide characters
 * such as CJK and emoji. Terminals differ; in doubt it is the greater number, so that a line which
 * is cut to a width never wraps. */
size_t utf8_columns(uint32_t point);

#endif
