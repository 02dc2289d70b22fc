/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema. A value is told by one flat object where that is possible: a keyword such as
 * `minimum` or `pattern` binds only values of its own type, so `type: [integer, string]` with
 * both says "a number in bounds, or a text that is a template". Editors tell a mistake against
 * such an object in one sentence; against an `anyOf` they list every branch.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "spec/catalog.h"

/* What the decoder takes for a number that is written as text, for a name and for an image. */
#define NUMERIC "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
#define NAME    "^[-_a-zA-Z0-9]+$"
#define WORD    "[^: \\t\\n]"
#define IMAGE   "^(" WORD "+|" WORD "*:" WORD "*|" WORD "*:[^:/ \\t\\n]+/" WORD "*:" WORD "*)$"
/* What a template starts with; it may stand anywhere in the text. */
#define TEMPLATE "[{][{%#]"

struct writer {
    struct json *json;
    struct arena arena;
    struct catalog catalog;
};

/* One field, and what its place allows beside its own kind. */
struct place_of_field {
    const struct field *field;
    bool is_rendered; /* a template may stand for the value */
};

/* ---- pieces ---- */

static void put_text(struct writer *w, const char *key, const char *text) {
    json_key(w->json, key);
    json_text(w->json, text);
}

static void put_int(struct writer *w, const char *key, int64_t value) {
    json_key(w->json, key);
    json_int(w->json, value);
}

/* `names` is a list in one text, parted by blanks; a single name is written as no list. */
static void put_types(struct writer *w, const char *names) {
    bool is_list = strchr(names, ' ');

    json_key(w->json, "type");
    if (is_list)
        json_array(w->json);
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        json_text_n(w->json, names, n);
    }
    if (is_list)
        json_end(w->json);
}

static void put_reference(struct writer *w, const struct schema *schema) {
    put_text(w, "$ref",
             arena_printf(&w->arena, "#/definitions/%s", catalog_find(&w->catalog, schema)->id));
}

/* A key without a value says nothing, so null is good wherever a field may be missing. */
static const char *null_type(const struct field *field) {
    return field->flags & FIELD_REQUIRED ? "" : " null";
}

/* ---- the value of a field ---- */

/* How a kind is told in one flat object. */
static const struct shape {
    const char *types;
    const char *item_types; /* of a list's items */
    const char *pattern;    /* of a text; NULL where no text, or any text, is good */
} shapes[FIELD_KIND_COUNT] = {
    [FIELD_INT] = { "integer string", .pattern = NUMERIC },
    [FIELD_AMOUNT] = { "number string", .pattern = NUMERIC },
    [FIELD_BOOL] = { "boolean" },
    [FIELD_OBJECTS] = { "array" },
    [FIELD_TEXT] = { "string" },
    [FIELD_TEXTS] = { "array", .item_types = "string" },
    [FIELD_COMMAND] = { "string array", .item_types = "string" },
    [FIELD_MAP] = { "object" },
    [FIELD_MAPS] = { "array", .item_types = "object" },
    [FIELD_PAIRS] = { "array" },
    [FIELD_REF] = { "integer string", .pattern = "." },
    [FIELD_REFS] = { "array", .item_types = "integer string" },
};

static void put_pattern(struct writer *w, struct place_of_field place, const struct shape *shape,
                        bool takes_text) {
    const char *pattern = place.field->flags & FIELD_NAME    ? NAME
                          : place.field->flags & FIELD_IMAGE ? IMAGE
                                                             : shape->pattern;

    if (pattern && place.is_rendered)
        put_text(w, "pattern", arena_printf(&w->arena, "%s|%s", pattern, TEMPLATE));
    else if (pattern)
        put_text(w, "pattern", pattern);
    else if (place.is_rendered && !takes_text)
        put_text(w, "pattern", TEMPLATE);
}

