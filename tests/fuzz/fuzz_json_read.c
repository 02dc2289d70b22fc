/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as JSON. Beyond "no crash": what is taken is written and read again as the same
 * tree, and what is refused leaves the result alone and says why.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "codec/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16, OUTPUT_MAX = INPUT_MAX * 64 };

static void require(bool law) {
    if (!law)
        abort();
}

/* A number beyond all floats reads as infinity, for which JSON has no text. */
static bool has_infinity(const struct node *node) {
    for (uint32_t i = 0; node->kind == NODE_LIST && i < node->count; i++)
        if (has_infinity(&node->items[i]))
            return true;
    for (uint32_t i = 0; node->kind == NODE_MAP && i < node->count; i++)
        if (has_infinity(&node->members[i].value))
            return true;
    return node->kind == NODE_FLOAT && isinf(node->number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_INIT;
    AUTO(buf) text = BUF_INIT(OUTPUT_MAX);
    struct node node = { .kind = NODE_KIND_COUNT }, again;
    struct error err = { .code = ERROR_NONE };
    struct json json;

    if (size > INPUT_MAX)
        return 0;
    if (json_read((const char *)data, size, &arena, &node, &err)) {
        require(err.code == ERROR_INVALID && err.message[0] && node.kind == NODE_KIND_COUNT);
    } else if (!has_infinity(&node)) {
        json_init(&json, JSON_COMPACT, json_to_buf, &text);
        json_node(&json, &node);
        require(json_finish(&json, &err) == 0);
        require(json_read(text.data, text.len, &arena, &again, &err) == 0);
        require(node_equal(&node, &again));
    }
    arena_release(&arena);
    return 0;
}
