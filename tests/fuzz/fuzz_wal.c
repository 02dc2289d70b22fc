/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as a log of series: as they are, and as the payload of one sound frame. Beyond
 * "no crash": what the log is said to end with is no further than it goes, what a cut log gives is
 * a prefix, and texts lie within it.
 */
#include <stdlib.h>

#include "track/wal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16 };

struct seen {
    const unsigned char *data;
    size_t n, records;
};

static void require(bool law) {
    if (!law)
        abort();
}

static void see_text(struct seen *seen, const char *text, size_t n) {
    const unsigned char *at = (const unsigned char *)text;

    require(at >= seen->data && n <= seen->n && at + n <= seen->data + seen->n);
    seen->records++;
}

static void on_define(void *context, const char *name, size_t n, uint32_t rank, uint32_t attempt) {
    (void)rank;
    (void)attempt;
    see_text(context, name, n);
}

static void on_mark(void *context, const char *source, size_t n, uint64_t offset) {
    (void)offset;
    see_text(context, source, n);
}

static void on_unmark(void *context, const char *source, size_t n) {
    see_text(context, source, n);
}

static void on_manifest(void *context, const struct wal_manifest *manifest) {
    (void)manifest;
    ((struct seen *)context)->records++;
}

static void on_point(void *context, uint32_t series, const struct point *point) {
    (void)point;
    require(series < UINT32_MAX);
    ((struct seen *)context)->records++;
}

static const struct wal_visitor visitor = {
    .define = on_define,
    .mark = on_mark,
    .unmark = on_unmark,
    .manifest = on_manifest,
    .point = on_point,
};

static size_t read_all(const unsigned char *data, size_t n, size_t *end) {
    struct seen seen = { data, n, 0 };

    *end = wal_read(data, n, &visitor, &seen);
    require(*end <= n);
    return seen.records;
}

static void read_and_cut(const unsigned char *data, size_t n) {
    size_t end, cut_end;
    const size_t records = read_all(data, n, &end);

    require(read_all(data, end, &cut_end) == records && cut_end == end);
    if (end > 0) {
        require(read_all(data, end - 1, &cut_end) <= records);
        require(cut_end < end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wal_frame frame = { 0 };
    struct bytes log = { 0 };
    size_t end;

    if (size == 0 || size > INPUT_MAX)
        return 0;
    read_and_cut(data, size);
    wal_preamble(1, &log);
    wal_frame_begin(&frame);
    bytes_put(&frame.bytes, data, size);
    wal_frame_end(&frame, 1, log.len);
    bytes_put(&log, frame.bytes.data, frame.bytes.len);
    read_all(log.data, log.len, &end);
    require(end == log.len);
    bytes_release(&frame.bytes);
    bytes_release(&log);
    return 0;
}
