/* SPDX-License-Identifier: Apache-2.0 */
/* Reads archives, of which nothing is believed. */
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
#include "archive/walk.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/tree.h"
#include "base/vec.h"

enum { BLOCK = 64 * 1024, PIECE = 256 * 1024, RIGHTS = 0777, SPECIAL_BITS = 07000 };

struct later_link {
    const char *name, *target;
};

struct unpacking {
    struct libarchive lib;
    struct archive *archive;
    const char *called; /* the archive */
    const struct unpack_terms *terms;
    int root;
    mode_t mask;
    uint64_t entries, bytes;
    struct sha256 seal;
    bool is_sealed; /* the seal was read: nothing follows it */
    struct arena arena;
    VEC(struct later_link) links;
    char *piece;
};

/* ---- what is refused ---- */

static int refuse(const struct unpacking *un, const char *name, const char *why,
                  struct error *err) {
    return error_set(err, ERROR_INVALID, "%.100s: '%.200s' %s: nothing of it is unpacked",
                     un->called, name, why);
}

static int check_name(const struct unpacking *un, const char *name, struct error *err) {
    const char *trouble = archive_name_trouble(name);

    return trouble ? refuse(un, name, trouble, err) : 0;
}

static int count_entry(struct unpacking *un, const char *name, int64_t size, struct error *err) {
    if (++un->entries > un->terms->entries_most)
        return error_set(err, ERROR_EXHAUSTED,
                         "%.200s has more than %llu entries: nothing of it is unpacked", un->called,
                         (unsigned long long)un->terms->entries_most);
    if (size < 0 || (uint64_t)size > un->terms->bytes_most - un->bytes)
        return error_set(err, ERROR_EXHAUSTED,
                         "%.100s: with '%.200s' it is larger than %llu bytes, the most that may be "
                         "unpacked here: nothing of it is unpacked",
                         un->called, name, (unsigned long long)un->terms->bytes_most);
    return 0;
}

/* ---- making things ---- */

static int cannot_make(const struct unpacking *un, const char *name, struct error *err) {
    if (errno == EEXIST)
        return refuse(un, name, "is there twice", err);
    if (errno == ELOOP || errno == ENOTDIR)
        return refuse(un, name, "lies in what is no folder", err);
    return error_set_errno(err, errno, "%.100s: cannot unpack '%.200s'", un->called, name);
}

/* The folder that a path lies in, made where it is missing, and the last part of the path. */
static int open_parent(const struct unpacking *un, const char *name, const char **last,
                       struct error *err) {
    int fd = openat(un->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *p = name, *slash;

    while (fd >= 0 && (slash = strchr(p, '/'))) {
        char part[NAME_MAX + 1];
        int next;

        snprintf(part, sizeof part, "%.*s", (int)(slash - p), p);
        if (mkdirat(fd, part, 0700) < 0 && errno != EEXIST)
            next = -1;
        else
            next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            const int errnum = errno;

            close(fd);
            errno = errnum;
        } else {
            close(fd);
        }
        fd = next;
        p = slash + 1;
    }
    if (fd < 0)
        return cannot_make(un, name, err);
    *last = p;
    return fd;
}

static int make_folder(const struct unpacking *un, int parent, const char *last, const char *name,
                       mode_t mode, struct error *err) {
    int fd;

    if (mkdirat(parent, last, 0700) < 0 && errno != EEXIST)
        return cannot_make(un, name, err);
    fd = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return cannot_make(un, name, err);
    /* Ours to write, whatever it was: else nothing could be put into it, or be removed again. */
    if (fchmod(fd, (mode & RIGHTS & ~un->mask) | 0700) < 0) {
        close(fd);
        return cannot_make(un, name, err);
    }
    close(fd);
    return 0;
}

static int damaged(const struct unpacking *un, struct error *err) {
    return error_set(err, ERROR_INVALID,
                     "%.200s is damaged, or no archive: %.200s; nothing of it is unpacked",
                     un->called, libarchive_trouble(&un->lib, un->archive));
}

