/* SPDX-License-Identifier: Apache-2.0 */
/* Templates in a whole tree: every text and every key, each rendered once. */
#ifndef SPEC_RENDER_H
#define SPEC_RENDER_H

#include "spec/decode.h"

enum {
    RENDERED_BYTES_MAX = 64 << 20, /* of all texts of a file together */
    LOOKUPS_MAX = 1 << 28, /* names that the templates of a file may have to be held against */
};

struct renderer {
    struct decoder *decoder;
    const struct node *names;       /* what templates see */
    bool (*keep)(const char *text); /* texts that stay as they are; or NULL */
    size_t rendered;                /* bytes so far */
    size_t texts;                   /* templates so far */
    size_t lookups;                 /* templates so far, each times the names there are */
};

/* Returns the tree with its texts rendered; parts without templates are shared, not copied.
 * Sets *changed when there was a template. */
struct node render_tree(struct renderer *renderer, const struct node *in, bool *changed);

#endif
