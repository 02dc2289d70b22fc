/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the sections that describe a topology, in whatever spelling, to the roles of a spec.
 *
 * A file may use several sections and spellings at once (the documents of the time mix them
 * inside one section). It is an error only when one attribute of one role is given twice,
 * or when two frameworks are named.
 */
#ifndef SPEC_TOPOLOGY_H
#define SPEC_TOPOLOGY_H

#include "spec/decode.h"
#include "spec/schema.h"

/* Sets framework, backend, has_master, master and roles of the spec. */
void topology_build(struct decoder *decoder, const struct file_fields *file, struct spec *spec);

/* Resources as amounts; requests over limits and parts of a GPU are errors. */
struct resources resources_build(struct decoder *decoder, const struct field_object *resources);

#endif
