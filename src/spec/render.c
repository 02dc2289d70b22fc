/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/render.h"

#include <string.h>

#include "template/template.h"

static struct node render_text(struct renderer *renderer, const struct node *in, bool *changed) {
    struct template_context context = { .names = renderer->names,
                                        .arena = renderer->decoder->arena };
    struct node out;

    if (template_is_plain(in->text, in->count) || (renderer->keep && renderer->keep(in->text)))
        return *in;
    *changed = true;
    if (renderer->lookups > LOOKUPS_MAX)
        return *in;
    renderer->lookups += renderer->names->count;
    if (renderer->lookups > LOOKUPS_MAX)
        diag_error(renderer->decoder->diags, node_place(in),
                   "the file has too many templates over too many params");
    if (renderer->rendered > RENDERED_BYTES_MAX ||
        template_render(&context, in, &out, renderer->decoder->diags))
        return *in;
    renderer->rendered += out.count;
    if (renderer->rendered > RENDERED_BYTES_MAX)
        diag_error(renderer->decoder->diags, node_place(in),
                   "the templates of this file make more than %d MiB of text",
                   RENDERED_BYTES_MAX >> 20);
    return out;
}

static struct node render_list(struct renderer *renderer, const struct node *in, bool *changed) {
    struct node out = *in;

    for (uint32_t i = 0; i < in->count; i++) {
        bool item_changed = false;
        struct node item = render_tree(renderer, &in->items[i], &item_changed);

        if (!item_changed)
            continue;
        if (out.items == in->items)
            out.items =
                arena_copy(renderer->decoder->arena, in->items, in->count * sizeof *in->items);
        out.items[i] = item;
        *changed = true;
    }
    return out;
}

static struct node render_map(struct renderer *renderer, const struct node *in, bool *changed) {
    struct node out = *in;

    for (uint32_t i = 0; i < in->count; i++) {
        const struct member *member = &in->members[i];
        bool value_changed = false, key_changed = false;
        struct node value = render_tree(renderer, &member->value, &value_changed);
        struct node key = node_text(member->key, strlen(member->key), member_place(member));

        key = render_text(renderer, &key, &key_changed);
        if (!value_changed && !key_changed)
            continue;
        if (out.members == in->members)
            out.members =
                arena_copy(renderer->decoder->arena, in->members, in->count * sizeof *in->members);
        out.members[i].value = value;
        out.members[i].key = key.text;
        *changed = true;
    }
    return out;
}

struct node render_tree(struct renderer *renderer, const struct node *in, bool *changed) {
    switch (in->kind) {
    case NODE_TEXT: return render_text(renderer, in, changed);
    case NODE_LIST: return render_list(renderer, in, changed);
    case NODE_MAP: return render_map(renderer, in, changed);
    default: return *in;
    }
}
