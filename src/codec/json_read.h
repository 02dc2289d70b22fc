/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text (RFC 8259) to a tree of nodes: for what programs wrote. What people wrote is read by
 * yaml.h, which has diagnostics.
 *
 * Strict: no comments, no trailing commas, one value. Of equal keys the last one wins. A whole
 * number beyond 64 bits becomes a float. Text may not hold NUL.
 */
#ifndef CODEC_JSON_READ_H
#define CODEC_JSON_READ_H

#include "base/error.h"
#include "codec/node.h"

enum { JSON_READ_DEPTH_MAX = 64 };

/* Texts are copied to the arena. The error says at which byte it went wrong. */
MUST_CHECK int json_read(const char *text, size_t len, struct arena *arena, struct node *root,
                         struct error *err);

#endif
