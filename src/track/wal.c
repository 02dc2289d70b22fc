/* SPDX-License-Identifier: Apache-2.0 */
#include "track/wal.h"

static const char magic[8] = "myelWAL\n";

enum record { RECORD_DEFINE, RECORD_MARK, RECORD_UNMARK, RECORD_MANIFEST, RECORD_POINT = 8 };

void wal_preamble(uint32_t nonce, struct bytes *out) {
    bytes_put(out, magic, sizeof magic);
    bytes_u32(out, WAL_VERSION);
    bytes_u32(out, nonce);
}

uint32_t wal_nonce(const unsigned char data[WAL_PREAMBLE]) {
    struct cursor in = cursor_over(data + 12, 4);

    return cursor_u32(&in);
}

void wal_frame_begin(struct wal_frame *frame) {
    frame->bytes.len = 0;
    bytes_u64(&frame->bytes, 0);
    frame->step = frame->time_us = 0;
}

static void put_text(struct bytes *out, const char *text, size_t n) {
    bytes_varint(out, n);
    bytes_put(out, text, n);
}

void wal_put_define(struct wal_frame *frame, const char *name, size_t n, uint32_t rank,
                    uint32_t attempt) {
    bytes_varint(&frame->bytes, RECORD_DEFINE);
    bytes_varint(&frame->bytes, rank);
    bytes_varint(&frame->bytes, attempt);
    put_text(&frame->bytes, name, n);
}

void wal_put_mark(struct wal_frame *frame, const char *source, size_t n, uint64_t offset) {
    bytes_varint(&frame->bytes, RECORD_MARK);
    put_text(&frame->bytes, source, n);
    bytes_varint(&frame->bytes, offset);
}

void wal_put_unmark(struct wal_frame *frame, const char *source, size_t n) {
    bytes_varint(&frame->bytes, RECORD_UNMARK);
    put_text(&frame->bytes, source, n);
}

void wal_put_manifest(struct wal_frame *frame, const struct wal_manifest *manifest) {
    bytes_varint(&frame->bytes, RECORD_MANIFEST);
    bytes_varint(&frame->bytes, manifest->generation);
    bytes_varint(&frame->bytes, manifest->data_length);
    bytes_varint(&frame->bytes, manifest->index_at);
}

void wal_put_point(struct wal_frame *frame, uint32_t series, const struct point *point) {
    bytes_varint(&frame->bytes, (uint64_t)series + RECORD_POINT);
    bytes_zigzag(&frame->bytes, wrapping_sub(point->step, frame->step));
    bytes_zigzag(&frame->bytes, wrapping_sub(point->time_us, frame->time_us));
    bytes_double(&frame->bytes, point->value);
    frame->step = point->step;
    frame->time_us = point->time_us;
}

static uint32_t frame_sum(uint32_t nonce, uint64_t offset, const void *payload, size_t n) {
    const uint64_t place[2] = { htole64(nonce), htole64(offset) };

    return crc32c(crc32c(0, place, sizeof place), payload, n);
}

void wal_frame_end(struct wal_frame *frame, uint32_t nonce, uint64_t offset) {
    const size_t n = frame->bytes.len - WAL_FRAME;
    const uint32_t head[2] = {
        htole32((uint32_t)n), htole32(frame_sum(nonce, offset, frame->bytes.data + WAL_FRAME, n))
    };

    memcpy(frame->bytes.data, head, sizeof head);
}

static const char *take_text(struct cursor *in, size_t *n) {
    const uint64_t length = cursor_varint(in);

    if (length > cursor_left(in))
        in->is_bad = true;
    *n = in->is_bad ? 0 : (size_t)length;
    return (const char *)cursor_take(in, *n);
}

static uint32_t take_u32(struct cursor *in) {
    const uint64_t value = cursor_varint(in);

    if (value > UINT32_MAX)
        in->is_bad = true;
    return (uint32_t)value;
}

/* A point refers to the one before it in the payload. */
static void read_point(struct cursor *in, uint64_t tag, struct point *last,
                       const struct wal_visitor *visitor, void *context) {
    last->step = wrapping_add(last->step, cursor_zigzag(in));
    last->time_us = wrapping_add(last->time_us, cursor_zigzag(in));
    last->value = cursor_double(in);
    if (tag - RECORD_POINT >= UINT32_MAX)
        in->is_bad = true;
    if (!in->is_bad && visitor->point)
        visitor->point(context, (uint32_t)(tag - RECORD_POINT), last);
}

static void read_manifest(struct cursor *in, const struct wal_visitor *visitor, void *context) {
    struct wal_manifest manifest;

    manifest.generation = cursor_varint(in);
    manifest.data_length = cursor_varint(in);
    manifest.index_at = cursor_varint(in);
    if (!in->is_bad && visitor->manifest)
        visitor->manifest(context, &manifest);
}

static void read_named(struct cursor *in, enum record record, const struct wal_visitor *visitor,
                       void *context) {
    const uint32_t rank = record == RECORD_DEFINE ? take_u32(in) : 0;
    const uint32_t attempt = record == RECORD_DEFINE ? take_u32(in) : 0;
    size_t n;
    const char *text = take_text(in, &n);
    const uint64_t offset = record == RECORD_MARK ? cursor_varint(in) : 0;

    if (in->is_bad)
        return;
    if (record == RECORD_DEFINE && visitor->define)
        visitor->define(context, text, n, rank, attempt);
    else if (record == RECORD_MARK && visitor->mark)
        visitor->mark(context, text, n, offset);
    else if (record == RECORD_UNMARK && visitor->unmark)
        visitor->unmark(context, text, n);
}

/* A payload whose sum is right and whose records are not is another program's; what can be read of
 * it counts. */
static void read_payload(struct cursor in, const struct wal_visitor *visitor, void *context) {
    struct point last = { 0 };

    while (cursor_left(&in) > 0 && !in.is_bad) {
        const uint64_t tag = cursor_varint(&in);

        if (tag >= RECORD_POINT)
            read_point(&in, tag, &last, visitor, context);
        else if (tag == RECORD_MANIFEST)
            read_manifest(&in, visitor, context);
        else if (tag <= RECORD_UNMARK)
            read_named(&in, (enum record)tag, visitor, context);
        else
            in.is_bad = true;
    }
}

size_t wal_read(const unsigned char *data, size_t n, const struct wal_visitor *visitor,
                void *context) {
    struct cursor in = cursor_over(data, n);
    const unsigned char *start = cursor_take(&in, sizeof magic);
    const uint32_t version = cursor_u32(&in), nonce = cursor_u32(&in);
    size_t end = 0;

    if (in.is_bad || memcmp(start, magic, sizeof magic) != 0 || version != WAL_VERSION)
        return 0;
    for (;;) {
        const uint64_t offset = (uint64_t)(in.at - data);
        const uint32_t length = cursor_u32(&in), sum = cursor_u32(&in);
        const unsigned char *payload = cursor_take(&in, length);

        if (!payload || length == 0 || sum != frame_sum(nonce, offset, payload, length))
            return end;
        read_payload(cursor_over(payload, length), visitor, context);
        end = (size_t)(in.at - data);
    }
}
