/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/decode.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec/nearest.h"
#include "template/template.h"

enum { KNOWN_KEYS_MAX = 64 };

#define TARGET(type, object, field) ((type *)(void *)((char *)(object) + (field)->offset))

/* What came out of a template may spell a number, a list or a mapping: it becomes that where
 * the field wants no text. */
static struct node unspell(struct decoder *decoder, const struct node *node) {
    struct node value;

    if (node->kind == NODE_TEXT && (node->flags & NODE_RENDERED) &&
        literal_read(decoder->arena, node->text, node->count, node_place(node), &value) == 0)
        return value;
    return *node;
}

static struct diag *wrong_kind(struct decoder *decoder, const struct field *field,
                               const struct node *node, const char *wanted) {
    return diag_error(decoder->diags, node_place(node), "`%s` takes %s, not %s", field->key, wanted,
                      node_kind_name(node));
}

/* ---- texts ---- */

static bool is_name(const char *text) {
    if (!*text)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '-' && *text != '_')
            return false;
    return true;
}

/* No blanks; at most registry:port/name:tag. */
static bool is_image(const char *text) {
    const char *first = strchr(text, ':'), *second = first ? strchr(first + 1, ':') : NULL;
    const char *slash;

    if (!*text || strpbrk(text, " \t\n"))
        return false;
    if (!second)
        return true;
    slash = memchr(first + 1, '/', (size_t)(second - first - 1));
    return !strchr(second + 1, ':') && slash && slash != first + 1;
}

static bool check_text(struct decoder *decoder, const struct field *field,
                       const struct node *node) {
    if ((field->flags & FIELD_NAME) && !is_name(node->text)) {
        diag_error(decoder->diags, node_place(node),
                   "`%s` may hold only letters, digits, `-` and `_`", field->key);
        return false;
    }
    if ((field->flags & FIELD_IMAGE) && !is_image(node->text)) {
        diag_help(diag_error(decoder->diags, node_place(node), "`%.200s` is not an image name",
                             node->text),
                  "an image is written as [registry[:port]/]name[:tag]");
        return false;
    }
    return true;
}

static bool decode_text(struct decoder *decoder, const struct field *field,
                        const struct member *member, void *object) {
    const struct node *node = &member->value;

    if (node->kind != NODE_TEXT) {
        struct diag *diag = wrong_kind(decoder, field, node, "text");

        if (node->kind < NODE_TEXT)
            diag_help(diag, "put the value in quotes");
        return false;
    }
    if (!check_text(decoder, field, node))
        return false;
    TARGET(struct field_node, object, field)->at = member;
    return true;
}

static bool decode_choice(struct decoder *decoder, const struct field *field,
                          const struct member *member, void *object) {
    const char *text = member->value.text, *near, *list;
    struct diag *diag;
    size_t n = 0;

    if (!decode_text(decoder, field, member, object))
        return false;
    for (; field->choices[n]; n++)
        if (strcmp(field->choices[n], text) == 0)
            return true;
    TARGET(struct field_node, object, field)->at = NULL;
    list = field->choices[0];
    for (size_t i = 1; i < n; i++)
        list = arena_printf(decoder->arena, "%s, %s", list, field->choices[i]);
    diag = diag_error(decoder->diags, node_place(&member->value), "`%s` may not be `%.100s`",
                      field->key, text);
    near = nearest_name(text, field->choices, n);
    if (near)
        diag_help(diag, "did you mean `%s`? The choices are %s", near, list);
    else
        diag_help(diag, "the choices are %s", list);
    return false;
}

/* ---- numbers ---- */

static bool read_number(const struct node *node, double *out) {
    char *end;

    if (node->kind == NODE_INT) {
        *out = (double)node->integer;
        return true;
    }
    if (node->kind == NODE_FLOAT) {
        *out = node->number;
        return true;
    }
    if (node->kind != NODE_TEXT || node->count == 0 || isspace((unsigned char)node->text[0]) ||
        node->text[strspn(node->text, "0123456789+-.eE")] != '\0')
        return false;
    errno = 0;
    *out = strtod(node->text, &end);
    return *end == '\0' && end != node->text;
}