static void put_bounds(struct writer *w, const struct field *field) {
    bool is_amount = field->kind == FIELD_AMOUNT;

    /* Bounds of 32 bits are the decoder's own: the file's are told by another field. */
    if (is_amount || (field->kind == FIELD_INT && field->min != INT32_MIN))
        put_int(w, "minimum", field->min);
    if (is_amount || (field->kind == FIELD_INT && field->max != INT32_MAX))
        put_int(w, "maximum", is_amount ? AMOUNT_MAX : field->max);
}

static void put_items(struct writer *w, const struct field *field, const struct shape *shape) {
    if (!shape->item_types && field->kind != FIELD_OBJECTS && field->kind != FIELD_PAIRS)
        return;
    json_key(w->json, "items");
    json_object(w->json);
    if (field->kind == FIELD_OBJECTS) {
        put_reference(w, field->schema);
    } else if (field->kind == FIELD_PAIRS) {
        put_types(w, "array");
        put_int(w, "minItems", 2);
        put_int(w, "maxItems", 2);
    } else {
        put_types(w, shape->item_types);
    }
    json_end(w->json);
}

static void put_flat(struct writer *w, struct place_of_field place) {
    const struct shape *shape = &shapes[place.field->kind];
    bool takes_text = strstr(shape->types, "string");
    const char *template = place.is_rendered && !takes_text ? " string" : "";

    put_types(w, arena_printf(&w->arena, "%s%s%s", shape->types, template, null_type(place.field)));
    put_bounds(w, place.field);
    put_items(w, place.field, shape);
    put_pattern(w, place, shape, takes_text);
}

/* A choice or a mapping with fields of its own, or what may stand in its place. */
static void put_branches(struct writer *w, struct place_of_field place) {
    const char *null = null_type(place.field);

    json_key(w->json, "anyOf");
    json_array(w->json);
    json_object(w->json);
    if (place.field->kind == FIELD_OBJECT) {
        put_reference(w, place.field->schema);
    } else {
        json_key(w->json, "enum");
        json_array(w->json);
        for (const char *const *choice = place.field->choices; *choice; choice++)
            json_text(w->json, *choice);
        json_end(w->json);
    }
    json_end(w->json);
    if (place.is_rendered) {
        json_object(w->json);
        put_types(w, arena_printf(&w->arena, "string%s", null));
        put_text(w, "pattern", TEMPLATE);
        json_end(w->json);
    } else if (*null) {
        json_object(w->json);
        put_types(w, "null");
        json_end(w->json);
    }
    json_end(w->json);
}

static void put_default(struct writer *w, const struct field *field) {
    if (!field->fallback)
        return;
    json_key(w->json, "default");
    if (field->kind == FIELD_INT)
        json_int(w->json, strtoll(field->fallback, NULL, 10));
    else if (field->kind == FIELD_BOOL)
        json_bool(w->json, strcmp(field->fallback, "true") == 0);
    else
        json_text(w->json, field->fallback);
}

static void put_field(struct writer *w, const char *key, struct place_of_field place) {
    const struct field *field = place.field;
    bool is_alias = strcmp(key, field->key) != 0;

    json_key(w->json, key);
    json_object(w->json);
    put_text(w, "description",
             is_alias
                 ? arena_printf(&w->arena, "%s (another spelling of `%s`)", field->help, field->key)
                 : field->help);
    /* Editors strike out and explain what has this keyword; other readers pass it over. */
    if (field->flags & FIELD_WITHOUT_EFFECT)
        put_text(w, "deprecationMessage", "has no effect");
    if (field->kind == FIELD_OBJECT || field->kind == FIELD_CHOICE)
        put_branches(w, place);
    else if (field->kind != FIELD_ANY)
        put_flat(w, place);
    put_default(w, field);
    json_end(w->json);
}

/* ---- definitions ---- */

