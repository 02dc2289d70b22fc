/* SPDX-License-Identifier: Apache-2.0 */
#include "track/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "track/wal.h"

static int real_open(int directory, const char *name, int flags) {
    return openat(directory, name, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
}

static ssize_t real_write(int fd, const void *bytes, size_t n, uint64_t offset) {
    return pwrite(fd, bytes, n, (off_t)offset);
}

static int real_truncate(int fd, uint64_t length) {
    return ftruncate(fd, (off_t)length);
}

static int real_rename(int directory, const char *from, const char *to) {
    return renameat(directory, from, directory, to);
}

static int real_unlink(int directory, const char *name) {
    return unlinkat(directory, name, 0);
}

static bool real_is_removed(int fd) {
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

const struct disk disk_real = {
    .open = real_open,
    .write = real_write,
    .truncate = real_truncate,
    .sync = fdatasync,
    .sync_directory = fsync,
    .rename = real_rename,
    .unlink = real_unlink,
    .close = close,
    .is_removed = real_is_removed,
};

int disk_write_all(const struct disk *disk, int fd, const void *bytes, size_t n, uint64_t offset) {
    const unsigned char *at = bytes;

    while (n > 0) {
        const ssize_t written = disk->write(fd, at, n, offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            return -1;
        at += written;
        n -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

ssize_t disk_read(int fd, void *out, size_t n, uint64_t offset) {
    size_t got = 0;

    while (got < n) {
        const ssize_t more = pread(fd, (char *)out + got, n - got, (off_t)(offset + got));

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    return (ssize_t)got;
}

int disk_read_log(int fd, struct bytes *out, struct error *err) {
    struct stat st;
    ssize_t n = -1;

    if (fstat(fd, &st) == 0) {
        if (st.st_size > WAL_PAYLOAD_MOST)
            return error_set(err, ERROR_IO,
                             "the log of series is damaged: it is larger than any that is written");
        n = disk_read(fd, bytes_reserve(out, (size_t)st.st_size + 1), (size_t)st.st_size, 0);
    }
    if (n < 0)
        return error_set_errno(err, errno, "cannot read the log of series");
    out->len += (size_t)n;
    return 0;
}
