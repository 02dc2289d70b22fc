/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plain scalar means: the rules of YAML 1.1 as PyYAML has them, because files were
 * written against it. `yes` is true, `010` is eight, `1:30` is ninety, and `1e3` is text.
 */
#ifndef CODEC_SCALAR_H
#define CODEC_SCALAR_H

#include "codec/node.h"

/* The value of an unquoted scalar. Text is kept as the pointer given. A whole number that
 * does not fit 64 bits stays text: it prints as it was written, and no field takes it. */
struct node scalar_resolve(const char *text, size_t len, struct place place);

#endif
