/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, the same everywhere: shortest, and reading back as the same value. */
#ifndef CODEC_NUMBER_H
#define CODEC_NUMBER_H

#include <stddef.h>

enum { NUMBER_TEXT_MAX = 32 };

/* As Python's repr() prints a float: 0.01, 1.0, 1e-05, 1e+16, inf, nan. Returns the length. */
size_t number_format(double value, char out[NUMBER_TEXT_MAX]);

#endif
