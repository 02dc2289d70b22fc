/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Params: the values that templates in the file can use.
 *
 * They come from the file and, over it, from `-P name=value`. They are rendered against
 * each other first, and a text that spells a Python literal becomes that value ('1' is 1,
 * '[1, 2]' a list), as the original had it. Declared inputs and outputs give them types.
 */
#ifndef SPEC_PARAMS_H
#define SPEC_PARAMS_H

#include "spec/decode.h"
#include "spec/schema.h"

/* Reads one `name=value` text into a member. */
MUST_CHECK int param_read(struct decoder *decoder, const struct sources *sources, uint16_t source,
                          struct member *out);

/* Renders a map of params against itself. Adds errors; what cannot be rendered stays as it is. */
struct node params_resolve(struct decoder *decoder, const struct node *params);

/* Whether a text is a reference to another run's outputs: {{ jobs.1.outputs.x }}. */
bool param_is_reference(const char *text);

/* Warns of each of the `given` params, those of `-P`, that the file neither has in its own params
 * nor uses in a template: it is probably mistyped. Tasks can still read it from their environment,
 * so it is no error. */
void params_warn_unknown(struct decoder *decoder, const struct node *root, const struct node *own,
                         const struct node *given);

/* Holds params against the declared inputs and outputs: types, defaults, flags. Returns the
 * names that templates see. */
struct node params_check(struct decoder *decoder, const struct node *params,
                         const struct field_objects *inputs, const struct field_objects *outputs);

#endif
