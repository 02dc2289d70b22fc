/* SPDX-License-Identifier: Apache-2.0 */
/* What libfyaml found wrong, in words that help the writer of the file. */
#ifndef CODEC_YAML_ERROR_H
#define CODEC_YAML_ERROR_H

#include "codec/diag.h"

struct fy_diag;

void yaml_error_explain(struct fy_diag *found, const struct sources *sources, uint16_t source,
                        struct diags *diags);

#endif
