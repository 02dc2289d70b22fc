/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int read_all(int fd, struct buf *out, struct error *err) {
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
        status = read_all(fd, out, err);
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
