/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "track/store.h"

/* The log is read into a store whose data file is opened by the first record, the manifest. */
struct recovery {
    struct series_store *store;
    bool has_manifest;
    int status;
    struct error *err;
};

static int open_counted(struct series_store *store, struct error *err) {
    struct catalog catalog = CATALOG_INIT;
    char name[32];
    int status;

    store_data_name(store->manifest.generation, name);
    store->data = store->disk->open(store->directory, name, 0);
    if (store->data < 0)
        return error_set_errno(err, errno, "cannot open %s/%s", store->path, name);
    status = catalog_load(&catalog, store->data, &store->manifest, err);
    if (status)
        error_wrap(err, "%s", store->path);
    else
        store->disk->truncate(store->data, store->manifest.data_length); /* what nobody counts */
    for (size_t i = 0; i < catalog.series.len; i++) {
        const struct catalog_series *series = &catalog.series.items[i];

        store_define(store, series->name, series->name_length, series->rank, series->attempt);
    }
    store->n_named = (uint32_t)store->buffers.len;
    store->n_loose = catalog.loose.len;
    store->loose_at = store->manifest.data_length - catalog.loose_bytes;
    store->data_end = store->manifest.data_length;
    catalog_release(&catalog);
    return status;
}

/* Files that no manifest names are what a crash left. */
static void remove_strays(struct series_store *store) {
    char counted[32];
    const int fd = openat(store->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    store_data_name(store->manifest.generation, counted);
    while (entries && (entry = readdir(entries)))
        if ((strncmp(entry->d_name, "data-", 5) == 0 && strcmp(entry->d_name, counted) != 0) ||
            strcmp(entry->d_name, "wal.new") == 0)
            store->disk->unlink(store->directory, entry->d_name);
    if (entries)
        closedir(entries);
    else if (fd >= 0)
        close(fd);
}

static void on_manifest(void *context, const struct wal_manifest *manifest) {
    struct recovery *recovery = context;
    struct series_store *store = recovery->store;

    if (recovery->has_manifest)
        return;
    recovery->has_manifest = true;
    store->manifest = *manifest;
    remove_strays(store);
    if (manifest->generation > 0)
        recovery->status = open_counted(store, recovery->err);
}

static void on_define(void *context, const char *name, size_t n, uint32_t rank, uint32_t attempt) {
    struct recovery *recovery = context;

    store_define(recovery->store, name, n, rank, attempt);
}

static void on_mark(void *context, const char *source, size_t n, uint64_t offset) {
    struct recovery *recovery = context;

    map_put(&recovery->store->marks, source, n, offset);
}

static void on_unmark(void *context, const char *source, size_t n) {
    struct recovery *recovery = context;

    map_remove(&recovery->store->marks, source, n);
}

static void on_point(void *context, uint32_t series, const struct point *point) {
    struct recovery *recovery = context;

    if (recovery->status == 0 && series < recovery->store->buffers.len)
        store_hold(recovery->store, series, point);
}

static const struct wal_visitor into_store = {
    .define = on_define,
    .mark = on_mark,
    .unmark = on_unmark,
    .manifest = on_manifest,
    .point = on_point,
};

/* What was found may have been written by somebody who was killed before it was synced. It counts
 * from now on, so it is synced now. Nothing is appended to it: had its disk failed, it might be in
 * the kernel's memory alone, and what stands behind it would be lost with it. */
static int trust_log(struct series_store *store, const unsigned char *log, size_t n,
                     struct error *err) {
    if (store->ids.entries.len != store->buffers.len)
        return error_set(err, ERROR_IO, "%s is damaged: it has a series twice", store->path);
    store->nonce = wal_nonce(log);
    if (store->wal_length < n)
        store->disk->truncate(store->wal, store->wal_length);
    if (store->disk->sync(store->wal))
        return error_set_errno(err, errno, "cannot write %s/wal", store->path);
    store->is_log_old = true;
    return 0;
}

static int read_log(struct series_store *store, struct error *err) {
    struct recovery recovery = { .store = store, .err = err };
    struct bytes log = { 0 };

    if (disk_read_log(store->wal, &log, err)) {
        bytes_release(&log);
        return error_wrap(err, "%s", store->path);
    }
    store->wal_length = wal_read(log.data, log.len, &into_store, &recovery);
    if (recovery.status == 0 && (store->wal_length == 0 || !recovery.has_manifest))
        recovery.status =
            error_set(err, ERROR_IO, "%s/wal is damaged, or of another version", store->path);
    if (recovery.status == 0)
        recovery.status = trust_log(store, log.data, log.len, err);
    bytes_release(&log);
    return recovery.status;
}

int store_recover(struct series_store *store, struct error *err) {
    const struct wal_manifest none = { 0 };

    store->wal = store->disk->open(store->directory, "wal", 0);
    if (store->wal < 0 && errno == ENOENT) {
        remove_strays(store);
        return store_publish(store, &none, err);
    }
    if (store->wal < 0)
        return error_set_errno(err, errno, "cannot open %s/wal", store->path);
    return read_log(store, err);
}
