/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A streaming JSON writer: what is written leaves as it grows, so an answer may be far
 * larger than memory.
 *
 *   json_init(&json, JSON_PRETTY, sink, context);
 *   json_object(&json);
 *   json_key(&json, "name"); json_text(&json, "worker.2");
 *   json_end(&json);
 *   if (json_finish(&json, err)) ...
 *
 * The calls never fail by themselves: the first error of the sink is kept and told by
 * json_finish. Text that is not UTF-8 gets U+FFFD in the place of each bad byte; numbers
 * that JSON lacks (NaN, infinities) are written as null.
 */
#ifndef CODEC_JSON_H
#define CODEC_JSON_H

#include "base/buf.h"
#include "codec/node.h"

enum json_style {
    JSON_COMPACT, /* one line, ", " and ": " between, as Python's json.dumps writes */
    JSON_PRETTY,  /* two blanks a level, a newline at the end */
};

enum { JSON_DEPTH_MAX = 256 };

struct json {
    int (*sink)(void *context, const char *bytes, size_t n, struct error *err);
    void *context;
    enum json_style style;
    struct buf pending;
    struct error err;
    bool failed, after_key;
    uint32_t depth;
    bool has_items[JSON_DEPTH_MAX];
    char closer[JSON_DEPTH_MAX];
};

void json_init(struct json *json, enum json_style style,
               int (*sink)(void *context, const char *bytes, size_t n, struct error *err),
               void *context);
/* The usual sinks. */
int json_to_buf(void *buf, const char *bytes, size_t n, struct error *err);
int json_to_file(void *stdio_file, const char *bytes, size_t n, struct error *err);

void json_object(struct json *json);
void json_array(struct json *json);
void json_end(struct json *json); /* of the innermost object or array */
void json_key(struct json *json, const char *key);

void json_text(struct json *json, const char *text); /* NULL is written as null */
void json_text_n(struct json *json, const char *text, size_t n);
void json_int(struct json *json, int64_t value);
void json_number(struct json *json, double value); /* shortest text that reads back as value */
void json_bool(struct json *json, bool value);
void json_null(struct json *json);
void json_node(struct json *json, const struct node *node); /* NULL is written as null */

/* Sends what is pending. The writer is released, whatever the outcome. */
MUST_CHECK int json_finish(struct json *json, struct error *err);

#endif
