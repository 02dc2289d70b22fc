/* SPDX-License-Identifier: Apache-2.0 */
/* Writes archives. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/libarchive.h"
#include "archive/seal.h"
#include "base/file.h"

enum { PIECE = 256 * 1024, RIGHTS = 0777 };

/* What fits into every tar header; the year 2242 is late enough. */
#define TIME_MOST ((int64_t)077777777777)

struct pack {
    struct libarchive lib;
    struct archive *archive;
    struct archive_entry *entry;
    int fd;
    char *path, *part; /* NULL: to a descriptor of the caller's */
    enum pack_manner manner;
    struct archive_progress progress;
    struct sha256 seal;
    uint64_t bytes;    /* of content so far */
    uint64_t size;     /* of the archive so far */
    int errnum;        /* of a write that failed, or 0 */
    bool is_abandoned; /* nothing is written any more */
    char *piece;
};

/* ---- the life of it ---- */

static char *copy_text(const char *text) {
    char *copy = strdup(text);

    if (!copy)
        abort();
    return copy;
}

static void free_all(struct pack *pack) {
    if (pack->entry)
        pack->lib.entry_free(pack->entry);
    if (pack->archive)
        pack->lib.write_free(pack->archive);
    libarchive_unload(&pack->lib);
    if (pack->part) {
        unlink(pack->part); /* under its name it has another */
        close(pack->fd);
    }
    free(pack->part);
    free(pack->path);
    free(pack->piece);
    free(pack);
}

void pack_discard(struct pack *pack) {
    if (!pack)
        return;
    pack->is_abandoned = true; /* else freeing it would write the end of a whole archive */
    free_all(pack);
}

static la_ssize_t on_write(struct archive *archive, void *context, const void *bytes, size_t n) {
    struct pack *pack = context;

    (void)archive;
    if (!pack->is_abandoned && file_write_all(pack->fd, bytes, n)) {
        pack->errnum = errno;
        return -1;
    }
    pack->size += n;
    return (la_ssize_t)n;
}

static int begin(struct pack *pack, struct error *err) {
    const struct libarchive *lib = &pack->lib;

    if (libarchive_load(&pack->lib, err))
        return -1;
    pack->archive = lib->write_new();
    pack->entry = lib->entry_new();
    pack->piece = malloc(PIECE);
    if (!pack->archive || !pack->entry || !pack->piece)
        abort();
    if (lib->write_set_format_gnutar(pack->archive) != ARCHIVE_OK ||
        lib->write_add_filter_zstd(pack->archive) != ARCHIVE_OK ||
        lib->write_set_bytes_in_last_block(pack->archive, 1) != ARCHIVE_OK ||
        lib->write_open(pack->archive, pack, NULL, on_write, NULL) != ARCHIVE_OK)
        return error_set(err, ERROR_UNAVAILABLE, "cannot make an archive: %.300s",
                         libarchive_trouble(lib, pack->archive));
    return 0;
}

static int finish_beginning(struct pack *pack, struct pack **out, struct error *err) {
    if (begin(pack, err)) {
        pack_discard(pack);
        return -1;
    }
    *out = pack;
    return 0;
}

static struct pack *new_pack(int fd) {
    struct pack *pack = calloc(1, sizeof *pack);

    if (!pack)
        abort();
    pack->fd = fd;
    sha256_init(&pack->seal);
    return pack;
}