static int write_content(struct unpacking *un, int fd, const char *name, struct error *err) {
    const struct archive_progress *progress = un->terms->progress;

    for (;;) {
        const la_ssize_t n = un->lib.read_data(un->archive, un->piece, PIECE);

        if (n == 0)
            return 0;
        if (n < 0)
            return damaged(un, err);
        if ((uint64_t)n > un->terms->bytes_most - un->bytes)
            return count_entry(un, name, n, err);
        un->bytes += (uint64_t)n;
        sha256_add(&un->seal, un->piece, (size_t)n);
        if (file_write_all(fd, un->piece, (size_t)n) < 0)
            return error_set_errno(err, errno, "%.100s: cannot unpack '%.200s'", un->called, name);
        if (progress && !progress->tell(progress->context, un->bytes))
            return error_set(err, ERROR_CONFLICT, "interrupted");
    }
}

static int make_file(struct unpacking *un, int parent, const char *last, const char *name,
                     struct archive_entry *entry, struct error *err) {
    const struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
                                      { .tv_sec = un->lib.mtime(entry) } };
    const mode_t mode = un->lib.perm(entry) & RIGHTS & ~un->mask;
    const int fd = openat(parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int status;

    if (fd < 0)
        return cannot_make(un, name, err);
    status = write_content(un, fd, name, err);
    if (status == 0 && (fchmod(fd, mode) < 0 || futimens(fd, times) < 0))
        status = cannot_make(un, name, err);
    /* Begins to write it to the disk, for flush_entry to wait for: many files go at once. */
    if (status == 0)
        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    close(fd);
    return status;
}

/* ---- one entry ---- */

static int take_link(struct unpacking *un, const char *name, const char *target,
                     struct error *err) {
    if (!target || strlen(target) >= PATH_MAX || !archive_link_stays(name, target))
        return refuse(un, name, "is a link that leads out", err);
    *VEC_PUSH(&un->links) =
        (struct later_link){ .name = arena_text(&un->arena, name, strlen(name)),
                             .target = arena_text(&un->arena, target, strlen(target)) };
    return 0;
}

static int take_entry(struct unpacking *un, struct archive_entry *entry, const char *name,
                      struct error *err) {
    const mode_t kind = un->lib.filetype(entry);
    const char *last;
    int parent, status;

    if (un->lib.hardlink(entry))
        return refuse(un, name, "is a hard link", err);
    if (kind == S_IFLNK)
        return take_link(un, name, un->lib.symlink(entry), err);
    if (kind != S_IFREG && kind != S_IFDIR)
        return refuse(un, name, "is a device, a pipe or the like", err);
    if (un->lib.perm(entry) & SPECIAL_BITS)
        return refuse(un, name, "has a set-user-id, set-group-id or sticky bit", err);
    parent = open_parent(un, name, &last, err);
    if (parent < 0)
        return -1;
    status = kind == S_IFDIR ? make_folder(un, parent, last, name, un->lib.perm(entry), err)
                             : make_file(un, parent, last, name, entry, err);
    close(parent);
    return status;
}

static int take_seal(struct unpacking *un, struct error *err) {
    char is[SHA256_TEXT], should[SHA256_TEXT] = "";

    sha256_finish(&un->seal, is);
    if (un->lib.read_data(un->archive, should, sizeof should - 1) < 0)
        return damaged(un, err);
    un->is_sealed = true;
    if (memcmp(is, should, sizeof is) == 0)
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%.200s is damaged: its content does not fit its checksum; nothing of it is "
                     "unpacked",
                     un->called);
}

static int take(struct unpacking *un, struct archive_entry *entry, struct error *err) {
    const char *given = un->lib.pathname(entry);
    char name[ARCHIVE_NAME_MOST + 3];
    size_t n;

    if (!given)
        return refuse(un, "", "is the name of an entry", err);
    /* The name of a folder ends with a slash in tar. */
    n = (size_t)snprintf(name, sizeof name, "%s", given);
    if (n > 1 && n < sizeof name && name[n - 1] == '/')
        name[n - 1] = '\0';
    if (check_name(un, name, err) || count_entry(un, name, un->lib.size(entry), err))
        return -1;
    if (un->is_sealed)
        return refuse(un, name, "follows what should be the last entry", err);
    if (strcmp(name, SEAL_NAME) == 0)
        return take_seal(un, err);
    seal_add_header(&un->seal, name, un->lib.filetype(entry) | un->lib.perm(entry),
                    un->lib.mtime(entry), un->lib.symlink(entry));
    return take_entry(un, entry, name, err);
}

