/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "track/store.h"

enum { UNWRITTEN_MOST = 256 * 1024 };

void store_data_name(uint64_t generation, char out[32]) {
    snprintf(out, 32, "data-%" PRIu64, generation);
}

static int open_data(struct series_store *store, struct error *err) {
    char name[32];

    if (store->data >= 0)
        return 0;
    /* The manifest names none yet: what has this name was never counted. */
    store_data_name(1, name);
    store->data = store->disk->open(store->directory, name, O_CREAT | O_TRUNC);
    if (store->data < 0)
        return error_set_errno(err, errno, "cannot make %s/%s", store->path, name);
    store->is_file_new = true;
    return 0;
}

/* Frames stay in memory until they are written, and are then at data_end. */
static int write_out(struct series_store *store, struct error *err) {
    if (store->unwritten.len == 0)
        return 0;
    if (open_data(store, err))
        return -1;
    if (disk_write_all(store->disk, store->data, store->unwritten.data, store->unwritten.len,
                       store->data_end)) {
        error_set_errno(err, errno, "cannot write the data of %s", store->path);
        store->disk->truncate(store->data, store->data_end);
        return -1;
    }
    store->is_unsynced = true;
    store->data_end += store->unwritten.len;
    store->unwritten.len = 0;
    return 0;
}

static void put_names(struct series_store *store) {
    const uint32_t n = (uint32_t)store->ids.entries.len;

    if (store->n_named == n)
        return;
    store->head.len = store->body.len = 0;
    bytes_varint(&store->head, n - store->n_named);
    for (; store->n_named < n; store->n_named++) {
        const struct map_entry *entry = &store->ids.entries.items[store->n_named];
        uint32_t numbers[2];

        memcpy(numbers, entry->key, sizeof numbers);
        data_definition_put(entry->key + SERIES_KEY, entry->n - SERIES_KEY, le32toh(numbers[0]),
                            le32toh(numbers[1]), &store->head);
    }
    data_frame_put(DATA_NAMES, &store->head, &store->body, &store->unwritten);
}

int store_spill(struct series_store *store, uint32_t series, struct error *err) {
    struct point_buffer *buffer = &store->buffers.items[series];
    size_t done = 0;

    put_names(store);
    while (done < buffer->n) {
        const size_t left = buffer->n - done, n = left < CHUNK_MOST ? left : CHUNK_MOST;

        if (store->unwritten.len >= UNWRITTEN_MOST && write_out(store, err))
            break;
        store->head.len = store->body.len = 0;
        chunk_encode(series, buffer->points + done, n, &store->head, &store->body);
        data_frame_put(DATA_CHUNK, &store->head, &store->body, &store->unwritten);
        store->n_loose++;
        done += n;
    }
    memmove(buffer->points, buffer->points + done, (buffer->n - done) * sizeof *buffer->points);
    buffer->n -= done;
    store->n_held -= done;
    return buffer->n > 0 ? -1 : 0;
}

static int spill_all(struct series_store *store, struct error *err) {
    put_names(store);
    for (uint32_t i = 0; i < store->buffers.len; i++) {
        struct point_buffer *buffer = &store->buffers.items[i];

        if (buffer->n > 0 && store_spill(store, i, err))
            return -1;
        free(buffer->points);
        *buffer = (struct point_buffer){ 0 };
    }
    return write_out(store, err);
}

static int write_manifest(struct series_store *store, int wal, uint32_t nonce,
                          const struct wal_manifest *manifest, uint64_t *length) {
    struct wal_frame frame = { 0 };
    struct bytes bytes = { 0 };
    int status;

    wal_preamble(nonce, &bytes);
    wal_frame_begin(&frame);
    wal_put_manifest(&frame, manifest);
    for (size_t i = 0; i < store->marks.entries.len; i++) {
        const struct map_entry *entry = &store->marks.entries.items[i];

        if (entry->key)
            wal_put_mark(&frame, entry->key, entry->n, entry->value);
    }
    wal_frame_end(&frame, nonce, bytes.len);
    bytes_put(&bytes, frame.bytes.data, frame.bytes.len);
    *length = bytes.len;
    status = disk_write_all(store->disk, wal, bytes.data, bytes.len, 0);
    bytes_release(&frame.bytes);
    bytes_release(&bytes);
    return status;
}

/* Nothing of this counts before the rename, so every failure until then leaves all as it was. */
static int prepare_wal(struct series_store *store, const struct wal_manifest *manifest,
                       uint32_t nonce, uint64_t *length, int *out, struct error *err) {
    const struct disk *disk = store->disk;
    const int wal = disk->open(store->directory, "wal.new", O_CREAT | O_TRUNC);

    if (wal < 0)
        return error_set_errno(err, errno, "cannot make %s/wal", store->path);
    if (write_manifest(store, wal, nonce, manifest, length) || disk->sync(wal) ||
        (store->is_file_new && disk->sync_directory(store->directory)) ||
        disk->rename(store->directory, "wal.new", "wal")) {
        error_set_errno(err, errno, "cannot write %s/wal", store->path);
        disk->close(wal);
        disk->unlink(store->directory, "wal.new");
        return -1;
    }
    *out = wal;
    return 0;
}

int store_publish(struct series_store *store, const struct wal_manifest *manifest,
                  struct error *err) {
    uint32_t nonce;
    uint64_t length = 0;
    int wal = -1;

    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce)
        nonce = store->nonce + 1;
    if (prepare_wal(store, manifest, nonce, &length, &wal, err))
        return -1;
    if (store->disk->sync_directory(store->directory)) {
        error_set_errno(err, errno, "cannot sync %s", store->path);
        store->is_broken = true; /* which of the two a crash would leave is not known */
        store->disk->close(wal);
        return -1;
    }
    if (store->wal >= 0)
        store->disk->close(store->wal);
    store->wal = wal;
    store->wal_length = length;
    store->nonce = nonce;
    store->manifest = *manifest;
    store->is_file_new = false;
    wal_frame_begin(&store->frame);
    store->is_frame_lost = store->is_changed = store->is_log_old = false;
    return 0;
}

int store_rotate(struct series_store *store, struct error *err) {
    struct wal_manifest manifest = store->manifest;

    if (spill_all(store, err))
        return -1;
    if (store->is_unsynced && store->disk->sync(store->data)) {
        store->is_broken = true;
        return error_set_errno(err, errno, "cannot write the data of %s", store->path);
    }
    store->is_unsynced = false;
    if (manifest.generation == 0 && store->data >= 0)
        manifest.generation = 1;
    manifest.data_length = store->data_end;
    return store_publish(store, &manifest, err);
}
