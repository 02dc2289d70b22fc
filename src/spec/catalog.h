/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog: every schema that a polyaxonfile can reach, once, in the order in which a
 * reader meets them. What is made from the tables of fields (the JSON Schema for editors,
 * docs/reference.md) walks the catalog, so a new section appears in all of them by itself.
 */
#ifndef SPEC_CATALOG_H
#define SPEC_CATALOG_H

#include "codec/json.h"
#include "spec/field.h"

enum { CATALOG_MAX = 48, CATALOG_TITLE_MAX = 64 };

/* The kinds of files, in the order of the documentation; ended by a row without a name. */
struct file_kind {
    const char *name; /* as `kind` has it */
    const struct schema *schema;
};
extern const struct file_kind file_kinds[];

struct catalog {
    struct catalog_entry {
        const struct schema *schema;
        char title[CATALOG_TITLE_MAX]; /* the schema's name without its article; no title twice */
        char id[CATALOG_TITLE_MAX];    /* the title with `-` for blanks: for links */
        bool is_rendered;              /* templates may stand in the place of values */
    } entries[CATALOG_MAX];
    size_t len;
};

void catalog_fill(struct catalog *catalog);
const struct catalog_entry *catalog_find(const struct catalog *catalog,
                                         const struct schema *schema);

/* Writes the catalog as a JSON Schema, of draft 7: the newest that all editors read alike. What
 * one field cannot tell alone (an index beyond n_workers, requests over limits) it does not hold.
 */
void schema_write_json(struct json *json);

#endif
