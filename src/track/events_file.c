/* SPDX-License-Identifier: Apache-2.0 */
#include "track/events_file.h"

#include <math.h>

enum { TAIL = 4 }; /* the sum behind the data */

/* ---- records ---- */

static uint32_t masked(uint32_t crc) {
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

/* The length, if these EVENTS_HEAD bytes begin a record. */
static bool read_head(const unsigned char *bytes, uint64_t *length) {
    struct cursor in = cursor_over(bytes, EVENTS_HEAD);

    *length = cursor_u64(&in);
    return cursor_u32(&in) == masked(crc32c(0, bytes, 8)) && *length <= INT64_MAX / 2;
}

struct events_record events_next(const unsigned char *bytes, size_t n) {
    struct events_record record = { .kind = EVENTS_SHORT, .room = EVENTS_HEAD };
    struct cursor tail;
    uint64_t length;

    if (n < EVENTS_HEAD)
        return record;
    if (!read_head(bytes, &length)) {
        record.kind = EVENTS_LOST;
        record.room = 1;
        while (n - record.room >= EVENTS_HEAD && !read_head(bytes + record.room, &length))
            record.room++;
        return record;
    }
    record.room = EVENTS_HEAD + length + TAIL;
    if (length > EVENTS_RECORD_MOST) {
        record.kind = EVENTS_LARGE;
        return record;
    }
    if (n < record.room)
        return record;
    record.data = bytes + EVENTS_HEAD;
    record.n = (size_t)length;
    tail = cursor_over(record.data + record.n, TAIL);
    record.kind =
        cursor_u32(&tail) == masked(crc32c(0, record.data, record.n)) ? EVENTS_RECORD : EVENTS_BAD;
    return record;
}

/* ---- protocol buffers ---- */

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

/* A field of a message. Which of the members count depends on the wire. */
struct field {
    uint64_t number;
    enum wire wire;
    uint64_t value;      /* VARINT; the bits of the others of fixed length */
    struct cursor bytes; /* BYTES */
};

/* The next field; false at the end, and where the message is wrong, which leaves it bad. */
static bool next_field(struct cursor *message, struct field *out) {
    uint64_t key, n;

    if (message->is_bad || cursor_left(message) == 0)
        return false;
    key = cursor_varint(message);
    *out = (struct field){ .number = key >> 3, .wire = (enum wire)(key & 7) };
    switch (out->wire) {
    case WIRE_VARINT: out->value = cursor_varint(message); break;
    case WIRE_64: out->value = cursor_u64(message); break;
    case WIRE_32: out->value = cursor_u32(message); break;
    case WIRE_BYTES:
        n = cursor_varint(message);
        if (n > cursor_left(message)) {
            message->is_bad = true;
            break;
        }
        out->bytes = cursor_over(message->at, (size_t)n);
        message->at += n;
        break;
    default: message->is_bad = true; /* groups, which no writer has used for these */
    }
    message->is_bad |= out->number == 0;
    return !message->is_bad;
}

static bool is_field(const struct field *field, uint64_t number, enum wire wire) {
    return field->number == number && field->wire == wire;
}

static double double_of(uint64_t bits) {
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof value);
    return value;
}

/* ---- tensors ---- */

static double half_of(uint64_t bits) {
    const int exponent = (int)(bits >> 10 & 31);
    const double fraction = (double)(bits & 1023);
    const double size = exponent == 0    ? ldexp(fraction, -24)
                        : exponent == 31 ? (fraction > 0 ? (double)NAN : (double)INFINITY)
                                         : ldexp(fraction + 1024, exponent - 25);

    return bits & 0x8000 ? -size : size;
}

static double bfloat_of(uint64_t bits) {
    return float_of((bits & 0xffff) << 16);
}

static double int8_of(uint64_t bits) {
    return (int8_t)bits;
}

static double int16_of(uint64_t bits) {
    return (int16_t)bits;
}

static double int32_of(uint64_t bits) {
    return (int32_t)bits;
}

static double int64_of(uint64_t bits) {
    return (double)(int64_t)bits;
}

static double uint64_of(uint64_t bits) {
    return (double)bits;
}

/* The types of numbers by DataType: their size in tensor_content, little-endian, and the field of
 * TensorProto that has them otherwise. */
