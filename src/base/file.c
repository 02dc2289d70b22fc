/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PART_TRIES = 100 };

int file_write_all(int fd, const void *bytes, size_t n) {
    const char *at = bytes;

    while (n > 0) {
        const ssize_t written = write(fd, at, n);

        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = ENOSPC; /* else it would be tried for ever */
        if (written <= 0)
            return -1;
        at += written;
        n -= (size_t)written;
    }
    return 0;
}

int file_read_all(int fd, struct buf *out, struct error *err) {
    char chunk[64 * 1024];
    ssize_t n;

    for (;;) {
        n = read(fd, chunk, sizeof chunk);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, errno, "cannot read");
        if (buf_append(out, chunk, (size_t)n, err))
            return -1;
    }
}

int file_read(const char *path, struct buf *out, struct error *err) {
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "%s", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        status = error_set(err, ERROR_INVALID, "%s is a directory", path);
    } else {
        status = file_read_all(fd, out, err);
        if (status)
            error_wrap(err, "%s", is_stdin ? "standard input" : path);
    }
    if (!is_stdin)
        close(fd);
    return status;
}

bool file_append(int fd, const char *bytes, size_t n) {
    struct stat before;
    ssize_t done;
    int errnum;

    if (fstat(fd, &before))
        return false;
    errno = ENOSPC; /* where a part of it is written */
    done = write(fd, bytes, n);
    if (done == (ssize_t)n)
        return true;
    errnum = errno;
    if (done > 0 && ftruncate(fd, before.st_size))
        errnum = errno;
    errno = errnum;
    return false;
}

int file_open_regular(const char *path, int flags, unsigned mode) {
    /* O_NONBLOCK: to open a FIFO would wait for its other end. It means nothing to a regular file.
     */
    const int fd = open(path, flags | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, (mode_t)mode);
    struct stat st;

    if (fd < 0 && errno == ENXIO)
        errno = FILE_IS_NOT_REGULAR; /* a FIFO that nobody reads, or a socket */
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    errno = FILE_IS_NOT_REGULAR;
    return -1;
}

int file_make_part(const char *path, unsigned mode, char part[static FILE_PART_NAME]) {
    for (int i = 0; i < PART_TRIES; i++) {
        int fd;

        if (snprintf(part, FILE_PART_NAME, "%s.part%d", path, i) >= FILE_PART_NAME) {
            errno = ENAMETOOLONG;
            return -1;
        }
        unlink(part); /* of one who died in the middle of this; a directory may be in use */
        fd = file_open_regular(part, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 && fchmod(fd, (mode_t)mode & 0777) == 0)
            return fd;
        if (fd >= 0) {
            close(fd);
            unlink(part);
            return -1;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

int file_replace(const char *part, const char *path) {
    int status;

    if (rename(part, path) == 0)
        return 0;
    /* A directory gives way only to an exchange. */
    status = errno == EISDIR ? renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE) : -1;
    if (status == 0)
        (void)rmdir(part); /* one with files in it stays under that name */
    return status;
}
