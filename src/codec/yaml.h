/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML and JSON text to a tree of nodes. Anchors, aliases and merge keys work; scalars are
 * resolved as PyYAML does (scalar.h); duplicate keys are a warning, and the last one wins.
 *
 * Everything is bounded: bytes, depth, and the number of nodes that a walk over the tree
 * would meet, so that aliases of aliases cannot grow without end.
 */
#ifndef CODEC_YAML_H
#define CODEC_YAML_H

#include "codec/diag.h"

enum {
    YAML_BYTES_MAX = 64 << 20,
    YAML_DEPTH_MAX = 64,
    YAML_NODES_MAX = 8000000,
};

/* Reads one source. Returns 0 and the root, or -1 with errors added to diags. An empty text
 * gives a null node. */
MUST_CHECK int yaml_read(const struct sources *sources, uint16_t source, struct arena *arena,
                         struct diags *diags, struct node *root);

#endif
