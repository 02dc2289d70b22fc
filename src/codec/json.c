/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codec/number.h"
#include "codec/utf8.h"

enum { FLUSH_AT = 32 * 1024, PENDING_MAX = FLUSH_AT * 2 };

void json_init(struct json *json, enum json_style style,
               int (*sink)(void *context, const char *bytes, size_t n, struct error *err),
               void *context) {
    *json = (struct json){
        .sink = sink, .context = context, .style = style, .pending = BUF_INIT(PENDING_MAX)
    };
}

int json_to_buf(void *buf, const char *bytes, size_t n, struct error *err) {
    return buf_append(buf, bytes, n, err);
}

int json_to_file(void *stdio_file, const char *bytes, size_t n, struct error *err) {
    if (fwrite(bytes, 1, n, stdio_file) != n)
        return error_set(err, ERROR_IO, "cannot write the output");
    return 0;
}

static void flush(struct json *json) {
    if (!json->failed && json->pending.len > 0 &&
        json->sink(json->context, json->pending.data, json->pending.len, &json->err))
        json->failed = true;
    buf_clear(&json->pending);
}

/* Pieces are shorter than what is free after a flush, so the buffer never refuses. */
static void put(struct json *json, const char *bytes, size_t n) {
    while (n > 0) {
        size_t piece = n < FLUSH_AT ? n : FLUSH_AT;

        if (buf_append(&json->pending, bytes, piece, &json->err))
            json->failed = true;
        if (json->pending.len >= FLUSH_AT)
            flush(json);
        bytes += piece;
        n -= piece;
    }
}

static void newline(struct json *json) {
    if (json->style == JSON_COMPACT)
        return;
    put(json, "\n", 1);
    for (uint32_t i = 0; i < json->depth; i++)
        put(json, "  ", 2);
}

/* What stands between the last value and the next one. */
static void separate(struct json *json) {
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    if (json->has_items[json->depth - 1])
        put(json, json->style == JSON_COMPACT ? ", " : ",", json->style == JSON_COMPACT ? 2 : 1);
    json->has_items[json->depth - 1] = true;
    newline(json);
}

static void open_with(struct json *json, char opener, char closer) {
    separate(json);
    assert(json->depth < JSON_DEPTH_MAX);
    put(json, &opener, 1);
    json->has_items[json->depth] = false;
    json->closer[json->depth++] = closer;
}

void json_object(struct json *json) {
    open_with(json, '{', '}');
}

void json_array(struct json *json) {
    open_with(json, '[', ']');
}

void json_end(struct json *json) {
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    if (json->has_items[json->depth])
        newline(json);
    put(json, &json->closer[json->depth], 1);
}

/* Hidden characters are escaped, so that JSON on a terminal cannot control it, and a reader sees
 * what is there. All of them have 16 bits. */
static void put_escape(struct json *json, uint32_t point) {
    char text[8];

    put(json, text, (size_t)snprintf(text, sizeof text, "\\u%04x", (unsigned)(point & 0xffff)));
}

static void put_string(struct json *json, const char *text, size_t n) {
    put(json, "\"", 1);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)text[i];
        size_t plain = i;

        while (plain < n && (unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
               text[plain] != '\\' && (unsigned char)text[plain] < 0x7f)
            plain++;
        if (plain > i) {
            put(json, text + i, plain - i);
            i = plain;
            continue;
        }
        if (c >= 0x80) {
            size_t length = utf8_length(text + i, n - i);

            if (length && utf8_is_hidden(utf8_point(text + i, length)))
                put_escape(json, utf8_point(text + i, length));
            else
                put(json, length ? text + i : "\xef\xbf\xbd", length ? length : 3);
            i += length ? length : 1;
            continue;
        }
        switch (c) {
        case '"': put(json, "\\\"", 2); break;
        case '\\': put(json, "\\\\", 2); break;
        case '\n': put(json, "\\n", 2); break;
        case '\r': put(json, "\\r", 2); break;
        case '\t': put(json, "\\t", 2); break;
        default: put_escape(json, c);
        }
        i++;
    }
    put(json, "\"", 1);
}

void json_key(struct json *json, const char *key) {
    assert(json->depth > 0 && !json->after_key);
    separate(json);
    put_string(json, key, strlen(key));
    put(json, ": ", 2);
    json->after_key = true;
}

void json_text_n(struct json *json, const char *text, size_t n) {
    separate(json);
    put_string(json, text, n);
}

void json_text(struct json *json, const char *text) {
    if (text)
        json_text_n(json, text, strlen(text));
    else
        json_null(json);
}

void json_int(struct json *json, int64_t value) {
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRId64, value);

    separate(json);
    put(json, text, (size_t)n);
}

void json_number(struct json *json, double value) {
    char text[NUMBER_TEXT_MAX];

    if (!isfinite(value)) {
        json_null(json);
        return;
    }
    separate(json);
    put(json, text, number_format(value, text));
}

void json_bool(struct json *json, bool value) {
    separate(json);
    put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json) {
    separate(json);
    put(json, "null", 4);
}

void json_node(struct json *json, const struct node *node) {
    if (!node) {
        json_null(json);
        return;
    }
    switch ((enum node_kind)node->kind) {
    case NODE_NULL: json_null(json); return;
    case NODE_BOOL: json_bool(json, node->truth); return;
    case NODE_INT: json_int(json, node->integer); return;
    case NODE_FLOAT: json_number(json, node->number); return;
    case NODE_TEXT: json_text_n(json, node->text, node->count); return;
    case NODE_LIST:
        json_array(json);
        for (uint32_t i = 0; i < node->count; i++)
            json_node(json, &node->items[i]);
        json_end(json);
        return;
    case NODE_MAP:
        json_object(json);
        for (uint32_t i = 0; i < node->count; i++) {
            json_key(json, node->members[i].key);
            json_node(json, &node->members[i].value);
        }
        json_end(json);
        return;
    case NODE_KIND_COUNT: break;
    }
    assert(!"a node has a kind");
}

int json_finish(struct json *json, struct error *err) {
    assert(json->depth == 0);
    if (json->style == JSON_PRETTY)
        put(json, "\n", 1);
    flush(json);
    buf_release(&json->pending);
    if (json->failed) {
        *err = json->err;
        return -1;
    }
    return 0;
}