static const struct type {
    unsigned dtype, size, field;
    enum wire wire; /* of one that is not packed */
    double (*value)(uint64_t bits);
} types[] = {
    { 1, 4, 5, WIRE_32, float_of },        { 2, 8, 6, WIRE_64, double_of },
    { 3, 4, 7, WIRE_VARINT, int32_of },    { 4, 1, 7, WIRE_VARINT, uint64_of },
    { 5, 2, 7, WIRE_VARINT, int16_of },    { 6, 1, 7, WIRE_VARINT, int8_of },
    { 9, 8, 10, WIRE_VARINT, int64_of },   { 10, 1, 11, WIRE_VARINT, uint64_of },
    { 14, 2, 13, WIRE_VARINT, bfloat_of }, { 17, 2, 7, WIRE_VARINT, uint64_of },
    { 19, 2, 13, WIRE_VARINT, half_of },   { 22, 4, 16, WIRE_VARINT, uint64_of },
    { 23, 8, 17, WIRE_VARINT, uint64_of },
};

static const struct type *type_of(struct cursor tensor) {
    const struct type *type = NULL;
    struct field field;

    while (next_field(&tensor, &field))
        for (size_t i = 0; is_field(&field, 1, WIRE_VARINT) && i < sizeof types / sizeof *types;
             i++)
            if (types[i].dtype == field.value)
                type = &types[i];
    return type;
}

/* Whether a TensorShapeProto has dimensions, or hides them. */
static bool has_dimensions(struct cursor shape) {
    struct field field;

    while (next_field(&shape, &field))
        if (is_field(&field, 2, WIRE_BYTES) || (is_field(&field, 3, WIRE_VARINT) && field.value))
            return true;
    return shape.is_bad;
}

static uint64_t bits_of(struct cursor content) {
    uint64_t bits = 0;

    for (unsigned shift = 0; cursor_left(&content) > 0 && shift < 64; shift += 8)
        bits |= (uint64_t)cursor_u8(&content) << shift;
    return bits;
}

/* The number in a field of packed ones. */
static bool unpack(struct cursor packed, enum wire wire, uint64_t *out) {
    *out = wire == WIRE_32   ? cursor_u32(&packed)
           : wire == WIRE_64 ? cursor_u64(&packed)
                             : cursor_varint(&packed);
    return !packed.is_bad && cursor_left(&packed) == 0;
}

/* The number of a tensor that is one. One that is left out is 0, as protocol buffers have it. */
static bool read_tensor(struct cursor tensor, double *out) {
    const struct type *type = type_of(tensor);
    struct field field;
    uint64_t bits = 0;

    if (!type)
        return false;
    while (next_field(&tensor, &field)) {
        if (is_field(&field, 2, WIRE_BYTES) && has_dimensions(field.bytes))
            return false;
        if (is_field(&field, 4, WIRE_BYTES) && cursor_left(&field.bytes) > 0) {
            if (cursor_left(&field.bytes) != type->size)
                return false;
            bits = bits_of(field.bytes);
        } else if (is_field(&field, type->field, type->wire)) {
            bits = field.value;
        } else if (is_field(&field, type->field, WIRE_BYTES) &&
                   !unpack(field.bytes, type->wire, &bits)) {
            return false;
        }
    }
    *out = type->value(bits);
    return !tensor.is_bad;
}

/* ---- events ---- */

/* Whether a SummaryMetadata says "scalars", or nothing. */
static bool is_for_scalars(struct cursor metadata) {
    static const char wanted[] = "scalars";
    bool is = true;
    struct field field, inner;

    while (next_field(&metadata, &field)) {
        if (!is_field(&field, 1, WIRE_BYTES))
            continue;
        while (next_field(&field.bytes, &inner))
            if (is_field(&inner, 1, WIRE_BYTES) && cursor_left(&inner.bytes) > 0)
                is = cursor_left(&inner.bytes) == sizeof wanted - 1 &&
                     memcmp(inner.bytes.at, wanted, sizeof wanted - 1) == 0;
    }
    return is;
}

