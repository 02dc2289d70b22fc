/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds any bytes to the reader of event files. Beyond "no crash": it ends, what it yields is
 * within what it was given, bytes that come in pieces yield the same as the whole, and what was
 * read is read again after it was written.
 *
 * A checksum would keep a fuzzer out, so the input is also read as the data of one record, and a
 * second time with the checksums made right.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "track/events_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16, TAG_MAX = 1 << 10 };

static void require(bool law) {
    if (!law)
        abort();
}

/* A number for all that was yielded. */
struct digest {
    uint32_t sum;
    size_t points, records;
    const uint8_t *from, *to;
};

static void compare(void *context, const char *tag, size_t n, const struct point *point) {
    const struct point *wanted = context;
    const float value = (float)wanted->value;

    (void)tag, (void)n;
    require(point->step == wanted->step);
    require((double)value == point->value || (isnan(value) && isnan(point->value)));
}

static void on_point(void *context, const char *tag, size_t n, const struct point *point) {
    struct digest *digest = context;
    struct bytes again = { 0 };
    struct events_record record;
    char copy[TAG_MAX];

    require(n > 0 && (const uint8_t *)tag >= digest->from &&
            (const uint8_t *)tag + n <= digest->to);
    digest->points++;
    digest->sum = crc32c(digest->sum, tag, n);
    digest->sum = crc32c(digest->sum, point, sizeof *point);
    if (n >= sizeof copy || memchr(tag, '\0', n))
        return;
    memcpy(copy, tag, n);
    copy[n] = '\0';
    events_put_scalar(&again, copy, point);
    record = events_next(again.data, again.len);
    require(record.kind == EVENTS_RECORD && record.room == again.len);
    require(events_decode(record.data, record.n, compare, (void *)(uintptr_t)point));
    bytes_release(&again);
}

/* Reads with at most so many bytes at once, more where a record needs it. */
static struct digest read_all(const uint8_t *data, size_t size, size_t most) {
    struct digest digest = { .from = data, .to = data + size };
    size_t at = 0, want = most;

    while (at < size) {
        const size_t n = size - at < want ? size - at : want;
        const struct events_record record = events_next(data + at, n);

        require(record.room > 0);
        if (record.kind == EVENTS_SHORT) {
            require(record.room > n);
            if (record.room > size - at)
                break;
            want = (size_t)record.room;
            continue;
        }
        want = most;
        if (record.kind == EVENTS_LARGE && record.room > size - at)
            break;
        require(record.room <= n);
        digest.records += record.kind == EVENTS_RECORD;
        if (record.kind == EVENTS_RECORD)
            events_decode(record.data, record.n, on_point, &digest);
        at += (size_t)record.room;
    }
    return digest;
}

static uint32_t masked(uint32_t crc) {
    return htole32((crc >> 15 | crc << 17) + 0xa282ead8U);
}

/* Makes the checksums of all records right. */
static void mend(uint8_t *data, size_t size) {
    for (size_t at = 0; size - at >= EVENTS_HEAD + 4;) {
        uint64_t length;
        uint32_t sum;

        memcpy(&length, data + at, sizeof length);
        length = le64toh(length);
        sum = masked(crc32c(0, data + at, sizeof length));
        memcpy(data + at + sizeof length, &sum, sizeof sum);
        if (length > size - at - EVENTS_HEAD - 4)
            return;
        sum = masked(crc32c(0, data + at + EVENTS_HEAD, (size_t)length));
        memcpy(data + at + EVENTS_HEAD + length, &sum, sizeof sum);
        at += EVENTS_HEAD + (size_t)length + 4;
    }
}

static void check(const uint8_t *data, size_t size) {
    const struct digest whole = read_all(data, size, size + 1), pieces = read_all(data, size, 16);

    require(whole.sum == pieces.sum && whole.points == pieces.points &&
            whole.records == pieces.records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct digest digest = { .from = data, .to = data + size };
    uint8_t *mended;

    if (size > INPUT_MAX)
        return 0;
    check(data, size);
    if (!events_decode(data, size, on_point, &digest))
        require(digest.points == 0);
    mended = malloc(size + 1);
    if (!mended)
        abort();
    memcpy(mended, data, size);
    mend(mended, size);
    check(mended, size);
    free(mended);
    return 0;
}
