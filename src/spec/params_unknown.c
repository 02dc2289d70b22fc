/* SPDX-License-Identifier: Apache-2.0 */
/* Params of the command line that the file does not know. */
#include <string.h>

#include "codec/nearest.h"
#include "spec/params.h"
#include "template/template.h"

struct mentions {
    const struct node *given;
    struct node_index index; /* of the given ones */
    bool *is_known;          /* of each of them */
};

static void note_name(void *context, const char *name) {
    const struct mentions *mentions = context;
    const struct member *member = node_index_find(&mentions->index, name);

    if (member)
        mentions->is_known[member - mentions->given->members] = true;
}

static void note_mentions(struct mentions *mentions, const struct node *tree) {
    if (tree->kind == NODE_TEXT)
        template_mentions(tree->text, tree->count, note_name, mentions);
    for (uint32_t i = 0; tree->kind == NODE_LIST && i < tree->count; i++)
        note_mentions(mentions, &tree->items[i]);
    for (uint32_t i = 0; tree->kind == NODE_MAP && i < tree->count; i++) {
        const struct member *member = &tree->members[i];

        template_mentions(member->key, strlen(member->key), note_name, mentions);
        note_mentions(mentions, &member->value);
    }
}

static void help_with_names(struct decoder *decoder, struct diag *diag, const char *typed,
                            const struct node *own) {
    enum { NAMES_SHOWN = 12 };
    const char **names = ARENA_ARRAY(decoder->arena, const char *, own->count + 1u);
    const char *near, *list = "";

    for (uint32_t i = 0; i < own->count; i++) {
        names[i] = own->members[i].key;
        if (i < NAMES_SHOWN)
            list = arena_printf(decoder->arena, "%s%s%.60s", list, i ? ", " : "", names[i]);
    }
    near = nearest_name(typed, names, own->count);
    if (near)
        diag_help(diag, "did you mean `%s`?", near);
    else if (own->count)
        diag_help(diag, "the file has the params %s%s", list,
                  own->count > NAMES_SHOWN ? ", ..." : "");
    else
        diag_help(diag, "the file has no params; add `params: {%.60s: ...}` to use it", typed);
}

void params_warn_unknown(struct decoder *decoder, const struct node *root, const struct node *own,
                         const struct node *given) {
    static const struct node none = { .kind = NODE_MAP };
    const struct node *known = own && own->kind == NODE_MAP ? own : &none;
    struct mentions mentions = { given, node_index(decoder->arena, given),
                                 ARENA_ARRAY(decoder->arena, bool, given->count + 1u) };
    uint32_t n_known = 0;

    for (uint32_t i = 0; i < known->count; i++)
        note_name(&mentions, known->members[i].key);
    for (uint32_t i = 0; i < given->count; i++)
        n_known += mentions.is_known[i];
    if (n_known == given->count)
        return;
    note_mentions(&mentions, root);
    note_mentions(&mentions, given);
    for (uint32_t i = 0; i < given->count; i++)
        if (!mentions.is_known[i]) {
            const struct member *member = &given->members[i];
            struct diag *diag = diag_warning(decoder->diags, member_place(member),
                                             "the file does not use a param `%.100s`", member->key);

            help_with_names(decoder, diag, member->key, known);
        }
}