static bool decode_int(struct decoder *decoder, const struct field *field,
                       const struct member *member, void *object) {
    struct field_int *out = TARGET(struct field_int, object, field);
    struct node value = unspell(decoder, &member->value);
    double number;

    if (!read_number(&value, &number) || number != floor(number)) {
        if (value.kind == NODE_TEXT || value.kind == NODE_FLOAT)
            diag_error(decoder->diags, node_place(&value), "`%s` takes a whole number", field->key);
        else
            wrong_kind(decoder, field, &value, "a whole number");
        return false;
    }
    if (!(number >= (double)field->min && number <= (double)field->max)) {
        struct diag *diag =
            diag_error(decoder->diags, node_place(&value), "`%s` is out of range", field->key);

        if (field->min == field->max)
            diag_help(diag, "it has to be %" PRId64, field->min);
        else
            diag_help(diag, "it may be %" PRId64 " to %" PRId64, field->min, field->max);
        return false;
    }
    *out = (struct field_int){ (int64_t)number, member };
    return true;
}

/* Amounts with a unit, as Kubernetes writes them: what the plain number would be. */
static bool plain_amount(const char *key, const char *text, double *out) {
    static const struct {
        const char *unit;
        double mebibytes;
    } units[] = { { "Ki", 1.0 / 1024 },
                  { "Mi", 1 },
                  { "Gi", 1024 },
                  { "Ti", 1024 * 1024 },
                  { "M", 1e6 / 1048576 },
                  { "G", 1e9 / 1048576 },
                  { "MB", 1e6 / 1048576 },
                  { "GB", 1e9 / 1048576 },
                  { "MiB", 1 },
                  { "GiB", 1024 } };
    char *end;
    double number = strtod(text, &end);

    if (end == text || !(number >= 0 && number < AMOUNT_MAX))
        return false;
    while (*end == ' ')
        end++;
    if (strcmp(key, "cpu") == 0 && strcmp(end, "m") == 0) {
        *out = number / 1000;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(units) && strcmp(key, "memory") == 0; i++)
        if (strcmp(end, units[i].unit) == 0) {
            *out = number * units[i].mebibytes;
            return true;
        }
    return false;
}

static void not_an_amount(struct decoder *decoder, const struct field *field,
                          const struct node *value) {
    double number;
    struct diag *diag;

    if (value->kind != NODE_TEXT) {
        wrong_kind(decoder, field, value, "a number");
        return;
    }
    diag = diag_error(decoder->diags, node_place(value), "`%.100s` is not a number", value->text);
    /* The unit depends on the resource, which the row does not know: try both. */
    if (plain_amount("memory", value->text, &number))
        diag_help(diag, "memory is given in MiB, without a unit: write %.10g", number);
    else if (plain_amount("cpu", value->text, &number))
        diag_help(diag, "CPU is given in cores, without a unit: write %.10g", number);
}

static bool decode_amount(struct decoder *decoder, const struct field *field,
                          const struct member *member, void *object) {
    struct field_amount *out = TARGET(struct field_amount, object, field);
    struct node value = unspell(decoder, &member->value);
    double number;

    if (!read_number(&value, &number) || isnan(number)) {
        not_an_amount(decoder, field, &value);
        return false;
    }
    if (number < 0) {
        diag_error(decoder->diags, node_place(&value), "`%s` may not be negative", field->key);
        return false;
    }
    if (number > AMOUNT_MAX) {
        diag_error(decoder->diags, node_place(&value), "`%s` may be at most %d", field->key,
                   AMOUNT_MAX);
        return false;
    }
    *out = (struct field_amount){ llround(number * 1000), member };
    return true;
}

static bool decode_bool(struct decoder *decoder, const struct field *field,
                        const struct member *member, void *object) {
    struct field_bool *out = TARGET(struct field_bool, object, field);
    struct node value = unspell(decoder, &member->value);

    if (value.kind != NODE_BOOL) {
        wrong_kind(decoder, field, &value, "true or false");
        return false;
    }
    *out = (struct field_bool){ value.truth, member };
    return true;
}

/* ---- values that are handed on ---- */

static bool keep(struct decoder *decoder, const struct field *field, const struct member *member,
                 const struct node *value, void *object) {
    struct member *kept;

    /* A rendered text that spells the value is replaced by what it spells. */
    if (value->kind == member->value.kind) {
        TARGET(struct field_node, object, field)->at = member;
        return true;
    }
    kept = arena_copy(decoder->arena, member, sizeof *member);
    kept->value = *value;
    TARGET(struct field_node, object, field)->at = kept;
    return true;
}

