/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- opening what somebody else may have put there ---- */

enum { SAFELY = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

static int keep_if_regular(int fd) {
    struct stat st;

    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = FILE_IS_NOT_REGULAR;
    return -1;
}

/* A directory that is opened for writing fails with EISDIR, before anybody sees what it is. */
static int regular_or_none(int fd) {
    if (fd < 0 && errno == EISDIR)
        errno = FILE_IS_NOT_REGULAR;
    return keep_if_regular(fd);
}

int file_open_regular_at(int directory, const char *name, int flags, mode_t mode) {
    return regular_or_none(openat(directory, name, flags | SAFELY, mode));
}

int file_open_regular(const char *path, int flags, mode_t mode) {
    return file_open_regular_at(AT_FDCWD, path, flags, mode);
}

static bool is_link(int directory, const char *name) {
    struct stat st;

    return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Enters each directory of the path by its own descriptor: for kernels without openat2. */
static int open_step_by_step(const char *path, int flags, mode_t mode) {
    int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next, errnum;
    char name[NAME_MAX + 1];

    while (at >= 0) {
        size_t n;

        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, n);
        name[n] = '\0';
        path += n;
        next = path[strspn(path, "/")]
                   ? openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                   : openat(at, name, flags | SAFELY, mode);
        errnum = next < 0 && errno == ENOTDIR && is_link(at, name) ? ELOOP : errno;
        close(at);
        errno = errnum;
        if (next < 0 || !path[strspn(path, "/")])
            return next;
        at = next;
    }
    return -1;
}

static int open_linkless(const char *path, int flags, mode_t mode) {
    struct open_how how = { .flags = (unsigned)(flags | SAFELY), .resolve = RESOLVE_NO_SYMLINKS };
    int fd;

    if (flags & O_CREAT)
        how.mode = mode;
    fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    /* Filters of system calls that do not know this one refuse it with EPERM. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = open_step_by_step(path, flags, mode);
    return fd;
}

int file_open_linkless(const char *path, int flags, mode_t mode) {
    return regular_or_none(open_linkless(path, flags, mode));
}

int file_open_linkless_directory(const char *path) {
    return open_linkless(path, O_RDONLY | O_DIRECTORY, 0);
}

DIR *file_list_linkless(const char *path) {
    const int fd = file_open_linkless_directory(path);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (!list && fd >= 0)
        close(fd);
    return list;
}

/* Opens the directory that a file is in; `name` gets the rest of the path. */
static int open_parent(const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];
    const size_t n = slash ? (size_t)(slash - path) : 0;

    *name = slash ? slash + 1 : path;
    if (n >= sizeof parent) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(parent, path, n);
    parent[n] = '\0';
    return file_open_linkless_directory(n > 0 ? parent : slash ? "/" : ".");
}

static int close_parent(int parent, int status) {
    const int errnum = errno;

    close(parent);
    errno = errnum;
    return status;
}

int file_remove_linkless(const char *path) {
    const char *name;
    const int parent = open_parent(path, &name);

    return parent < 0 ? -1 : close_parent(parent, unlinkat(parent, name, 0));
}

int file_rename_linkless(const char *path, const char *to) {
    const char *name;
    const int parent = open_parent(path, &name);

    return parent < 0 ? -1 : close_parent(parent, renameat(parent, name, parent, to));
}

int file_make_directory_linkless(const char *path, mode_t mode) {
    const char *name;
    const int parent = open_parent(path, &name);

    return parent < 0 ? -1 : close_parent(parent, mkdirat(parent, name, mode));
}

/* ---- whole files ---- */
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

int file_read_rest(int fd, struct buf *out, struct error *err) {
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
        status = file_read_rest(fd, out, err);
        if (status)
            error_wrap(err, "%s", is_stdin ? "standard input" : path);
    }
    if (!is_stdin)
        close(fd);
    return status;
}

int file_read_linkless(const char *path, struct buf *out, struct error *err) {
    const int fd = file_open_linkless(path, O_RDONLY, 0);
    int status;

    if (fd < 0)
        return errno == FILE_IS_NOT_REGULAR
                   ? error_set(err, ERROR_INVALID, "%s is not a regular file", path)
                   : error_set_errno(err, errno, "%s", path);
    status = file_read_rest(fd, out, err);
    if (status)
        error_wrap(err, "%s", path);
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

int file_make_part(const char *path, unsigned mode, char part[static FILE_PART_NAME]) {
    for (int i = 0; i < PART_TRIES; i++) {
        int fd;

        if (snprintf(part, FILE_PART_NAME, "%s.part%d", path, i) >= FILE_PART_NAME) {
            errno = ENAMETOOLONG;
            return -1;
        }
        (void)!file_remove_linkless(
            part); /* of one who died in the middle of this; a directory may be in use */
        fd = file_open_linkless(part, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0 && fchmod(fd, (mode_t)mode & 0777) == 0)
            return fd;
        if (fd >= 0) {
            close(fd);
            (void)!file_remove_linkless(part);
            return -1;
        }
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Moves a file within its directory to a name that a directory may have. */
static int replace_within(int directory, const char *part, const char *name) {
    if (renameat(directory, part, directory, name) == 0)
        return 0;
    /* A directory gives way only to an exchange. */
    if (errno != EISDIR || renameat2(directory, part, directory, name, RENAME_EXCHANGE) < 0)
        return -1;
    (void)unlinkat(directory, part, AT_REMOVEDIR); /* with files in it, it keeps that name */
    return 0;
}

int file_replace(const char *part, const char *path) {
    const char *slash = strrchr(part, '/'), *name;
    const int parent = open_parent(path, &name);

    return parent < 0
               ? -1
               : close_parent(parent, replace_within(parent, slash ? slash + 1 : part, name));
}
