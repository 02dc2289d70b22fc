/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of the fields as one page of Markdown: docs/reference.md. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>

#include "cli/pages.h"
#include "cli/prose.h"
#include "spec/catalog.h"

/* What a field takes, apart from what its own row adds. */
static const char *const takes[] = {
    [FIELD_INT] = "whole number",
    [FIELD_AMOUNT] = "number, 0 or more",
    [FIELD_BOOL] = "`true` or `false`",
    [FIELD_OBJECT] = "mapping",
    [FIELD_OBJECTS] = "list of mappings",
    [FIELD_TEXT] = "text",
    [FIELD_TEXTS] = "list of texts",
    [FIELD_CHOICE] = "one of",
    [FIELD_COMMAND] = "text, or list of texts",
    [FIELD_MAP] = "mapping",
    [FIELD_MAPS] = "list of mappings",
    [FIELD_PAIRS] = "list of `[name, value]`",
    [FIELD_REF] = "name or id",
    [FIELD_REFS] = "list of names or ids",
    [FIELD_ANY] = "anything",
};
static_assert(ARRAY_LEN(takes) == FIELD_KIND_COUNT, "every kind is told");

static void put_type(FILE *out, const struct catalog *catalog, const struct field *field) {
    fputs(takes[field->kind], out);
    if (field->kind == FIELD_INT && field->min != INT32_MIN && field->min == field->max)
        fprintf(out, ": %" PRId64, field->min);
    else if (field->kind == FIELD_INT && field->min != INT32_MIN)
        fprintf(out, ", %" PRId64 " to %" PRId64, field->min, field->max);
    if (field->kind == FIELD_CHOICE)
        for (const char *const *choice = field->choices; *choice; choice++)
            fprintf(out, "%s `%s`", choice == field->choices ? "" : ",", *choice);
    if (field->schema) {
        const struct catalog_entry *entry = catalog_find(catalog, field->schema);

        fprintf(out, ": [%s](#%s)", entry->title, entry->id);
    }
    if (field->flags & FIELD_NAME)
        fputs(" of letters, digits, `-` and `_`", out);
    if (field->flags & FIELD_IMAGE)
        fputs(": `[registry[:port]/]name[:tag]`", out);
}

static void put_field(FILE *out, const struct catalog *catalog, const struct field *field) {
    fprintf(out, "| `%s`", field->key);
    if (field->alias)
        fprintf(out, ", `%s`", field->alias);
    fputs(" | ", out);
    put_type(out, catalog, field);
    fputs(" | ", out);
    if (field->flags & FIELD_REQUIRED)
        fputs("required", out);
    else if (field->fallback)
        fprintf(out, "`%s`", field->fallback);
    fputs(" | ", out);
    markdown_prose(out, span_of(field->help));
    if (field->flags & FIELD_WITHOUT_EFFECT)
        fputs("; has no effect", out);
    fputs(" |\n", out);
}

static void put_entry(FILE *out, const struct catalog *catalog, const struct catalog_entry *entry) {
    const struct schema *schema = entry->schema;

    fprintf(out, "\n## %c%s\n\n", toupper((unsigned char)entry->title[0]), entry->title + 1);
    markdown_prose(out, span_of(schema->help));
    if (schema->open)
        fputs(" Other keys are taken as they are.", out);
    fputs("\n\n| field | takes | default | meaning |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < schema->n_fields; i++)
        put_field(out, catalog, &schema->fields[i]);
    if (!schema->removed)
        return;
    fputs("\nFields of other versions of Polyaxon:\n\n", out);
    for (const struct removed_key *key = schema->removed; key->key; key++) {
        fprintf(out, "- `%s`: ", key->key);
        markdown_prose(out, span_of(key->instead));
        fputc('\n', out);
    }
}

void fields_page(FILE *out) {
    struct catalog catalog;

    catalog_fill(&catalog);
    fputs("<!-- Made by 'myelin schema --markdown > docs/reference.md'; edit the rows in "
          "src/spec/schema.c. -->\n"
          "# The polyaxonfile\n\n"
          "Every field that a file may hold. A key without a value is as good as a missing one. "
          "Two spellings of a field\nare listed together; only one of them may be given. "
          "`myelin schema` prints the same for editors.\n\n"
          "Templates (`{{ lr }}`) are rendered with the file's `params` before the fields are "
          "read, so one may stand for any\nvalue in these sections:",
          out);
    for (size_t i = 0, n = 0; i < file_kinds[0].schema->n_fields; i++)
        if (file_kinds[0].schema->fields[i].flags & FIELD_RENDERED)
            fprintf(out, "%s `%s`", n++ ? "," : "", file_kinds[0].schema->fields[i].key);
    fputs(".\n", out);
    for (size_t i = 0; i < catalog.len; i++)
        put_entry(out, &catalog, &catalog.entries[i]);
}
