/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/catalog.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "spec/schema.h"

const struct file_kind file_kinds[] = {
    { "experiment", &schema_experiment },
    { "job", &schema_job },
    { NULL, NULL },
};

const struct catalog_entry *catalog_find(const struct catalog *catalog,
                                         const struct schema *schema) {
    for (size_t i = 0; i < catalog->len; i++)
        if (catalog->entries[i].schema == schema)
            return &catalog->entries[i];
    return NULL;
}

static const char *without_article(const char *name) {
    static const char *const articles[] = { "a ", "an ", "the " };

    for (size_t i = 0; i < ARRAY_LEN(articles); i++)
        if (strncmp(name, articles[i], strlen(articles[i])) == 0)
            return name + strlen(articles[i]);
    return name;
}

static struct catalog_entry *entry_of(struct catalog *catalog, const struct schema *schema) {
    struct catalog_entry *entry = catalog->entries;

    for (; entry < catalog->entries + catalog->len; entry++)
        if (entry->schema == schema)
            return entry;
    assert(catalog->len < CATALOG_MAX);
    catalog->len++;
    entry->schema = schema;
    snprintf(entry->title, sizeof entry->title, "%s", without_article(schema->name));
    memcpy(entry->id, entry->title, sizeof entry->id);
    for (char *p = entry->id; (p = strchr(p, ' '));)
        *p = '-';
    for (const struct catalog_entry *other = catalog->entries; other < entry; other++)
        assert(strcmp(other->title, entry->title) != 0);
    return entry;
}

/* Schemas nest a few levels deep and never in a circle: the rows are constants. */
static void visit(struct catalog *catalog, const struct schema *schema, bool is_rendered) {
    struct catalog_entry *entry = entry_of(catalog, schema);

    entry->is_rendered |= is_rendered;
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct field *field = &schema->fields[i];

        if (field->schema)
            visit(catalog, field->schema, is_rendered || (field->flags & FIELD_RENDERED));
    }
}

void catalog_fill(struct catalog *catalog) {
    *catalog = (struct catalog){ .len = 0 };
    for (const struct file_kind *kind = file_kinds; kind->name; kind++)
        visit(catalog, kind->schema, false);
}
