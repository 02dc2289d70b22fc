/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/params.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "codec/nearest.h"
#include "spec/render.h"
#include "template/template.h"

enum { PASSES_MAX = 32 }; /* how far params may refer to params that refer to params */

static bool is_identifier(const char *text, size_t n) {
    if (n == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-' && text[i] != '.')
            return false;
    return true;
}

int param_read(struct decoder *decoder, const struct sources *sources, uint16_t number,
               struct member *out) {
    const struct source *source = &sources->list.items[number];
    const char *equals = memchr(source->text, '=', source->len);
    size_t name_len = equals ? (size_t)(equals - source->text) : source->len;
    size_t value_len = equals ? source->len - name_len - 1 : 0;
    struct place place = { (uint32_t)name_len + 1, (uint32_t)value_len, number };

    if (!equals || !is_identifier(source->text, name_len)) {
        diag_help(diag_error(decoder->diags, (struct place){ 0, (uint32_t)name_len, number },
                             "a param is given as name=value"),
                  "for example -P lr=0.1");
        return -1;
    }
    *out = (struct member){
        .key = arena_text(decoder->arena, source->text, name_len),
        .key_length = (uint16_t)(name_len < UINT16_MAX ? name_len : UINT16_MAX),
        .key_source = number,
        .value = node_text(arena_text(decoder->arena, equals + 1, value_len), value_len, place),
    };
    return 0;
}

/* ---- against each other ---- */

bool param_is_reference(const char *text) {
    static const char *const kinds[] = { "jobs.", "experiments.", "ops." };
    const char *p = text + strspn(text, " \t\n");

    if (strncmp(p, "{{", 2) != 0)
        return false;
    p += 2 + strspn(p + 2, " ");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *name = p + strlen(kinds[i]);

        if (strncmp(p, kinds[i], strlen(kinds[i])) != 0)
            continue;
        name += strcspn(name, ".} ");
        return strncmp(name, ".outputs.", 9) == 0 && strstr(name, "}}") &&
               strspn(strstr(name, "}}") + 2, " \n\t") == strlen(strstr(name, "}}") + 2);
    }
    return false;
}

/* A text that spells a literal becomes the value it spells. Texts inside lists and maps too; parts
 * without one are shared, not copied. */
static struct node unspell(struct arena *arena, const struct node *in, bool *changed) {
    struct node out = *in, value;
    bool part;

    if (in->kind == NODE_TEXT && !param_is_reference(in->text) &&
        literal_read(arena, in->text, in->count, node_place(in), &value) == 0) {
        *changed = true;
        return value;
    }
    for (uint32_t i = 0; in->kind == NODE_LIST && i < in->count; i++) {
        part = false;
        value = unspell(arena, &in->items[i], &part);
        if (part && out.items == in->items)
            out.items = arena_copy(arena, in->items, in->count * sizeof *in->items);
        if (part)
            out.items[i] = value;
        *changed |= part;
    }
    for (uint32_t i = 0; in->kind == NODE_MAP && i < in->count; i++) {
        part = false;
        value = unspell(arena, &in->members[i].value, &part);
        if (part && out.members == in->members)
            out.members = arena_copy(arena, in->members, in->count * sizeof *in->members);
        if (part)
            out.members[i].value = value;
        *changed |= part;
    }
    return out;
}

/* Renders the params once over what they spell so far. The names of a pass are dropped with it, so
 * that many passes over many params need the memory of one. */
static struct node render_pass(struct renderer *renderer, const struct node *params,
                               bool *changed) {
    struct arena scratch = ARENA_INIT;
    bool spelt = false;
    struct node names = unspell(&scratch, params, &spelt);
    struct node next;

    renderer->names = &names;
    next = render_tree(renderer, params, changed);
    arena_release(&scratch);
    return next;
}

struct node params_resolve(struct decoder *decoder, const struct node *params) {
    struct node now = *params;
    struct renderer renderer = { .decoder = decoder, .keep = param_is_reference };

    for (int pass = 0; pass < PASSES_MAX; pass++) {
        bool changed = false, spelt = false;
        size_t errors = decoder->diags->errors;
        struct node next = render_pass(&renderer, &now, &changed);

        if (!changed || decoder->diags->errors > errors)
            return unspell(decoder->arena, &now, &spelt);
        now = next;
    }
    diag_error(decoder->diags, (struct place){ params->offset, 0, params->source },
               "params refer to each other in a circle");
    return *params;
}

/* ---- inputs and outputs ---- */

static bool is_path(const struct node *value) {
    return value->kind == NODE_TEXT;
}
static bool is_int(const struct node *value) {
    return value->kind == NODE_INT;
}
static bool is_float(const struct node *value) {
    return value->kind == NODE_INT || value->kind == NODE_FLOAT;
}
static bool is_bool(const struct node *value) {
    return value->kind == NODE_BOOL;
}
static bool is_list(const struct node *value) {
    return value->kind == NODE_LIST;
}
static bool is_dict(const struct node *value) {
    return value->kind == NODE_MAP;
}
static bool is_dict_of_dicts(const struct node *value) {
    for (uint32_t i = 0; value->kind == NODE_MAP && i < value->count; i++)
        if (value->members[i].value.kind != NODE_MAP)
            return false;
    return value->kind == NODE_MAP;
}

/* Types of the original; what is not listed takes any text. */
static const struct {
    const char *type;
    bool (*takes)(const struct node *);
    const char *wanted;
} types[] = {
    { "int", is_int, "a whole number" },
    { "float", is_float, "a number" },
    { "metric", is_float, "a number" },
    { "bool", is_bool, "True or False" },
    { "list", is_list, "a list" },
    { "dict", is_dict, "a mapping" },
    { "metadata", is_dict, "a mapping" },
    { "dict_of_dicts", is_dict_of_dicts, "a mapping of mappings" },
};

