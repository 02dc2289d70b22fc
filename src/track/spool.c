/* SPDX-License-Identifier: Apache-2.0 */
#include "track/spool.h"

#include <stdlib.h>
#include <string.h>

#include "codec/utf8.h"

enum spool_head spool_begin(struct spool_reader *reader, const void *bytes, size_t n) {
    struct myelin_spool_header header, fixed;

    *reader = (struct spool_reader){ 0 };
    if (n < sizeof header)
        return SPOOL_HEAD_NOTHING;
    memcpy(&header, bytes, sizeof header);
    if (header.magic == 0)
        return SPOOL_HEAD_NOTHING;
    if (header.magic != MYELIN_SPOOL_MAGIC)
        return SPOOL_HEAD_BAD;
    if (header.version != MYELIN_SPOOL_VERSION)
        return SPOOL_HEAD_OTHER; /* whose checksum may be another, too */
    fixed = header;
    fixed.checksum = 0;
    if (myelin_spool_checksum(0, &fixed, MYELIN_SPOOL_FIXED) != header.checksum)
        return SPOOL_HEAD_BAD;
    if (header.header_size != MYELIN_SPOOL_HEADER || header.size < MYELIN_SPOOL_HEADER ||
        header.size > MYELIN_SPOOL_SIZE_MAX || header.size % 8)
        return SPOOL_HEAD_BAD;
    reader->header = header;
    reader->offset = MYELIN_SPOOL_HEADER;
    return SPOOL_HEAD_GOOD;
}

void spool_release(struct spool_reader *reader) {
    for (size_t i = 0; i < reader->names.len; i++)
        free(reader->names.items[i].text);
    VEC_RELEASE(&reader->names);
    *reader = (struct spool_reader){ 0 };
}

/* ---- records: out is as the caller left it, except for its kind and what the kind has */