int pack_begin(const char *path, enum pack_manner manner, struct pack **out, struct error *err) {
    char part[PATH_MAX];
    struct stat st;
    struct pack *pack;
    mode_t mask;
    int fd;

    if (lstat(path, &st) == 0 && (manner == PACK_NEW_ONLY || S_ISDIR(st.st_mode)))
        return error_set(err, ERROR_CONFLICT, "'%.300s' exists%s", path,
                         S_ISDIR(st.st_mode) ? " and is a directory" : "");
    if (snprintf(part, sizeof part, "%s.part.XXXXXX", path) >= (int)sizeof part)
        return error_set(err, ERROR_INVALID, "the path of the archive is too long");
    fd = mkostemp(part, O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot write '%.300s'", path);
    umask(mask = umask(0));
    pack = new_pack(fd);
    pack->path = copy_text(path);
    pack->part = copy_text(part);
    pack->manner = manner;
    if (fchmod(fd, 0666 & ~mask) < 0) {
        error_set_errno(err, errno, "cannot write '%.300s'", path);
        pack_discard(pack);
        return -1;
    }
    return finish_beginning(pack, out, err);
}

int pack_begin_at(int fd, struct pack **out, struct error *err) {
    return finish_beginning(new_pack(fd), out, err);
}

void pack_tell(struct pack *pack, const struct archive_progress *progress) {
    pack->progress = progress ? *progress : (struct archive_progress){ 0 };
}

/* ---- entries ---- */

static int fail(struct pack *pack, struct error *err) {
    return error_set(
        err, ERROR_IO, "cannot write '%.200s': %.200s", pack->path ? pack->path : "the archive",
        pack->errnum ? strerror(pack->errnum) : libarchive_trouble(&pack->lib, pack->archive));
}

static int write_header(struct pack *pack, const char *name, const struct stat *st,
                        const char *target, struct error *err) {
    const struct libarchive *lib = &pack->lib;
    int64_t modified_s = st->st_mtim.tv_sec;

    if (archive_name_trouble(name))
        return error_set(err, ERROR_INVALID, "'%.200s' %s", name, archive_name_trouble(name));
    modified_s = modified_s < 0 ? 0 : modified_s > TIME_MOST ? TIME_MOST : modified_s;
    seal_add_header(&pack->seal, name, st->st_mode & (S_IFMT | RIGHTS), modified_s, target);
    lib->entry_clear(pack->entry);
    lib->set_pathname(pack->entry, name);
    lib->set_filetype(pack->entry, st->st_mode & S_IFMT);
    lib->set_perm(pack->entry, st->st_mode & RIGHTS);
    lib->set_mtime(pack->entry, modified_s, 0);
    lib->set_size(pack->entry, S_ISREG(st->st_mode) ? st->st_size : 0);
    if (target)
        lib->set_symlink(pack->entry, target);
    return lib->write_header(pack->archive, pack->entry) == ARCHIVE_OK ? 0 : fail(pack, err);
}

static int write_content(struct pack *pack, const char *bytes, size_t n, struct error *err) {
    sha256_add(&pack->seal, bytes, n);
    while (n > 0) {
        const la_ssize_t done = pack->lib.write_data(pack->archive, bytes, n);

        if (done <= 0)
            return fail(pack, err);
        bytes += done;
        n -= (size_t)done;
        pack->bytes += (uint64_t)done;
    }
    if (pack->progress.tell && !pack->progress.tell(pack->progress.context, pack->bytes))
        return error_set(err, ERROR_CONFLICT, "interrupted");
    return 0;
}

/* As much as the header says: what is added meanwhile is not part of it. */
static int write_file(struct pack *pack, int fd, const char *name, const struct stat *st,
                      struct error *err) {
    uint64_t left = (uint64_t)st->st_size;

    if (write_header(pack, name, st, NULL, err))
        return -1;
    while (left > 0) {
        const ssize_t n = read(fd, pack->piece, left < PIECE ? (size_t)left : PIECE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, errno, "cannot read '%.300s'", name);
        if (n == 0)
            return error_set(err, ERROR_CONFLICT, "'%.300s' became shorter while it was read",
                             name);
        if (write_content(pack, pack->piece, (size_t)n, err))
            return -1;
        left -= (uint64_t)n;
    }
    return 0;
}

static int add_file(struct pack *pack, const char *name, int directory, const char *path,
                    struct error *err) {
    /* A pipe that took the place of the file does not make us wait. */
    const int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", name);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        status = error_set(err, ERROR_CONFLICT, "'%.300s' is not a file any more", name);
    else
        status = write_file(pack, fd, name, &st, err);
    close(fd);
    return status;
}

static int add_link(struct pack *pack, const char *name, int directory, const char *path,
                    const struct stat *st, struct error *err) {
    char target[PATH_MAX];
    const ssize_t n = readlinkat(directory, path, target, sizeof target - 1);

    if (n < 0)
        return error_set_errno(err, errno, "cannot read the link '%.300s'", name);
    target[n] = '\0';
    if (!archive_link_stays(name, target))
        return error_set(err, ERROR_INVALID, "the link '%.200s' leads out, to '%.200s'", name,
                         target);
    return write_header(pack, name, st, target, err);
}

int pack_add(struct pack *pack, const char *name, int directory, const char *path,
             struct error *err) {
    struct stat st;

    if (fstatat(directory, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", name);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG: return add_file(pack, name, directory, path, err);
    case S_IFDIR: return write_header(pack, name, &st, NULL, err);
    case S_IFLNK: return add_link(pack, name, directory, path, &st, err);
    default:
        return error_set(err, ERROR_INVALID, "'%.300s' is neither a file, a folder nor a link",
                         name);
    }
}

int pack_add_bytes(struct pack *pack, const char *name, const void *bytes, size_t n,
                   int64_t modified_s, struct error *err) {
    const struct stat st = { .st_mode = S_IFREG | 0644,
                             .st_size = (off_t)n,
                             .st_mtim.tv_sec = modified_s };

    return write_header(pack, name, &st, NULL, err) || write_content(pack, bytes, n, err) ? -1 : 0;
}

/* ---- the end ---- */

/* The name comes with a file that is on the disk, and is itself on the disk. */
static int put_in_place(const struct pack *pack, struct error *err) {
    char folder[PATH_MAX];
    const char *slash = strrchr(pack->path, '/');
    int fd, status;

    if (fsync(pack->fd) < 0)
        return error_set_errno(err, errno, "cannot write '%.300s'", pack->path);
    status = renameat2(AT_FDCWD, pack->part, AT_FDCWD, pack->path,
                       pack->manner == PACK_NEW_ONLY ? RENAME_NOREPLACE : 0);
    if (status < 0 && errno == EINVAL) /* of file systems that know no flag */
        status = link(pack->part, pack->path);
    if (status < 0)
        return error_set_errno(err, errno, "cannot name the archive '%.300s'", pack->path);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - pack->path) + 1 : 1,
             slash ? pack->path : ".");
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        status = fsync(fd);
        close(fd);
    }
    return 0;
}

int pack_finish(struct pack *pack, uint64_t *size, struct error *err) {
    char seal[SHA256_TEXT];
    uint64_t written;
    int status;

    sha256_finish(&pack->seal, seal);
    pack->progress = (struct archive_progress){ 0 }; /* all that it counts is done */
    status = pack_add_bytes(pack, SEAL_NAME, seal, SHA256_TEXT - 1, 0, err);
    if (status == 0 && pack->lib.write_close(pack->archive) != ARCHIVE_OK)
        status = fail(pack, err);
    written = pack->size;
    pack->is_abandoned = true;
    if (status == 0 && pack->part)
        status = put_in_place(pack, err);
    free_all(pack);
    if (status == 0)
        *size = written;
    return status;
}
