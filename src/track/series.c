/* SPDX-License-Identifier: Apache-2.0 */
#include "track/series.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/utf8.h"
#include "track/store.h"

enum {
    WAL_LIMIT = 4 << 20,
    WAL_BYTES_A_POINT = 8, /* fewer than there are: what is held is bounded by the log's limit */
    LOOSE_MOST = 1 << 16,  /* chunks that readers have to look through one by one */
    BUFFER_FIRST = 8,      /* points */
};

static uint64_t held_limit(const struct series_store *store) {
    return store->wal_limit / WAL_BYTES_A_POINT;
}

static int lock_directory(struct series_store *store, struct error *err) {
    struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    store->lock = openat(store->directory, "lock",
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (store->lock < 0)
        return error_set_errno(err, errno, "cannot lock %s", store->path);
    if (fcntl(store->lock, F_OFD_SETLK, &all) == 0)
        return 0;
    if (errno == EAGAIN || errno == EACCES)
        return error_set(err, ERROR_CONFLICT, "somebody else writes %s", store->path);
    return error_set_errno(err, errno, "cannot lock %s", store->path);
}

/* A new directory is on the disk only when its parent is. */
int store_open_directory(struct series_store *store, struct error *err) {
    const bool is_new = file_make_directory_linkless(store->path, 0777) == 0;

    store->directory = file_open_linkless_directory(store->path);
    if (store->directory < 0)
        return error_set_errno(err, errno, "cannot open %s", store->path);
    if (is_new) {
        const int parent = openat(store->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (parent >= 0) {
            fsync(parent);
            close(parent);
        }
    }
    return lock_directory(store, err);
}

int series_store_open(const char *directory, const struct series_options *options,
                      struct series_store **out, struct error *err) {
    struct series_store *store = calloc(1, sizeof *store);

    if (!store || !(store->path = strdup(directory)))
        abort();
    store->directory = store->lock = store->wal = store->data = -1;
    store->disk = options && options->disk ? options->disk : &disk_real;
    store->wal_limit = options && options->wal_limit ? options->wal_limit : WAL_LIMIT;
    wal_frame_begin(&store->frame);
    if (store_open_directory(store, err) || store_recover(store, err)) {
        series_store_close(store);
        return -1;
    }
    *out = store;
    return 0;
}

void series_store_close(struct series_store *store) {
    if (!store)
        return;
    if (store->wal >= 0)
        store->disk->close(store->wal);
    if (store->data >= 0)
        store->disk->close(store->data);
    if (store->directory >= 0)
        close(store->directory);
    if (store->lock >= 0)
        close(store->lock);
    for (size_t i = 0; i < store->buffers.len; i++)
        free(store->buffers.items[i].points);
    VEC_RELEASE(&store->buffers);
    map_release(&store->ids);
    map_release(&store->marks);
    bytes_release(&store->frame.bytes);
    bytes_release(&store->unwritten);
    bytes_release(&store->head);
    bytes_release(&store->body);
    free((char *)(uintptr_t)store->path);
    free(store);
}

/* A name as it is kept; returns its length. */
static size_t clean_name(char out[SERIES_NAME_MOST], const char *name, size_t n) {
    size_t at = 0;

    while (at < n) {
        const size_t length = utf8_length(name + at, n - at);

        if (at + (length ? length : 1) > SERIES_NAME_MOST)
            break;
        /* NUL would end the name for everybody who shows it. */
        if (length == 0 || name[at] == '\0') {
            out[at++] = '?';
            continue;
        }
        memcpy(out + at, name + at, length);
        at += length;
    }
    return at;
}

static size_t key_of(char out[SERIES_KEY + SERIES_NAME_MOST], const char *name, size_t n,
                     uint32_t rank, uint32_t attempt) {
    const uint32_t numbers[2] = { htole32(rank), htole32(attempt) };

    memcpy(out, numbers, sizeof numbers);
    if (n > 0)
        memcpy(out + SERIES_KEY, name, n);
    return SERIES_KEY + n;
}

uint32_t store_define(struct series_store *store, const char *name, size_t n, uint32_t rank,
                      uint32_t attempt) {
    const uint32_t id = (uint32_t)store->buffers.len;
    char key[SERIES_KEY + SERIES_NAME_MOST];

    if (id >= SERIES_MOST)
        return SERIES_NONE;
    n = n < SERIES_NAME_MOST ? n : SERIES_NAME_MOST;
    /* Two of the same name can only come from a damaged file; the number is taken all the same. */
    map_put(&store->ids, key, key_of(key, name, n, rank, attempt), id);
    VEC_PUSH(&store->buffers);
    return id;
}

static void lose_large_frame(struct series_store *store) {
    if (store->frame.bytes.len <= store->wal_limit)
        return;
    store->is_frame_lost = true;
    wal_frame_begin(&store->frame);
}

uint32_t series_find(struct series_store *store, const char *name, size_t n, uint32_t rank,
                     uint32_t attempt) {
    char key[SERIES_KEY + SERIES_NAME_MOST], clean[SERIES_NAME_MOST];
    uint64_t known;
    uint32_t id;

    n = clean_name(clean, name, n);
    if (map_get(&store->ids, key, key_of(key, clean, n, rank, attempt), &known))
        return (uint32_t)known;
    id = store_define(store, clean, n, rank, attempt);
    if (id != SERIES_NONE) {
        store->is_changed = true;
        if (!store->is_frame_lost)
            wal_put_define(&store->frame, clean, n, rank, attempt);
    }
    return id;
}

void store_hold(struct series_store *store, uint32_t series, const struct point *point) {
    struct point_buffer *buffer = &store->buffers.items[series];
    struct error ignored;

    if (buffer->n == buffer->capacity) {
        buffer->capacity = buffer->capacity ? buffer->capacity * 2 : BUFFER_FIRST;
        buffer->points = reallocarray(buffer->points, buffer->capacity, sizeof *buffer->points);
        if (!buffer->points)
            abort();
    }
    buffer->points[buffer->n++] = *point;
    store->n_held++;
    /* A failure here, on a full disk, is told by the next commit. */
    if (buffer->n % CHUNK_MOST == 0 && store_spill(store, series, &ignored))
        return;
}

void series_add(struct series_store *store, uint32_t series, int64_t step, int64_t time_us,
                double value) {
    const struct point point = { .step = step, .time_us = time_us, .value = value };

    store->is_changed = true;
    if (series >= store->buffers.len) {
        store->n_refused++;
        return;
    }
    if (!store->is_frame_lost) {
        wal_put_point(&store->frame, series, &point);
        lose_large_frame(store);
    }
    store_hold(store, series, &point);
}

uint64_t series_refused(const struct series_store *store) {
    return series_marked(store, TOTAL_REFUSED) + store->n_refused;
}

static size_t source_length(const char *source) {
    return strnlen(source, SERIES_SOURCE_MOST);
}

void series_mark(struct series_store *store, const char *source, uint64_t offset) {
    const size_t n = source_length(source);
    uint64_t before;

    if (map_get(&store->marks, source, n, &before) && before == offset)
        return;
    map_put(&store->marks, source, n, offset);
    store->is_changed = true;
    if (!store->is_frame_lost) {
        wal_put_mark(&store->frame, source, n, offset);
        lose_large_frame(store);
    }
}

void series_unmark(struct series_store *store, const char *source) {
    const size_t n = source_length(source);
    uint64_t before;

    if (!map_get(&store->marks, source, n, &before))
        return;
    map_remove(&store->marks, source, n);
    store->is_changed = true;
    if (!store->is_frame_lost)
        wal_put_unmark(&store->frame, source, n);
}

uint64_t series_marked(const struct series_store *store, const char *source) {
    uint64_t offset = 0;

    map_get(&store->marks, source, source_length(source), &offset);
    return offset;
}

void series_each_mark(const struct series_store *store,
                      void (*visit)(void *context, const char *source, uint64_t offset),
                      void *context) {
    for (size_t i = 0; i < store->marks.entries.len; i++) {
        const struct map_entry *entry = &store->marks.entries.items[i];

        if (entry->key)
            visit(context, entry->key, entry->value);
    }
}

bool series_is_full(const struct series_store *store) {
    return store->is_frame_lost || store->n_held >= held_limit(store);
}

bool series_is_broken(const struct series_store *store) {
    return store->is_broken;
}

bool series_is_finished(const struct series_store *store) {
    return !store->is_changed && store->n_held == 0 && store->n_loose == 0 &&
           store->data_end == store->manifest.data_length &&
           (store->manifest.index_at > 0 || store->manifest.generation == 0);
}

static int append_frame(struct series_store *store, struct error *err) {
    const struct disk *disk = store->disk;

    wal_frame_end(&store->frame, store->nonce, store->wal_length);
    if (disk_write_all(disk, store->wal, store->frame.bytes.data, store->frame.bytes.len,
                       store->wal_length)) {
        error_set_errno(err, errno, "cannot write %s/wal", store->path);
        /* What was written of it has no right sum; without the room it takes, more may fit. */
        disk->truncate(store->wal, store->wal_length);
        return -1;
    }
    if (disk->sync(store->wal)) {
        store->is_broken = true;
        return error_set_errno(err, errno, "cannot write %s/wal", store->path);
    }
    store->wal_length += store->frame.bytes.len;
    wal_frame_begin(&store->frame);
    store->is_changed = false;
    return 0;
}

static int refuse_broken(const struct series_store *store, struct error *err) {
    return error_set(err, ERROR_IO, "%s has to be opened anew: its disk failed", store->path);
}

uint64_t series_remade(const struct series_store *store) {
    return store->n_remade;
}

/* What every commit begins with. */
static int prepare_commit(struct series_store *store, struct error *err) {
    if (store->is_broken)
        return refuse_broken(store, err);
    if (store_is_removed(store) && store_remake(store, err))
        return -1;
    if (store->n_refused > 0) {
        series_mark(store, TOTAL_REFUSED, series_refused(store));
        store->n_refused = 0;
    }
    return 0;
}

int series_commit(struct series_store *store, struct error *err) {
    if (prepare_commit(store, err))
        return -1;
    if (!store->is_changed)
        return 0;
    if (!series_is_full(store) && !store->is_log_old &&
        store->wal_length + store->frame.bytes.len <= store->wal_limit)
        return append_frame(store, err);
    if (store_rotate(store, err))
        return -1;
    /* Nothing is lost where this fails: it is tried again when the next log is full. */
    if (store->n_loose > LOOSE_MOST && store->data_end > 2 * store->loose_at) {
        struct error ignored;

        if (store_merge(store, &ignored))
            return 0;
    }
    return 0;
}

int series_finish(struct series_store *store, struct error *err) {
    if (prepare_commit(store, err))
        return -1;
    if (series_is_finished(store))
        return 0;
    if (store_rotate(store, err))
        return -1;
    return series_is_finished(store) ? 0 : store_merge(store, err);
}