static void check_type(struct decoder *decoder, const struct io_fields *io,
                       const struct node *value) {
    const char *type = field_text(io->type), *wanted = "text";
    bool (*takes)(const struct node *) = is_path;
    const struct node *items = value;
    uint32_t n = 1;

    if (!type || (value->kind == NODE_TEXT && param_is_reference(value->text)))
        return;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].type, type) == 0) {
            takes = types[i].takes;
            wanted = types[i].wanted;
        }
    if (io->is_list.value) {
        if (value->kind != NODE_LIST) {
            diag_error(decoder->diags, node_place(value), "`%s` takes a list",
                       field_text(io->name));
            return;
        }
        items = value->items;
        n = value->count;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!takes(&items[i])) {
            diag_note(diag_error(decoder->diags, node_place(&items[i]), "`%s` takes %s, not %s",
                                 field_text(io->name), wanted, node_kind_name(&items[i])),
                      member_place(io->type.at), "its type is `%s`", type);
            return;
        }
}

static void check_options(struct decoder *decoder, const struct io_fields *io,
                          const struct node *value) {
    const struct node *options = io->options.at ? &io->options.at->value : NULL;

    if (!options || options->kind != NODE_LIST)
        return;
    for (uint32_t i = 0; i < options->count; i++)
        if (node_equal(&options->items[i], value))
            return;
    diag_note(diag_error(decoder->diags, node_place(value), "`%s` may not have this value",
                         field_text(io->name)),
              member_place(io->options.at), "its options are listed here");
}

static void check_declaration(struct decoder *decoder, const struct io_fields *io) {
    if (io->is_flag.value && io->type.at && strcmp(field_text(io->type), "bool") != 0)
        diag_error(decoder->diags, node_place(&io->type.at->value), "a flag has the type bool");
    if (io->fallback.at && !io->is_optional.value)
        diag_help(diag_error(decoder->diags, member_place(io->fallback.at),
                             "a default makes sense only for what is optional"),
                  "add `is_optional: true`, or remove the default");
}

/* `-P flag=true` is a text, and Python would spell it True: both are meant. */
static struct node truth_spelled(const struct node *value) {
    if (value->kind == NODE_TEXT && strcasecmp(value->text, "true") == 0)
        return node_bool(true, node_place(value));
    if (value->kind == NODE_TEXT && strcasecmp(value->text, "false") == 0)
        return node_bool(false, node_place(value));
    return *value;
}

/* What templates see for one declared name; null where nothing is given. */
static struct node declared_value(struct decoder *decoder, const struct io_fields *io,
                                  const struct node_index *params, bool is_input) {
    const struct member *given = node_index_find(params, field_text(io->name));
    const struct node *value = given ? &given->value : NULL;
    const char *text;
    struct node truth;

    if (value && io->type.at && strcmp(field_text(io->type), "bool") == 0) {
        truth = truth_spelled(value);
        value = &truth;
    }
    if (!value && io->fallback.at)
        value = &io->fallback.at->value;
    if (!value) {
        if (is_input && !io->is_optional.value)
            diag_error(decoder->diags, node_place(&io->name.at->value),
                       "the input `%s` needs a param, and none is given", field_text(io->name));
        return node_null(node_place(&io->name.at->value));
    }
    check_type(decoder, io, value);
    check_options(decoder, io, value);
    if (!io->is_flag.value || value->kind != NODE_BOOL)
        return *value;
    text = value->truth ? arena_printf(decoder->arena, "--%s", field_text(io->name)) : "";
    return node_text(text, strlen(text), node_place(value));
}

static void refuse_undeclared(struct decoder *decoder, const struct member *param,
                              const struct node *declared) {
    const char **names = ARENA_ARRAY(decoder->arena, const char *, declared->count + 1u), *near;
    struct diag *diag =
        diag_error(decoder->diags, member_place(param),
                   "the param `%.100s` is neither an input nor an output", param->key);

    for (uint32_t i = 0; i < declared->count; i++)
        names[i] = declared->members[i].key;
    near = nearest_name(param->key, names, declared->count);
    if (near)
        diag_help(diag, "did you mean `%s`?", near);
    else
        diag_help(diag, "declare it under `inputs`, or remove it");
}

struct node params_check(struct decoder *decoder, const struct node *params,
                         const struct field_objects *inputs, const struct field_objects *outputs) {
    const struct field_objects *lists[] = { inputs, outputs };
    struct node_index given, declared;
    struct member *members;
    struct node names;
    uint32_t n = 0;

    if (inputs->count + outputs->count == 0)
        return *params;
    given = node_index(decoder->arena, params);
    members = ARENA_ARRAY(decoder->arena, struct member, (size_t)inputs->count + outputs->count);
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        const struct io_fields *items = lists[k]->items;

        for (uint32_t i = 0; i < lists[k]->count; i++) {
            if (!items[i].name.at)
                continue;
            check_declaration(decoder, &items[i]);
            members[n] = *items[i].name.at;
            members[n].key = field_text(items[i].name);
            members[n++].value = declared_value(decoder, &items[i], &given, lists[k] == inputs);
        }
    }
    names = node_map(members, n, node_place(params));
    declared = node_index(decoder->arena, &names);
    for (uint32_t i = 0; i < params->count; i++)
        if (!node_index_find(&declared, params->members[i].key))
            refuse_undeclared(decoder, &params->members[i], &names);
    return names;
}
