/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes to YAML, in block style, as people read it and every reader takes it.
 *
 * Law: what is written reads back, by codec/yaml.h, as an equal node. Readers disagree on what a
 * plain scalar means (`yes`, `1e3`, `0o7`, `2001-01-01`), so only what none of them could take for
 * anything but text stands without quotes. Keys keep their order. Bytes that are no UTF-8 get
 * U+FFFD in their place, since YAML cannot hold them.
 */
#ifndef CODEC_YAML_WRITE_H
#define CODEC_YAML_WRITE_H

#include "base/buf.h"
#include "codec/node.h"

/* Appends one document without the line `---`, ended by a newline. Fails with ERROR_EXHAUSTED when
 * the buffer's ceiling is too low; what was appended before that stays. */
MUST_CHECK int yaml_write(const struct node *node, struct buf *out, struct error *err);

#endif
