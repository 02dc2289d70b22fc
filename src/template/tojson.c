/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Jinja2 writes it: ASCII only, keys sorted, and < > & ' as escapes too. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codec/number.h"
#include "template/filters.h"

static int dump_text(const char *text, size_t n, struct buf *out, struct error *err) {
    static const char letters[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";

    if (buf_append(out, "\"", 1, err))
        return -1;
    for (size_t i = 0; i < n;) {
        size_t len = character_length(text + i, n - i);
        const unsigned char *byte = (const unsigned char *)text + i;
        uint32_t code = len == 1 ? byte[0] : byte[0] & (0x7fu >> len);
        const char *letter = len == 1 && *byte ? strchr(letters, (char)*byte) : NULL;
        int failed;

        for (size_t k = 1; k < len; k++)
            code = code << 6 | (byte[k] & 0x3f);
        if (letter)
            failed = buf_printf(out, err, "\\%c", names[letter - letters]);
        else if (code >= 0x10000)
            failed = buf_printf(out, err, "\\u%04" PRIx32 "\\u%04" PRIx32,
                                0xd800 + ((code - 0x10000) >> 10), 0xdc00 + (code & 0x3ff));
        else if (code < ' ' || code > '~' || strchr("<>&'", (char)code))
            failed = buf_printf(out, err, "\\u%04" PRIx32, code);
        else
            failed = buf_append(out, byte, 1, err);
        if (failed)
            return -1;
        i += len;
    }
    return buf_append(out, "\"", 1, err);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

static int dump_value(struct render *render, const struct call *call, const struct node *value,
                      unsigned depth, struct buf *out, struct error *err);

static int dump_map(struct render *render, const struct call *call, const struct node *map,
                    unsigned depth, struct buf *out, struct error *err) {
    struct member *sorted;

    if (scratch_array(render, call->span, map->count, sizeof *sorted, &sorted) ||
        buf_append(out, "{", 1, err))
        return -1;
    if (map->count) {
        memcpy(sorted, map->members, map->count * sizeof *sorted);
        qsort(sorted, map->count, sizeof *sorted, by_key);
    }
    for (uint32_t i = 0; i < map->count; i++)
        if ((i && buf_append(out, ", ", 2, err)) ||
            dump_text(sorted[i].key, strlen(sorted[i].key), out, err) ||
            buf_append(out, ": ", 2, err) ||
            dump_value(render, call, &sorted[i].value, depth + 1, out, err))
            return -1;
    return buf_append(out, "}", 1, err);
}

static int dump_list(struct render *render, const struct call *call, const struct node *list,
                     unsigned depth, struct buf *out, struct error *err) {
    if (buf_append(out, "[", 1, err))
        return -1;
    for (uint32_t i = 0; i < list->count; i++)
        if ((i && buf_append(out, ", ", 2, err)) ||
            dump_value(render, call, &list->items[i], depth + 1, out, err))
            return -1;
    return buf_append(out, "]", 1, err);
}

static int dump_float(double number, struct buf *out, struct error *err) {
    char text[NUMBER_TEXT_MAX];
    size_t n = number_format(number, text);

    if (number != number) /* NaN */
        return buf_append(out, "NaN", 3, err);
    if (number - number != 0)
        return buf_printf(out, err, "%sInfinity", number < 0 ? "-" : "");
    return buf_append(out, text, n, err);
}

static int dump_value(struct render *render, const struct call *call, const struct node *value,
                      unsigned depth, struct buf *out, struct error *err) {
    if (depth > VALUE_DEPTH_MAX)
        return error_set(err, ERROR_EXHAUSTED, "nested deeper than %d levels", VALUE_DEPTH_MAX);
    if (spend(render, call->span, 1))
        return -1;
    switch (value->kind) {
    case NODE_BOOL: return buf_printf(out, err, "%s", value->truth ? "true" : "false");
    case NODE_INT: return buf_printf(out, err, "%" PRId64, value->integer);
    case NODE_FLOAT: return dump_float(value->number, out, err);
    case NODE_TEXT: return dump_text(value->text, value->count, out, err);
    case NODE_LIST: return dump_list(render, call, value, depth, out, err);
    case NODE_MAP: return dump_map(render, call, value, depth, out, err);
    default: return buf_append(out, "null", 4, err);
    }
}

FILTER(filter_tojson) {
    AUTO(buf) json = BUF_INIT(render->output_max);
    struct error err = { 0 };
    struct node text;

    if (dump_value(render, call, &call->input.node, 0, &json, &err))
        return fail(render, call->span, "this value cannot be written as JSON: %s", err.message);
    if (make_text(render, call->span, json.data, json.len, &text))
        return -1;
    *out = known(text);
    return 0;
}
