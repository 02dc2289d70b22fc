/* SPDX-License-Identifier: Apache-2.0 */
/* Values as Python prints them. */
#include <inttypes.h>
#include <string.h>

#include "codec/number.h"
#include "template/render.h"

static int print_within(const struct node *value, unsigned depth, struct buf *out,
                        struct error *err);

/* Characters that repr() writes as escapes because they cannot be seen; the usual ranges of them.
 */
static const struct {
    uint32_t first, last;
} unprintable[] = {
    { 0x00, 0x1f },     { 0x7f, 0xa0 },     { 0xad, 0xad },        { 0x200b, 0x200f },
    { 0x2028, 0x202f }, { 0x205f, 0x2064 }, { 0x2066, 0x206f },    { 0x3000, 0x3000 },
    { 0xe000, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xf0000, 0x10ffff },
};

static uint32_t decode(const char *text, size_t len) {
    const unsigned char *byte = (const unsigned char *)text;
    uint32_t code = len == 1 ? byte[0] : byte[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++)
        code = code << 6 | (byte[i] & 0x3f);
    return code;
}

static int print_character(const char *text, size_t len, char quote, struct buf *out,
                           struct error *err) {
    uint32_t code = decode(text, len);

    if (code == (uint32_t)quote || code == '\\')
        return buf_printf(out, err, "\\%c", (char)code);
    if (code == '\n' || code == '\r' || code == '\t')
        return buf_printf(out, err, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    for (size_t i = 0; i < ARRAY_LEN(unprintable); i++)
        if (code >= unprintable[i].first && code <= unprintable[i].last)
            return code < 0x100     ? buf_printf(out, err, "\\x%02" PRIx32, code)
                   : code < 0x10000 ? buf_printf(out, err, "\\u%04" PRIx32, code)
                                    : buf_printf(out, err, "\\U%08" PRIx32, code);
    return buf_append(out, text, len, err);
}

static int print_text(const char *text, size_t n, struct buf *out, struct error *err) {
    char quote = memchr(text, '\'', n) && !memchr(text, '"', n) ? '"' : '\'';

    if (buf_append(out, &quote, 1, err))
        return -1;
    for (size_t i = 0; i < n;) {
        size_t len = character_length(text + i, n - i);

        if (print_character(text + i, len, quote, out, err))
            return -1;
        i += len;
    }
    return buf_append(out, &quote, 1, err);
}

static int print_list(const struct node *list, unsigned depth, struct buf *out, struct error *err) {
    bool tuple = list->flags & VALUE_TUPLE;

    if (buf_append(out, tuple ? "(" : "[", 1, err))
        return -1;
    for (uint32_t i = 0; i < list->count; i++)
        if ((i && buf_append(out, ", ", 2, err)) ||
            print_within(&list->items[i], depth + 1, out, err))
            return -1;
    if (tuple && list->count == 1 && buf_append(out, ",", 1, err))
        return -1;
    return buf_append(out, tuple ? ")" : "]", 1, err);
}

static int print_map(const struct node *map, unsigned depth, struct buf *out, struct error *err) {
    if (buf_append(out, "{", 1, err))
        return -1;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct member *member = &map->members[i];

        if ((i && buf_append(out, ", ", 2, err)) ||
            print_text(member->key, strlen(member->key), out, err) ||
            buf_append(out, ": ", 2, err) || print_within(&member->value, depth + 1, out, err))
            return -1;
    }
    return buf_append(out, "}", 1, err);
}

static int print_within(const struct node *value, unsigned depth, struct buf *out,
                        struct error *err) {
    char number[NUMBER_TEXT_MAX];

    if (depth > VALUE_DEPTH_MAX)
        return error_set(err, ERROR_EXHAUSTED, "nested deeper than %d levels", VALUE_DEPTH_MAX);
    switch (value->kind) {
    case NODE_BOOL: return buf_printf(out, err, "%s", value->truth ? "True" : "False");
    case NODE_INT: return buf_printf(out, err, "%" PRId64, value->integer);
    case NODE_FLOAT: return buf_append(out, number, number_format(value->number, number), err);
    case NODE_TEXT: return print_text(value->text, value->count, out, err);
    case NODE_LIST: return print_list(value, depth, out, err);
    case NODE_MAP: return print_map(value, depth, out, err);
    default: return buf_append(out, "None", 4, err);
    }
}

int value_print_quoted(const struct node *value, struct buf *out, struct error *err) {
    size_t before = out->len;

    if (print_within(value, 0, out, err) == 0)
        return 0;
    out->len = before; /* a failed append leaves the contents as they were */
    if (out->capacity)
        out->data[before] = '\0';
    return -1;
}

int value_print(const struct node *value, struct buf *out, struct error *err) {
    if (value->kind == NODE_TEXT)
        return buf_append(out, value->text, value->count, err);
    return value_print_quoted(value, out, err);
}
