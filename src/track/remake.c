/* SPDX-License-Identifier: Apache-2.0 */
/* A store whose files were removed while it is open: they have no name, and can still be read. The
 * points of the log are in the buffers and in the data file too, so that copying the data file and
 * writing a new log brings all of it back. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "track/store.h"

enum { PIECE = 256 * 1024 };

/* Whether the path leads to the directory that is open, and to its lock. */
static bool has_place(const struct series_store *store) {
    struct stat ours, there;

    return !store->disk->is_removed(store->lock) && fstat(store->directory, &ours) == 0 &&
           lstat(store->path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

bool store_is_removed(const struct series_store *store) {
    const struct disk *disk = store->disk;

    if (!disk->is_removed)
        return false;
    return (store->wal >= 0 && disk->is_removed(store->wal)) ||
           (store->data >= 0 && disk->is_removed(store->data)) || !has_place(store);
}

static int copy_data(const struct series_store *store, int to) {
    unsigned char *piece = malloc(PIECE);
    int status = 0;

    if (!piece)
        abort();
    for (uint64_t at = 0; status == 0 && at < store->data_end;) {
        const uint64_t left = store->data_end - at;
        const ssize_t n = disk_read(store->data, piece, left < PIECE ? (size_t)left : PIECE, at);

        if (n == 0)
            errno = EIO;
        status = n <= 0 || disk_write_all(store->disk, to, piece, (size_t)n, at) ? -1 : 0;
        at += n > 0 ? (uint64_t)n : 0;
    }
    free(piece);
    return status;
}

static int remake_data(struct series_store *store, struct error *err) {
    const uint64_t generation = store->manifest.generation ? store->manifest.generation : 1;
    struct stat ours, there;
    char name[32];
    int fd;

    if (store->data < 0)
        return 0;
    store_data_name(generation, name);
    if (fstatat(store->directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstat(store->data, &ours) == 0 && ours.st_dev == there.st_dev &&
        ours.st_ino == there.st_ino)
        return 0; /* it was left */
    fd = store->disk->open(store->directory, name, O_CREAT | O_TRUNC);
    if (fd < 0 || copy_data(store, fd)) {
        error_set_errno(err, errno, "cannot make %s/%s anew", store->path, name);
        if (fd >= 0)
            store->disk->close(fd);
        return -1;
    }
    store->disk->close(store->data);
    store->data = fd;
    store->is_unsynced = store->is_file_new = true;
    return 0;
}

/* A new directory where the path leads; -1: the old one stays the store's. */
static int remake_place(struct series_store *store, struct error *err) {
    const int directory = store->directory, lock = store->lock;

    store->directory = store->lock = -1;
    if (store_open_directory(store, err)) {
        if (store->directory >= 0)
            close(store->directory);
        if (store->lock >= 0)
            close(store->lock);
        store->directory = directory;
        store->lock = lock;
        return -1;
    }
    close(directory);
    close(lock);
    return 0;
}

int store_remake(struct series_store *store, struct error *err) {
    if ((!has_place(store) && remake_place(store, err)) || remake_data(store, err))
        return error_wrap(err, "%s was removed while it was written", store->path);
    store->is_log_old = store->is_changed = true; /* the commit writes a new log */
    store->n_remade++;
    return 0;
}
