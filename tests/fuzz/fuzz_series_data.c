/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads any bytes as the data file of series, with an index at the offset that the first four bytes
 * name (0: none), and asks for points and charts. The sums of heads and nodes are mended where
 * there are frames, so that what is behind them is reached. Beyond "no crash" and "no hang": a
 * chart never counts more points than the series says it has.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "track/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 16, BUCKETS = 16 };

static void require(bool law) {
    if (!law)
        abort();
}

static void put_u32(unsigned char *at, uint32_t value) {
    value = htole32(value);
    memcpy(at, &value, sizeof value);
}

static void mend_sums(unsigned char *data, size_t n) {
    size_t at = 0;
    struct data_frame frame;

    while (n - at >= DATA_FRAME && data_frame_take(data + at, &frame) &&
           data_frame_size(&frame) <= n - at) {
        unsigned char *head = data + at + DATA_FRAME, *body = head + frame.head_length;

        put_u32(data + at + DATA_FRAME - 4,
                crc32c(crc32c(0, data + at, DATA_FRAME - 4), head, frame.head_length));
        for (size_t i = 0; frame.kind == DATA_NODES && i + DATA_NODE <= frame.body_length;
             i += DATA_NODE)
            put_u32(body + i + DATA_NODE - 4, crc32c(0, body + i, DATA_NODE - 4));
        at += data_frame_size(&frame);
    }
}

static bool count_point(void *context, const struct point *point) {
    (void)point;
    return ++*(uint64_t *)context < 1 << 16;
}

static void ask(struct series_reader *reader, uint32_t id) {
    static const enum series_axis axes[] = { SERIES_BY_STEP, SERIES_BY_TIME, SERIES_BY_INDEX };
    const struct series_info info = series_reader_info(reader, id);
    struct summary out[BUCKETS];
    struct series_range range;
    struct error err;
    uint64_t n = 0;

    require(info.name != NULL);
    if (series_points(reader, id, 0, UINT64_MAX, count_point, &n, &err) == 0)
        require(n <= info.all.count);
    for (size_t i = 0; i < ARRAY_LEN(axes); i++) {
        uint64_t total = 0;

        if (!series_extent(reader, &id, 1, axes[i], &range) || range.from > range.to ||
            series_buckets(reader, &id, 1, &range, BUCKETS, out, &err))
            continue;
        for (size_t b = 0; b < BUCKETS; b++)
            total += out[b].count;
        require(total <= info.all.count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct series_reader reader = { .catalog = CATALOG_INIT };
    struct wal_manifest manifest = { .generation = 1 };
    struct error err;
    unsigned char *copy;
    uint32_t index_at;
    int fd;

    if (size <= 4 || size > INPUT_MAX)
        return 0;
    memcpy(&index_at, data, 4);
    manifest.data_length = size - 4;
    manifest.index_at = le32toh(index_at);
    copy = malloc(size - 4);
    require(copy);
    memcpy(copy, data + 4, size - 4);
    mend_sums(copy, size - 4);
    fd = memfd_create("data", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, copy, size - 4) == (ssize_t)(size - 4));
    if (catalog_load(&reader.catalog, fd, &manifest, &err) == 0) {
        while (reader.tails.len < reader.catalog.series.len)
            VEC_PUSH(&reader.tails);
        for (uint32_t id = 0; id < reader.catalog.series.len && id < 8; id++)
            ask(&reader, id);
    }
    VEC_RELEASE(&reader.tails);
    catalog_release(&reader.catalog);
    close(fd);
    free(copy);
    return 0;
}
