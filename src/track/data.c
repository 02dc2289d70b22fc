/* SPDX-License-Identifier: Apache-2.0 */
#include "track/data.h"

static uint32_t head_sum(const unsigned char *frame, size_t head_length) {
    return crc32c(crc32c(0, frame, DATA_FRAME - 4), frame + DATA_FRAME, head_length);
}

void data_frame_put(enum data_kind kind, const struct bytes *head, const struct bytes *body,
                    struct bytes *out) {
    const size_t start = out->len;
    uint32_t sum;

    bytes_u32(out, kind);
    bytes_u32(out, (uint32_t)head->len);
    bytes_u32(out, (uint32_t)body->len);
    bytes_u32(out, 0);
    bytes_put(out, head->data, head->len);
    sum = htole32(head_sum(out->data + start, head->len));
    memcpy(out->data + start + DATA_FRAME - 4, &sum, sizeof sum);
    bytes_put(out, body->data, body->len);
}

bool data_frame_take(const unsigned char in[DATA_FRAME], struct data_frame *out) {
    struct cursor cursor = cursor_over(in, DATA_FRAME);
    const uint32_t kind = cursor_u32(&cursor);

    if (kind < DATA_CHUNK || kind > DATA_INDEX)
        return false;
    out->kind = (enum data_kind)kind;
    out->head_length = cursor_u32(&cursor);
    out->body_length = cursor_u32(&cursor);
    out->head_sum = cursor_u32(&cursor);
    return kind != DATA_CHUNK ||
           (out->head_length <= CHUNK_HEAD_MOST && out->body_length <= CHUNK_BODY_MOST);
}

bool data_head_is_sound(const unsigned char *frame, const struct data_frame *parsed) {
    return head_sum(frame, parsed->head_length) == parsed->head_sum;
}

uint64_t data_frame_size(const struct data_frame *frame) {
    return (uint64_t)DATA_FRAME + frame->head_length + frame->body_length;
}

void data_node_put(const struct data_node *node, struct bytes *out) {
    const struct summary *s = &node->summary;
    const size_t start = out->len;

    bytes_u64(out, s->count);
    bytes_u64(out, s->nans);
    bytes_double(out, s->min);
    bytes_double(out, s->max);
    bytes_double(out, s->mean);
    bytes_double(out, s->last);
    bytes_u64(out, (uint64_t)s->first_step);
    bytes_u64(out, (uint64_t)s->last_step);
    bytes_u64(out, (uint64_t)s->min_step);
    bytes_u64(out, (uint64_t)s->max_step);
    bytes_u64(out, (uint64_t)s->first_time_us);
    bytes_u64(out, (uint64_t)s->last_time_us);
    bytes_u64(out, (uint64_t)s->min_time_us);
    bytes_u64(out, (uint64_t)s->max_time_us);
    bytes_u64(out, node->at);
    bytes_u32(out, node->size);
    bytes_u32(out, crc32c(0, out->data + start, DATA_NODE - 4));
}

bool data_node_take(const unsigned char in[DATA_NODE], struct data_node *out) {
    struct cursor cursor = cursor_over(in, DATA_NODE);
    struct summary *s = &out->summary;

    s->count = cursor_u64(&cursor);
    s->nans = cursor_u64(&cursor);
    s->min = cursor_double(&cursor);
    s->max = cursor_double(&cursor);
    s->mean = cursor_double(&cursor);
    s->last = cursor_double(&cursor);
    s->first_step = (int64_t)cursor_u64(&cursor);
    s->last_step = (int64_t)cursor_u64(&cursor);
    s->min_step = (int64_t)cursor_u64(&cursor);
    s->max_step = (int64_t)cursor_u64(&cursor);
    s->first_time_us = (int64_t)cursor_u64(&cursor);
    s->last_time_us = (int64_t)cursor_u64(&cursor);
    s->min_time_us = (int64_t)cursor_u64(&cursor);
    s->max_time_us = (int64_t)cursor_u64(&cursor);
    out->at = cursor_u64(&cursor);
    out->size = cursor_u32(&cursor);
    return cursor_u32(&cursor) == crc32c(0, in, DATA_NODE - 4) && summary_is_sane(s);
}

void data_definition_put(const char *name, size_t n, uint32_t rank, uint32_t attempt,
                         struct bytes *out) {
    bytes_varint(out, rank);
    bytes_varint(out, attempt);
    bytes_varint(out, n);
    bytes_put(out, name, n);
}

const char *data_definition_take(struct cursor *in, size_t *n, uint32_t *rank, uint32_t *attempt) {
    const uint64_t r = cursor_varint(in), a = cursor_varint(in), length = cursor_varint(in);

    if (r > UINT32_MAX || a > UINT32_MAX || length > cursor_left(in))
        in->is_bad = true;
    if (in->is_bad)
        return NULL;
    *rank = (uint32_t)r;
    *attempt = (uint32_t)a;
    *n = (size_t)length;
    return (const char *)cursor_take(in, *n);
}