static void put_required(struct writer *w, const struct schema *schema) {
    bool is_first = true;

    for (size_t i = 0; i < schema->n_fields; i++) {
        if (!(schema->fields[i].flags & FIELD_REQUIRED))
            continue;
        if (is_first) {
            json_key(w->json, "required");
            json_array(w->json);
            is_first = false;
        }
        json_text(w->json, schema->fields[i].key);
    }
    if (!is_first)
        json_end(w->json);
}

/* Two spellings of one field at once are refused. */
static void put_exclusions(struct writer *w, const struct schema *schema) {
    bool is_first = true;

    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct field *field = &schema->fields[i];

        if (!field->alias)
            continue;
        if (is_first) {
            json_key(w->json, "allOf");
            json_array(w->json);
            is_first = false;
        }
        json_object(w->json);
        json_key(w->json, "not");
        json_object(w->json);
        json_key(w->json, "required");
        json_array(w->json);
        json_text(w->json, field->key);
        json_text(w->json, field->alias);
        json_end(w->json);
        json_end(w->json);
        json_end(w->json);
    }
    if (!is_first)
        json_end(w->json);
}

static void put_definition(struct writer *w, const struct catalog_entry *entry) {
    const struct schema *schema = entry->schema;

    json_key(w->json, entry->id);
    json_object(w->json);
    put_text(w, "description", schema->help);
    put_types(w, "object");
    json_key(w->json, "properties");
    json_object(w->json);
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct field *field = &schema->fields[i];
        struct place_of_field place = { field,
                                        entry->is_rendered || (field->flags & FIELD_RENDERED) };

        put_field(w, field->key, place);
        if (field->alias)
            put_field(w, field->alias, place);
    }
    json_end(w->json);
    json_key(w->json, "additionalProperties");
    json_bool(w->json, schema->open);
    put_required(w, schema);
    put_exclusions(w, schema);
    json_end(w->json);
}

/* ---- the whole ---- */

static void put_kind(struct writer *w) {
    json_key(w->json, "properties");
    json_object(w->json);
    json_key(w->json, "kind");
    json_object(w->json);
    json_key(w->json, "enum");
    json_array(w->json);
    for (const struct file_kind *kind = file_kinds; kind->name; kind++)
        json_text(w->json, kind->name);
    json_end(w->json);
    json_end(w->json);
    json_end(w->json);
    json_key(w->json, "required");
    json_array(w->json);
    json_text(w->json, "kind");
    json_end(w->json);
}

/* `if` the file is of this kind, `then` its definition holds: editors then show only the mistakes
 * against the kind that the file says it is. */
static void put_rule(struct writer *w, const struct file_kind *kind) {
    json_object(w->json);
    json_key(w->json, "if");
    json_object(w->json);
    json_key(w->json, "properties");
    json_object(w->json);
    json_key(w->json, "kind");
    json_object(w->json);
    put_text(w, "const", kind->name);
    json_end(w->json);
    json_end(w->json);
    json_key(w->json, "required");
    json_array(w->json);
    json_text(w->json, "kind");
    json_end(w->json);
    json_end(w->json);
    json_key(w->json, "then");
    json_object(w->json);
    put_reference(w, kind->schema);
    json_end(w->json);
    json_end(w->json);
}

void schema_write_json(struct json *json) {
    struct writer w = { .json = json };

    catalog_fill(&w.catalog);
    json_object(json);
    put_text(&w, "$schema", "http://json-schema.org/draft-07/schema#");
    put_text(&w, "title", "polyaxonfile");
    put_text(&w, "description",
             "What myelin runs. `myelin check` also finds what the fields "
             "cannot tell one by one.");
    put_types(&w, "object");
    put_kind(&w);
    json_key(json, "allOf");
    json_array(json);
    for (const struct file_kind *kind = file_kinds; kind->name; kind++)
        put_rule(&w, kind);
    json_end(json);
    json_key(json, "definitions");
    json_object(json);
    for (size_t i = 0; i < w.catalog.len; i++)
        put_definition(&w, &w.catalog.entries[i]);
    json_end(json);
    json_end(json);
    arena_release(&w.arena);
}
