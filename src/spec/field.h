/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields: the polyaxonfile's schema as data.
 *
 * Each row says a key's name, type, bounds, default and meaning. One decoder (decode.h)
 * walks the rows; "did you mean", `myelin schema` and docs/reference.md come from the same
 * rows. Adding a setting is adding a row in schema.c and a member in spec.h.
 *
 * Every decoded value keeps the member of the file it came from (`at`), so that whoever
 * finds it wrong later can point at it. `at` is NULL where the file says nothing; a key
 * without a value (`environment:`) says nothing.
 */
#ifndef SPEC_FIELD_H
#define SPEC_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "codec/node.h"
#include "model/resources.h"

struct field_int {
    int64_t value;
    const struct member *at;
};
struct field_amount {
    milli value;
    const struct member *at;
};
struct field_bool {
    bool value;
    const struct member *at;
};
/* A value that is kept as it stands in the file: `at->value`, of a kind that the row asks for. */
struct field_node {
    const struct member *at;
};
struct field_object {
    void *object; /* of the row's schema; NULL where the file says nothing */
    const struct member *at;
};
struct field_objects {
    void *items; /* `count` objects of the row's schema, one behind the other */
    uint32_t count;
    const struct member *at;
};

/* The text of a field that holds one, or NULL where the file says nothing. */
static inline const char *field_text(struct field_node field) {
    return field.at ? field.at->value.text : NULL;
}

enum field_kind {
    FIELD_INT,     /* field_int: a whole number from min to max */
    FIELD_AMOUNT,  /* field_amount: of a resource, at least 0, kept in thousandths */
    FIELD_BOOL,    /* field_bool */
    FIELD_OBJECT,  /* field_object: a mapping with fields of its own */
    FIELD_OBJECTS, /* field_objects: a list of such mappings */
    /* The others are kept as field_node. */
    FIELD_TEXT,
    FIELD_TEXTS,   /* a list of texts */
    FIELD_CHOICE,  /* one of `choices` */
    FIELD_COMMAND, /* a text, or a list of texts that run one after the other */
    FIELD_MAP,     /* any mapping */
    FIELD_MAPS,    /* a list of mappings */
    FIELD_PAIRS,   /* a list of [name, value] */
    FIELD_REF,     /* an id or a name */
    FIELD_REFS,    /* a list of them */
    FIELD_ANY,     /* any value */
    FIELD_KIND_COUNT,
};

enum { AMOUNT_MAX = 1000000000 }; /* of a resource: a sum over a million tasks stays exact */

enum field_flags {
    FIELD_REQUIRED = 1 << 0,
    FIELD_WITHOUT_EFFECT = 1 << 1, /* accepted for old files, and said to do nothing */
    FIELD_NAME = 1 << 2,           /* text: letters, digits, `-` and `_` only */
    FIELD_IMAGE = 1 << 3,          /* text: a container image */
    FIELD_RENDERED = 1 << 4,       /* a section of the file whose templates are rendered */
};

struct schema;

struct field {
    const char *key;
    const char *alias; /* another spelling, kept for old files; both at once are an error */
    enum field_kind kind;
    unsigned flags;
    size_t offset;
    int64_t min, max;
    const char *const *choices; /* ended by NULL */
    const struct schema *schema;
    const char *fallback; /* what counts when the file says nothing, as text; or NULL */
    const char *help;
};

struct schema {
    const char *name; /* for headings: "environment" */
    const char *help;
    const struct field *fields;
    size_t n_fields;
    size_t size; /* of the object */
    /* Keys that once were fields, with what to do instead; ended by a row without a key. */
    const struct removed_key { const char *key, *instead; } * removed;
    bool open;        /* takes other keys too: they are kept in the object's source mapping */
    size_t at_offset; /* where the object keeps its own `const struct node *`, if has_at */
    bool has_at;
};

#define FIELD(S, member_, ...)                                                                     \
    { .key = #member_, .offset = offsetof(struct S, member_), __VA_ARGS__ }
/* For keys that are no good names in C. */
#define FIELD_AT(S, key_, member_, ...)                                                            \
    { .key = key_, .offset = offsetof(struct S, member_), __VA_ARGS__ }

#endif