static bool each_is(const struct node *list, bool (*good)(const struct node *), uint32_t *bad) {
    for (*bad = 0; *bad < list->count; ++*bad)
        if (!good(&list->items[*bad]))
            return false;
    return true;
}

static bool is_map(const struct node *node) {
    return node->kind == NODE_MAP;
}
static bool is_text(const struct node *node) {
    return node->kind == NODE_TEXT;
}
static bool is_pair(const struct node *node) {
    return node->kind == NODE_LIST && node->count == 2 && node->items[0].kind == NODE_TEXT;
}
static bool is_ref(const struct node *node) {
    return node->kind == NODE_INT || (node->kind == NODE_TEXT && node->count > 0);
}

/* Rows for values that are a mapping, a list of something, or one something. */
static const struct shape {
    enum field_kind kind;
    bool (*item)(const struct node *); /* NULL: no list is wanted */
    bool (*alone)(const struct node *);
    const char *wanted;
} shapes[] = {
    { FIELD_TEXTS, is_text, NULL, "a list of texts" },
    { FIELD_COMMAND, is_text, is_text, "a text or a list of texts" },
    { FIELD_MAP, NULL, is_map, "a mapping" },
    { FIELD_MAPS, is_map, NULL, "a list of mappings" },
    { FIELD_PAIRS, is_pair, NULL, "a list of [name, value]" },
    { FIELD_REFS, is_ref, NULL, "a list of names or ids" },
    { FIELD_REF, NULL, is_ref, "a name or an id" },
};

static bool decode_shape(struct decoder *decoder, const struct field *field,
                         const struct member *member, void *object) {
    const struct shape *shape = shapes;
    struct node value = member->value;
    uint32_t bad;

    while (shape->kind != field->kind)
        shape++;
    if (shape->alone && shape->alone(&value))
        return keep(decoder, field, member, &value, object);
    value = unspell(decoder, &value);
    if (shape->alone && shape->alone(&value))
        return keep(decoder, field, member, &value, object);
    if (!shape->item || value.kind != NODE_LIST) {
        struct diag *diag = wrong_kind(decoder, field, &value, shape->wanted);

        if (shape->item && value.kind == NODE_TEXT)
            diag_help(diag, "write `%s: [%.100s]`", field->key, value.text);
        else if (shape->alone == is_text && value.kind < NODE_TEXT)
            diag_help(diag, "put the value in quotes");
        return false;
    }
    if (!each_is(&value, shape->item, &bad)) {
        diag_error(decoder->diags, node_place(&value.items[bad]), "`%s` takes %s", field->key,
                   shape->wanted);
        return false;
    }
    return keep(decoder, field, member, &value, object);
}

static bool decode_any(struct decoder *decoder, const struct field *field,
                       const struct member *member, void *object) {
    return keep(decoder, field, member, &member->value, object);
}

/* ---- objects ---- */

/* As unspell(), for values whose parts are pointed at later. */
static const struct node *unspelt(struct decoder *decoder, const struct node *node) {
    struct node value = unspell(decoder, node);

    return value.kind == node->kind ? node : arena_copy(decoder->arena, &value, sizeof value);
}

static bool decode_nested(struct decoder *decoder, const struct field *field,
                          const struct member *member, void *object) {
    struct field_object *out = TARGET(struct field_object, object, field);
    const struct node *map = unspelt(decoder, &member->value);

    if (map->kind != NODE_MAP) {
        wrong_kind(decoder, field, map, "a mapping");
        return false;
    }
    out->object = arena_alloc(decoder->arena, field->schema->size);
    out->at = member;
    decode_object(decoder, field->schema, map, out->object);
    return true;
}

static bool decode_objects(struct decoder *decoder, const struct field *field,
                           const struct member *member, void *object) {
    struct field_objects *out = TARGET(struct field_objects, object, field);
    const struct node *list = unspelt(decoder, &member->value);

    if (list->kind != NODE_LIST) {
        wrong_kind(decoder, field, list, "a list of mappings");
        return false;
    }
    out->items = arena_alloc(decoder->arena, field->schema->size * list->count);
    out->at = member;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].kind != NODE_MAP) {
            wrong_kind(decoder, field, &list->items[i], "a list of mappings");
            continue;
        }
        decode_object(decoder, field->schema, &list->items[i],
                      (char *)out->items + field->schema->size * out->count++);
    }
    return true;
}