/* One Summary.Value; false where it is damaged. */
static bool read_value(struct cursor message, struct point *point, events_visit *visit,
                       void *context) {
    struct cursor tag = { 0 }, tensor = { 0 };
    bool has_simple = false, has_tensor = false, is_scalar = true;
    struct field field;

    while (next_field(&message, &field)) {
        if (is_field(&field, 1, WIRE_BYTES)) {
            tag = field.bytes;
        } else if (is_field(&field, 2, WIRE_32)) {
            has_simple = true;
            point->value = float_of(field.value);
        } else if (is_field(&field, 8, WIRE_BYTES)) {
            has_tensor = true;
            tensor = field.bytes;
        } else if (is_field(&field, 9, WIRE_BYTES)) {
            is_scalar = is_for_scalars(field.bytes);
        }
    }
    if (message.is_bad)
        return false;
    if (!has_simple)
        has_simple = has_tensor && is_scalar && read_tensor(tensor, &point->value);
    if (has_simple && cursor_left(&tag) > 0 && visit)
        visit(context, (const char *)tag.at, cursor_left(&tag), point);
    return true;
}

static bool read_summary(struct cursor message, struct point *point, events_visit *visit,
                         void *context) {
    struct field field;

    while (next_field(&message, &field))
        if (is_field(&field, 1, WIRE_BYTES) && !read_value(field.bytes, point, visit, context))
            return false;
    return !message.is_bad;
}

/* A time that no clock shows becomes 0. */
static int64_t microseconds(double seconds) {
    return fabs(seconds) < 9e12 ? (int64_t)llround(seconds * 1e6) : 0;
}

/* Once without a visitor, for time, step and whether all of it is sound: the summary may stand
 * before them. */
static bool read_event(struct cursor message, struct point *point, events_visit *visit,
                       void *context) {
    struct field field;

    while (next_field(&message, &field)) {
        if (is_field(&field, 1, WIRE_64))
            point->time_us = microseconds(double_of(field.value));
        else if (is_field(&field, 2, WIRE_VARINT))
            point->step = (int64_t)field.value;
        else if (is_field(&field, 5, WIRE_BYTES) &&
                 !read_summary(field.bytes, point, visit, context))
            return false;
    }
    return !message.is_bad;
}

bool events_decode(const unsigned char *data, size_t n, events_visit *visit, void *context) {
    const struct cursor message = cursor_over(data, n);
    struct point point = { 0 };

    return read_event(message, &point, NULL, NULL) && read_event(message, &point, visit, context);
}

/* ---- writing ---- */

static void put_key(struct bytes *out, unsigned number, enum wire wire) {
    bytes_varint(out, number << 3 | wire);
}

static void put_bytes(struct bytes *out, unsigned number, const void *from, size_t n) {
    put_key(out, number, WIRE_BYTES);
    bytes_varint(out, n);
    bytes_put(out, from, n);
}

/* Begins a record, with the time of its event; returns where. */
static size_t begin(struct bytes *out, int64_t time_us) {
    const size_t at = out->len;

    bytes_u64(out, 0);
    bytes_u32(out, 0);
    put_key(out, 1, WIRE_64);
    bytes_double(out, (double)time_us / 1e6);
    return at;
}

static void end(struct bytes *out, size_t at) {
    const uint64_t n = out->len - at - EVENTS_HEAD, length = htole64(n);
    const uint32_t sum = htole32(masked(crc32c(0, &length, sizeof length)));

    memcpy(out->data + at, &length, sizeof length);
    memcpy(out->data + at + sizeof length, &sum, sizeof sum);
    bytes_u32(out, masked(crc32c(0, out->data + at + EVENTS_HEAD, (size_t)n)));
}

void events_put_version(struct bytes *out, int64_t time_us) {
    static const char version[] = "brain.Event:2";
    const size_t at = begin(out, time_us);

    put_bytes(out, 3, version, sizeof version - 1);
    end(out, at);
}

static size_t varint_size(uint64_t value) {
    size_t n = 1;

    while (value >>= 7)
        n++;
    return n;
}

void events_put_scalar(struct bytes *out, const char *tag, const struct point *point) {
    const size_t at = begin(out, point->time_us), tag_n = strlen(tag);
    const size_t value_n = 1 + varint_size(tag_n) + tag_n + 1 + sizeof(uint32_t);
    const float value = (float)point->value;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_key(out, 2, WIRE_VARINT);
    bytes_varint(out, (uint64_t)point->step);
    put_key(out, 5, WIRE_BYTES); /* Summary */
    bytes_varint(out, 1 + varint_size(value_n) + value_n);
    put_key(out, 1, WIRE_BYTES); /* Summary.Value */
    bytes_varint(out, value_n);
    put_bytes(out, 1, tag, tag_n);
    put_key(out, 2, WIRE_32);
    bytes_u32(out, bits);
    end(out, at);
}
