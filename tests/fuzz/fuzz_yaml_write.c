/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as YAML, writes the tree, and reads it again as an equal one: no document is lost
 * on the way to a cluster.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "codec/yaml.h"
#include "codec/yaml_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 14, OUTPUT_MAX = 16 << 20 };

static void require(bool law) {
    if (!law)
        abort();
}

/* No number is equal to what is none, not even itself. */
static bool has_nan(const struct node *node) {
    for (uint32_t i = 0; node->kind == NODE_LIST && i < node->count; i++)
        if (has_nan(&node->items[i]))
            return true;
    for (uint32_t i = 0; node->kind == NODE_MAP && i < node->count; i++)
        if (has_nan(&node->members[i].value))
            return true;
    return node->kind == NODE_FLOAT && isnan(node->number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_INIT;
    struct sources sources = { 0 };
    struct diags *diags = diags_new();
    AUTO(buf) text = BUF_INIT(OUTPUT_MAX);
    struct node node, again;
    struct error err;

    if (size <= INPUT_MAX &&
        yaml_read(&sources, sources_add(&sources, "first", (const char *)data, size), &arena, diags,
                  &node) == 0 &&
        yaml_write(&node, &text, &err) == 0 && !has_nan(&node)) {
        uint16_t second = sources_add(&sources, "second", text.data, text.len);

        require(yaml_read(&sources, second, &arena, diags, &again) == 0);
        require(node_equal(&node, &again));
    }
    diags_free(diags);
    arena_release(&arena);
    sources_release(&sources);
    return 0;
}
