/* SPDX-License-Identifier: Apache-2.0 */
#include "track/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "track/disk.h"

/* A merge removes the data file that an older log names: the log is then read again. */
enum { TRIES = 100 };

struct reading {
    struct series_reader *reader;
    int directory;
    bool has_manifest, is_outdated;
    int status;
    struct error *err;
};

static void on_manifest(void *context, const struct wal_manifest *manifest) {
    struct reading *reading = context;
    struct series_reader *reader = reading->reader;
    char name[32];

    if (reading->has_manifest)
        return;
    reading->has_manifest = true;
    if (manifest->generation == 0)
        return;
    snprintf(name, sizeof name, "data-%" PRIu64, manifest->generation);
    reader->data = file_open_regular_at(reading->directory, name, O_RDONLY, 0);
    if (reader->data < 0) {
        reading->is_outdated = errno == ENOENT;
        reading->status = error_set_errno(reading->err, errno, "cannot open %s", name);
        return;
    }
    reading->status = catalog_load(&reader->catalog, reader->data, manifest, reading->err);
}

static void on_define(void *context, const char *name, size_t n, uint32_t rank, uint32_t attempt) {
    struct reading *reading = context;

    catalog_define(&reading->reader->catalog, name, n, rank, attempt);
}

static void on_point(void *context, uint32_t id, const struct point *point) {
    struct series_reader *reader = ((struct reading *)context)->reader;
    const struct summary one = summary_of(point, 1);

    if (id >= reader->catalog.series.len) {
        reader->catalog.damaged++;
        return;
    }
    while (reader->tails.len < reader->catalog.series.len)
        VEC_PUSH(&reader->tails);
    *VEC_PUSH(&reader->tails.items[id]) = *point;
    summary_append(&reader->catalog.series.items[id].all, &one);
}

static const struct wal_visitor into_reader = {
    .define = on_define,
    .manifest = on_manifest,
    .point = on_point,
};

static int read_log(const struct reading *reading, struct bytes *log) {
    const int fd = file_open_regular_at(reading->directory, "wal", O_RDONLY, 0);
    int status;

    if (fd < 0)
        return error_set_errno(reading->err, errno, "cannot open the log of series");
    status = disk_read_log(fd, log, reading->err);
    close(fd);
    return status;
}

static int read_store(struct reading *reading) {
    struct bytes log = { 0 };
    int status = read_log(reading, &log);

    if (status == 0) {
        const size_t end = wal_read(log.data, log.len, &into_reader, reading);

        status = reading->status;
        if (status == 0 && (end == 0 || !reading->has_manifest))
            status = error_set(reading->err, ERROR_IO,
                               "the log of series is damaged, or of another version");
    }
    bytes_release(&log);
    return status;
}

void series_reader_free(struct series_reader *reader) {
    if (!reader)
        return;
    if (reader->data >= 0)
        close(reader->data);
    for (size_t i = 0; i < reader->tails.len; i++)
        VEC_RELEASE(&reader->tails.items[i]);
    VEC_RELEASE(&reader->tails);
    catalog_release(&reader->catalog);
    free(reader);
}

static struct series_reader *reader_new(void) {
    struct series_reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        abort();
    reader->data = -1;
    reader->catalog = (struct catalog)CATALOG_INIT;
    return reader;
}

int series_reader_open(const char *directory, struct series_reader **out, struct error *err) {
    struct reading reading = { .err = err };
    int status = -1;

    reading.directory = file_open_linkless_directory(directory);
    if (reading.directory < 0)
        return error_set_errno(err, errno, "cannot open %s", directory);
    for (int i = 0; i < TRIES; i++) {
        reading.reader = reader_new();
        reading.has_manifest = reading.is_outdated = false;
        reading.status = 0;
        status = read_store(&reading);
        if (status == 0)
            break;
        series_reader_free(reading.reader);
        if (!reading.is_outdated)
            break;
    }
    close(reading.directory);
    if (status)
        return error_wrap(err, "%s", directory);
    while (reading.reader->tails.len < reading.reader->catalog.series.len)
        VEC_PUSH(&reading.reader->tails);
    *out = reading.reader;
    return 0;
}

uint32_t series_reader_count(const struct series_reader *reader) {
    return (uint32_t)reader->catalog.series.len;
}

struct series_info series_reader_info(const struct series_reader *reader, uint32_t series) {
    const struct catalog_series *found = &reader->catalog.series.items[series];

    return (struct series_info){
        .name = found->name,
        .rank = found->rank,
        .attempt = found->attempt,
        .all = found->all,
    };
}

uint64_t series_reader_damaged(const struct series_reader *reader) {
    return reader->catalog.damaged;
}
