/* SPDX-License-Identifier: Apache-2.0 */
#include "track/events_export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "track/events_file.h"

enum { FLUSH_AT = 1 << 16 };

/* A file in the making. */
struct writing {
    FILE *file;
    const char *tag;
    struct bytes bytes;
    uint64_t points;
};

static bool flush(struct writing *writing) {
    const size_t n = writing->bytes.len;

    writing->bytes.len = 0;
    return fwrite(writing->bytes.data, 1, n, writing->file) == n;
}

static bool add_point(void *context, const struct point *point) {
    struct writing *writing = context;

    events_put_scalar(&writing->bytes, writing->tag, point);
    writing->points++;
    return writing->bytes.len < FLUSH_AT || flush(writing);
}

static int write_series(struct writing *writing, struct series_reader *reader,
                        const uint32_t *series, size_t n, struct error *err) {
    events_put_version(&writing->bytes, series_reader_info(reader, series[0]).all.first_time_us);
    for (size_t i = 0; i < n; i++) {
        const struct series_info info = series_reader_info(reader, series[i]);

        writing->tag = info.name;
        if (series_points(reader, series[i], 0, info.all.count, add_point, writing, err))
            return -1;
        if (ferror(writing->file))
            break;
    }
    return 0;
}

/* Writes one file, whole or not at all. */
static int write_file(const char *path, struct series_reader *reader, const uint32_t *series,
                      size_t n, uint64_t *points, struct error *err) {
    struct writing writing = { 0 };
    char part[PATH_MAX];
    bool has_failed;
    int status, why;

    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return error_set(err, ERROR_INVALID, "the path is too long: %s", path);
    writing.file = fopen(part, "we");
    if (!writing.file)
        return error_set_errno(err, errno, "cannot write %s", path);
    status = write_series(&writing, reader, series, n, err);
    errno = 0;
    has_failed = !flush(&writing);
    has_failed |= ferror(writing.file) != 0;
    why = errno;
    if (fclose(writing.file) != 0 && !has_failed) {
        has_failed = true;
        why = errno;
    }
    bytes_release(&writing.bytes);
    if (status == 0 && !has_failed && rename(part, path) < 0) {
        has_failed = true;
        why = errno;
    }
    if (status == 0 && has_failed)
        status = error_set_errno(err, why ? why : EIO, "cannot write %s", path);
    if (status)
        unlink(part);
    else
        *points = writing.points;
    return status;
}

static int compare_series(const void *a, const void *b, void *context) {
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const struct series_info x = series_reader_info(context, left);
    const struct series_info y = series_reader_info(context, right);

    if (x.rank != y.rank)
        return x.rank < y.rank ? -1 : 1;
    if (x.attempt != y.attempt)
        return x.attempt < y.attempt ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Appends a folder to the path, and makes it. */
static int enter(char path[PATH_MAX], const char *folder, struct error *err) {
    const size_t n = strlen(path);

    if (snprintf(path + n, PATH_MAX - n, "/%s", folder) >= (int)(PATH_MAX - n))
        return error_set(err, ERROR_INVALID, "the path is too long: %s", path);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make %s", path);
    return 0;
}

/* The series of one task and attempt. */
static int export_group(const struct events_export *wish, struct series_reader *reader,
                        const uint32_t *series, size_t n, bool is_only_task, struct error *err) {
    const struct series_info info = series_reader_info(reader, series[0]);
    char path[PATH_MAX], folder[EVENTS_TASK_MOST];
    uint64_t points = 0;
    size_t length;

    if (snprintf(path, sizeof path, "%s", wish->directory) >= (int)sizeof path)
        return error_set(err, ERROR_INVALID, "the path is too long: %s", wish->directory);
    wish->task(wish->context, info.rank, folder);
    if (!is_only_task && enter(path, folder, err))
        return -1;
    snprintf(folder, sizeof folder, "attempt-%u", info.attempt);
    if (info.attempt > 0 && enter(path, folder, err))
        return -1;
    length = strlen(path);
    if (snprintf(path + length, sizeof path - length, "/%s", wish->name) >=
        (int)(sizeof path - length))
        return error_set(err, ERROR_INVALID, "the path is too long: %s", path);
    if (write_file(path, reader, series, n, &points, err))
        return -1;
    if (wish->wrote)
        wish->wrote(wish->context, path, info.rank, info.attempt, n, points);
    return 0;
}

int events_export(struct series_reader *reader, const struct events_export *wish,
                  struct error *err) {
    VEC(uint32_t) list = { 0 };
    bool is_only_task = true;
    int status = 0;

    for (uint32_t i = 0; i < series_reader_count(reader); i++)
        if (series_reader_info(reader, i).all.count > 0)
            *VEC_PUSH(&list) = i;
    if (list.len > 0)
        qsort_r(list.items, list.len, sizeof *list.items, compare_series, reader);
    for (size_t i = 1; i < list.len; i++)
        is_only_task &= series_reader_info(reader, list.items[i]).rank ==
                        series_reader_info(reader, list.items[0]).rank;
    for (size_t i = 0, n; status == 0 && i < list.len; i += n) {
        const struct series_info first = series_reader_info(reader, list.items[i]);

        for (n = 1; i + n < list.len; n++) {
            const struct series_info info = series_reader_info(reader, list.items[i + n]);

            if (info.rank != first.rank || info.attempt != first.attempt)
                break;
        }
        status = export_group(wish, reader, &list.items[i], n, is_only_task, err);
    }
    VEC_RELEASE(&list);
    return status;
}
