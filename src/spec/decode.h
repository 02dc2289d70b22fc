/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one decoder: a mapping of the file and a schema make an object. It goes on after a
 * mistake, so that all of a file's are told at once; what could not be decoded counts as
 * not given.
 */
#ifndef SPEC_DECODE_H
#define SPEC_DECODE_H

#include "codec/diag.h"
#include "spec/field.h"

struct decoder {
    struct arena *arena;
    struct diags *diags;
};

/* Fills in a zeroed object. */
void decode_object(struct decoder *decoder, const struct schema *schema, const struct node *map,
                   void *object);

#endif