/* Last, so that nothing is written through one of them. */
static int make_links(struct unpacking *un, struct error *err) {
    for (size_t i = 0; i < un->links.len; i++) {
        const struct later_link *link = &un->links.items[i];
        const char *last;
        const int parent = open_parent(un, link->name, &last, err);

        if (parent < 0)
            return -1;
        if (symlinkat(link->target, parent, last) < 0) {
            cannot_make(un, link->name, err);
            close(parent);
            return -1;
        }
        close(parent);
    }
    return 0;
}

/* ---- all of it ---- */

static int take_all(struct unpacking *un, struct error *err) {
    struct archive_entry *entry;

    for (;;) {
        const int code = un->lib.read_next_header(un->archive, &entry);

        if (code == ARCHIVE_EOF && !un->is_sealed && un->terms->seal == UNPACK_SEALED_ONLY)
            return error_set(
                err, ERROR_INVALID,
                "%.200s is cut, or was not made by myelin: it has no checksum; nothing "
                "of it is unpacked",
                un->called);
        if (code == ARCHIVE_EOF)
            return make_links(un, err);
        if (code != ARCHIVE_OK)
            return damaged(un, err);
        if (take(un, entry, err))
            return -1;
    }
}

static int read_archive(struct unpacking *un, int fd, struct error *err) {
    int status;

    if (libarchive_load(&un->lib, err))
        return -1;
    un->archive = un->lib.read_new();
    un->piece = malloc(PIECE);
    sha256_init(&un->seal);
    if (!un->archive || !un->piece)
        abort();
    if (un->lib.read_support_format_tar(un->archive) != ARCHIVE_OK ||
        un->lib.read_support_filter_zstd(un->archive) != ARCHIVE_OK ||
        un->lib.read_open_fd(un->archive, fd, BLOCK) != ARCHIVE_OK)
        status = damaged(un, err);
    else
        status = take_all(un, err);
    un->lib.read_free(un->archive);
    libarchive_unload(&un->lib);
    free(un->piece);
    VEC_RELEASE(&un->links);
    arena_release(&un->arena);
    return status;
}

/* Not all of the file system at once (syncfs): others write to it, and would be waited for. */
static int flush_entry(void *context, const struct walk_entry *entry, struct error *err) {
    int fd, status;

    (void)context;
    if (!S_ISREG(entry->st->st_mode) && !S_ISDIR(entry->st->st_mode))
        return 0;
    fd = open(entry->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return 0; /* of a mode that lets nobody read: its content is not waited for */
    status = fd < 0 ? -1 : fsync(fd);
    if (status < 0)
        error_set_errno(err, errno, "cannot write '%.300s'", entry->name);
    if (fd >= 0)
        close(fd);
    return status;
}

static int put_in_place(const struct unpacking *un, const char *part, const char *directory,
                        struct error *err) {
    if (walk(part, flush_entry, NULL, err))
        return -1;
    if (fsync(un->root) < 0 || fchmod(un->root, 0777 & ~un->mask) < 0)
        return error_set_errno(err, errno, "cannot write '%.300s'", directory);
    if (renameat2(AT_FDCWD, part, AT_FDCWD, directory, RENAME_NOREPLACE) < 0)
        return error_set_errno(err, errno, "cannot make '%.300s'", directory);
    return 0;
}

int unpack(int fd, const char *name, const char *directory, const struct unpack_terms *terms,
           struct error *err) {
    struct unpacking un = { .called = name, .terms = terms };
    char part[PATH_MAX];
    int status;

    if (snprintf(part, sizeof part, "%s.part.XXXXXX", directory) >= (int)sizeof part)
        return error_set(err, ERROR_INVALID, "the path '%.100s...' is too long", directory);
    if (!mkdtemp(part))
        return error_set_errno(err, errno, "cannot make '%.300s'", directory);
    umask(un.mask = umask(0));
    un.root = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (un.root < 0)
        status = error_set_errno(err, errno, "cannot enter '%.300s'", part);
    else
        status = read_archive(&un, fd, err) || put_in_place(&un, part, directory, err) ? -1 : 0;
    if (un.root >= 0)
        close(un.root);
    if (status)
        tree_remove(part);
    return status;
}
