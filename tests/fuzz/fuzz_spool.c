/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds any bytes to the reader of spool segments. Beyond "no crash": it ends, what it yields is
 * within what it was given, and windows of any size yield the same as the whole.
 *
 * A checksum would keep a fuzzer out, so the input is read a second time with the checksums made
 * right: what is inside a record is reached, too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "track/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

static void require(bool law) {
    if (!law)
        abort();
}

/* A number for all that was yielded. */
struct digest {
    uint64_t sum;
    size_t items;
};

static void add(struct digest *digest, const void *bytes, size_t n) {
    digest->sum = myelin_spool_checksum(digest->sum ^ n, bytes, n) + digest->sum * 31;
}

static void add_item(struct digest *digest, struct spool_reader *reader,
                     const struct spool_item *item) {
    digest->items++;
    add(digest, &item->kind, sizeof item->kind);
    add(digest, &item->time_us, sizeof item->time_us);
    if (item->kind == SPOOL_ITEM_RECORD)
        add(digest, item->json, item->json_n);
    for (size_t i = 0; item->kind == SPOOL_ITEM_POINTS && i < item->n; i++) {
        const struct spool_name *name = spool_item_name(reader, item, i);
        const double value = spool_item_value(item, i);

        require(name->text && strlen(name->text) == name->length);
        require(name->length > 0 && name->length <= MYELIN_NAME_MAX);
        add(digest, name->text, name->length);
        add(digest, &value, sizeof value);
        add(digest, &item->step, sizeof item->step);
    }
}

/* Reads with windows of this size, which grow where a record needs it. */
static struct digest read_all(const uint8_t *data, size_t size, size_t step) {
    struct digest digest = { 0 };
    struct spool_reader reader;
    struct spool_item item;
    size_t want = step;

    if (spool_begin(&reader, data, size) != SPOOL_HEAD_GOOD)
        return digest;
    for (;;) {
        const uint64_t from = reader.offset;
        const size_t left = from < size ? size - (size_t)from : 0, n = left < want ? left : want;
        const struct spool_window window = { data + size - left, from, n };

        spool_next(&reader, &window, &item);
        require(reader.offset <= reader.header.size && reader.offset >= from);
        if (item.kind == SPOOL_ITEM_SHORT && n < left) {
            want *= 2;
            continue;
        }
        if (item.kind >= SPOOL_ITEM_NONE)
            break;
        require(reader.offset > from);
        add_item(&digest, &reader, &item);
        want = step;
    }
    spool_release(&reader);
    return digest;
}

/* Makes the checksums of the header and of all records right. */
static void mend(uint8_t *data, size_t size) {
    struct myelin_spool_header header;

    if (size < sizeof header)
        return;
    memcpy(&header, data, sizeof header);
    header.magic = MYELIN_SPOOL_MAGIC;
    header.version = MYELIN_SPOOL_VERSION;
    header.header_size = MYELIN_SPOOL_HEADER;
    header.size = size & ~(size_t)7;
    header.checksum = 0;
    header.checksum = myelin_spool_checksum(0, &header, MYELIN_SPOOL_FIXED);
    memcpy(data, &header, sizeof header);
    for (size_t at = sizeof header; at + 8 <= header.size;) {
        uint64_t word;
        size_t room;

        memcpy(&word, data + at, sizeof word);
        room = myelin_spool_room((word >> 32) & 0xffffff);
        if (word == 0 || room > header.size - at)
            return;
        word = myelin_spool_word(header.nonce, at, (uint32_t)(word >> 32), data + at + 8);
        memcpy(data + at, &word, sizeof word);
        at += room;
    }
}

static void check(const uint8_t *data, size_t size) {
    const struct digest whole = read_all(data, size, size + 1), pieces = read_all(data, size, 64);

    require(whole.sum == pieces.sum && whole.items == pieces.items);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct spool_file file;
    uint8_t *mended;
    char *name;

    if (size > INPUT_MAX)
        return 0;
    check(data, size);
    mended = malloc(size + 1);
    name = malloc(size + 1);
    if (!mended || !name)
        abort();
    memcpy(mended, data, size);
    mend(mended, size);
    check(mended, size);
    memcpy(name, data, size);
    name[size] = '\0';
    if (spool_file_parse(name, &file))
        require(file.chain_n < strlen(name));
    free(mended);
    free(name);
    return 0;
}
