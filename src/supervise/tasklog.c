/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/tasklog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static void open_log(struct tasklog *log, const char *directory, const char *task) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s.log", directory, task) >= (int)sizeof path) {
        log->errnum = ENAMETOOLONG;
        return;
    }
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0)
        log->errnum = errno;
}

void tasklog_write(struct tasklog *log, const char *directory, const char *task, const char *bytes,
                   size_t n) {
    if (log->kept >= TASKLOG_LIMIT) {
        log->errnum = EFBIG;
        log->lost += n;
        return;
    }
    if (log->fd < 0)
        open_log(log, directory, task);
    while (n && log->fd >= 0) {
        const ssize_t written = write(log->fd, bytes, n);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            log->errnum = errno; /* the next bytes are tried again: room may come back */
            break;
        }
        bytes += written;
        n -= (size_t)written;
        log->kept += (uint64_t)written;
    }
    log->lost += n;
}

void tasklog_close(struct tasklog *log) {
    if (log->fd >= 0)
        close(log->fd);
    log->fd = -1;
}

void tasklog_tail(const char *directory, const char *task, struct buf *out) {
    const size_t most = out->limit - out->len;
    char path[PATH_MAX], chunk[4096];
    struct error err;
    off_t end, at;
    int fd;

    if (snprintf(path, sizeof path, "%s/%s.log", directory, task) >= (int)sizeof path)
        return;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    end = lseek(fd, 0, SEEK_END);
    at = end > (off_t)most ? end - (off_t)most : 0;
    while (at < end) {
        const size_t want = (size_t)(end - at) < sizeof chunk ? (size_t)(end - at) : sizeof chunk;
        const ssize_t n = pread(fd, chunk, want, at);

        if (n <= 0 || buf_append(out, chunk, (size_t)n, &err))
            break;
        at += n;
    }
    close(fd);
}