static bool (*const decoders[])(struct decoder *, const struct field *, const struct member *,
                                void *) = {
    [FIELD_INT] = decode_int,         [FIELD_AMOUNT] = decode_amount,
    [FIELD_BOOL] = decode_bool,       [FIELD_OBJECT] = decode_nested,
    [FIELD_OBJECTS] = decode_objects, [FIELD_TEXT] = decode_text,
    [FIELD_TEXTS] = decode_shape,     [FIELD_CHOICE] = decode_choice,
    [FIELD_COMMAND] = decode_shape,   [FIELD_MAP] = decode_shape,
    [FIELD_MAPS] = decode_shape,      [FIELD_PAIRS] = decode_shape,
    [FIELD_REF] = decode_shape,       [FIELD_REFS] = decode_shape,
    [FIELD_ANY] = decode_any,
};
static_assert(ARRAY_LEN(decoders) == FIELD_KIND_COUNT, "every kind has a decoder");

static const struct field *find_field(const struct schema *schema, const char *key) {
    for (size_t i = 0; i < schema->n_fields; i++) {
        const struct field *field = &schema->fields[i];

        if (strcmp(field->key, key) == 0 || (field->alias && strcmp(field->alias, key) == 0))
            return field;
    }
    return NULL;
}

static void unknown_key(struct decoder *decoder, const struct schema *schema,
                        const struct member *member) {
    const char *names[KNOWN_KEYS_MAX], *near;
    size_t n = 0;
    struct diag *diag = diag_error(decoder->diags, member_place(member), "%s has no field `%.100s`",
                                   schema->name, member->key);

    for (const struct removed_key *key = schema->removed; key && key->key; key++)
        if (strcmp(key->key, member->key) == 0) {
            diag_help(diag, "%s", key->instead);
            return;
        }
    for (; n < schema->n_fields && n < KNOWN_KEYS_MAX; n++)
        names[n] = schema->fields[n].key;
    near = nearest_name(member->key, names, n);
    if (near)
        diag_help(diag, "did you mean `%s`?", near);
}

/* By both of its spellings, or because the keys of a mapping came out of templates. */
static void given_twice(struct decoder *decoder, const struct field *field,
                        const struct member *first, const struct member *second) {
    struct diag *diag;

    if (strcmp(first->key, second->key) == 0)
        diag = diag_error(decoder->diags, member_place(second), "`%s` is given twice", field->key);
    else
        diag = diag_error(decoder->diags, member_place(second),
                          "`%s` and `%s` are two spellings of one field", field->key, field->alias);
    diag_note(diag, member_place(first), "it is given here already");
}

void decode_object(struct decoder *decoder, const struct schema *schema, const struct node *map,
                   void *object) {
    const struct member *seen[KNOWN_KEYS_MAX] = { 0 };

    assert(schema->n_fields <= KNOWN_KEYS_MAX && map->kind == NODE_MAP);
    if (schema->has_at)
        *(const struct node **)(void *)((char *)object + schema->at_offset) = map;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct member *member = &map->members[i];
        const struct field *field = find_field(schema, member->key);

        if (!field) {
            if (!schema->open)
                unknown_key(decoder, schema, member);
            continue;
        }
        if (seen[field - schema->fields]) {
            given_twice(decoder, field, seen[field - schema->fields], member);
            continue;
        }
        seen[field - schema->fields] = member;
        if (member->value.kind == NODE_NULL)
            continue;
        if (field->flags & FIELD_WITHOUT_EFFECT)
            diag_warning(decoder->diags, member_place(member), "`%s` has no effect", member->key);
        decoders[field->kind](decoder, field, member, object);
    }
    for (size_t i = 0; i < schema->n_fields; i++)
        if ((schema->fields[i].flags & FIELD_REQUIRED) &&
            (!seen[i] || seen[i]->value.kind == NODE_NULL))
            diag_error(decoder->diags, (struct place){ map->offset, 0, map->source },
                       "%s needs the field `%s`", schema->name, schema->fields[i].key);
}