static uint32_t number_at(const unsigned char *bytes) {
    uint32_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t word_at(const unsigned char *bytes) {
    uint64_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

static struct spool_name *name_at(struct spool_reader *reader, uint32_t number) {
    return number < reader->names.len && reader->names.items[number].text
               ? &reader->names.items[number]
               : NULL;
}

static bool is_name(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return n > 0 && n <= MYELIN_NAME_MAX && utf8_valid_prefix(text, n) == n;
}

static enum spool_item_kind take_name(struct spool_reader *reader, const unsigned char *payload,
                                      size_t length, struct spool_item *out) {
    const char *text = (const char *)payload + sizeof(uint32_t);
    struct spool_name *name;
    uint32_t number;

    (void)out;
    if (length < sizeof number || !is_name(text, length - sizeof number))
        return SPOOL_ITEM_INVALID;
    number = number_at(payload);
    if (number >= MYELIN_NAMES_MAX || name_at(reader, number))
        return SPOOL_ITEM_INVALID;
    while (reader->names.len <= number)
        *VEC_PUSH(&reader->names) = (struct spool_name){ .slot = UINT32_MAX };
    name = &reader->names.items[number];
    name->length = (uint32_t)(length - sizeof number);
    name->text = strndup(text, name->length);
    if (!name->text)
        abort();
    return SPOOL_ITEM_NAME;
}

static enum spool_item_kind take_points(struct spool_reader *reader, const unsigned char *payload,
                                        size_t length, struct spool_item *out) {
    const size_t head = 2 * sizeof(int64_t), each = sizeof(double) + sizeof(uint32_t);

    if (length < head + each || (length - head) % each)
        return SPOOL_ITEM_INVALID;
    out->n = (length - head) / each;
    out->time_us = (int64_t)word_at(payload);
    out->step = (int64_t)word_at(payload + 8);
    out->values = payload + head;
    out->numbers = out->values + out->n * sizeof(double);
    for (size_t i = 0; i < out->n; i++)
        if (!name_at(reader, number_at(out->numbers + i * sizeof(uint32_t))))
            return SPOOL_ITEM_INVALID;
    for (size_t i = 0; i < out->n; i++) {
        struct spool_name *name = spool_item_name(reader, out, i);

        name->has_step = true;
        name->step = out->step;
    }
    return SPOOL_ITEM_POINTS;
}

static enum spool_item_kind take_next(struct spool_reader *reader, const unsigned char *payload,
                                      size_t length, struct spool_item *out) {
    struct spool_name *name;
    uint64_t packed;

    if (length != 2 * sizeof(uint64_t))
        return SPOOL_ITEM_INVALID;
    packed = word_at(payload + 8);
    out->n = 1;
    out->number = (uint32_t)(packed & 0xffff);
    out->values = payload;
    name = name_at(reader, out->number);
    if (!name || !name->has_step || name->step == INT64_MAX)
        return SPOOL_ITEM_INVALID;
    out->time_us = myelin_spool_epoch_us(&reader->header) + (int64_t)(packed >> 16);
    out->step = ++name->step;
    return SPOOL_ITEM_POINTS;
}

static enum spool_item_kind take_record(const unsigned char *payload, size_t length, unsigned type,
                                        struct spool_item *out) {
    if (length < sizeof(int64_t) || length - sizeof(int64_t) > MYELIN_RECORD_MAX)
        return SPOOL_ITEM_INVALID;
    out->record = (enum myelin_kind)type;
    out->time_us = (int64_t)word_at(payload);
    out->json = (const char *)payload + sizeof(int64_t);
    out->json_n = length - sizeof(int64_t);
    return SPOOL_ITEM_RECORD;
}

static enum spool_item_kind take(struct spool_reader *reader, unsigned type,
                                 const unsigned char *payload, size_t length,
                                 struct spool_item *out) {
    switch (type) {
    case MYELIN_SPOOL_NAME: return take_name(reader, payload, length, out);
    case MYELIN_SPOOL_POINTS: return take_points(reader, payload, length, out);
    case MYELIN_SPOOL_NEXT: return take_next(reader, payload, length, out);
    case MYELIN_PARAMS:
    case MYELIN_TAGS:
    case MYELIN_SUMMARY:
    case MYELIN_ARTIFACT: return take_record(payload, length, type, out);
    default: return SPOOL_ITEM_INVALID;
    }
}

void spool_next(struct spool_reader *reader, const struct spool_window *window,
                struct spool_item *out) {
    const uint64_t size = reader->header.size, at = reader->offset;
    const unsigned char *here;
    uint64_t word;
    size_t length, left;

    *out = (struct spool_item){ .kind = SPOOL_ITEM_NONE };
    if (at + sizeof word > size)
        return;
    out->kind = SPOOL_ITEM_SHORT;
    if (at < window->from || at - window->from > window->n)
        return;
    here = window->bytes + (at - window->from);
    left = window->n - (size_t)(at - window->from);
    if (left < sizeof word)
        return;
    word = word_at(here);
    length = (size_t)(word >> 32) & 0xffffff;
    if (word == 0)
        out->kind = SPOOL_ITEM_NONE;
    else if (myelin_spool_room(length) > size - at)
        out->kind = SPOOL_ITEM_BAD;
    if (word == 0 || out->kind == SPOOL_ITEM_BAD || myelin_spool_room(length) > left)
        return;
    if (myelin_spool_word(reader->header.nonce, at, (uint32_t)(word >> 32), here + 8) != word) {
        out->kind = SPOOL_ITEM_BAD;
        return;
    }
    out->kind = take(reader, (unsigned)(word >> 56), here + 8, length, out);
    reader->offset += myelin_spool_room(length);
}

struct spool_name *spool_item_name(struct spool_reader *reader, const struct spool_item *item,
                                   size_t i) {
    return &reader->names.items[item->numbers ? number_at(item->numbers + i * sizeof(uint32_t))
                                              : item->number];
}

double spool_item_value(const struct spool_item *item, size_t i) {
    double value;

    memcpy(&value, item->values + i * sizeof value, sizeof value);
    return value;
}

/* ---- file names */

static const char *skip(const char *text, const char *set, size_t most) {
    const size_t n = strspn(text, set);

    return n > 0 && n <= most ? text + n : NULL;
}

static const char digits[] = "0123456789";

/* The end of "<pid>-<start>", or NULL. */
static const char *skip_chain(const char *text) {
    const char *at = skip(text, digits, 10);

    return at && *at == '-' ? skip(at + 1, "0123456789abcdef", 16) : NULL;
}

bool spool_file_parse(const char *file_name, struct spool_file *out) {
    const char *at = skip_chain(file_name);
    const char *number;

    if (!at || *at != '-')
        return false;
    number = at + 1;
    at = skip(number, digits, 9);
    if (!at || at - number < 6 || strcmp(at, MYELIN_SPOOL_SUFFIX) != 0)
        return false;
    *out = (struct spool_file){ .number = (uint32_t)strtoul(number, NULL, 10),
                                .chain_n = (size_t)(number - 1 - file_name) };
    return true;
}

bool spool_count_parse(const char *file_name, struct spool_count *out) {
    const char *mark = strstr(file_name, MYELIN_SPOOL_DROPPED), *chain, *end;

    if (!mark || mark == file_name)
        return false;
    chain = mark + strlen(MYELIN_SPOOL_DROPPED);
    end = skip_chain(chain);
    if (!end || (*end && strcmp(end, ".part") != 0))
        return false;
    *out = (struct spool_count){ .task_n = (size_t)(mark - file_name),
                                 .chain = chain,
                                 .chain_n = (size_t)(end - chain) };
    return true;
}
