/* SPDX-License-Identifier: Apache-2.0 */
#include "store/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum {
    DIRECTORY = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    COPY_PIECE = 128 * 1024,
    COPY_AT_ONCE = 64 << 20,
    PART_NAME = 48,
    STEP_ROOM = NAME_MAX + 2 /* bytes of a part of a path; one more than any name has */
};

/* Says by errno why a path below outputs/, or all of it (""), is not reached. One that leads
 * through a file or a link, or is too long, leads to nothing. Descriptors are free again a moment
 * later, so that having none is no limit of ours. */
static int path_failed(const struct rundir *rundir, const char *path, struct error *err) {
    const int errnum = errno;

    if (path[0])
        error_set_errno(err, errnum, "outputs/%.300s of run %s", path, rundir->id);
    else
        error_set_errno(err, errnum, "cannot read the outputs of run %s", rundir->id);
    if (errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG)
        err->code = ERROR_NOT_FOUND;
    if (errnum == EMFILE || errnum == ENFILE)
        err->code = ERROR_UNAVAILABLE;
    return -1;
}

static int open_outputs(const struct rundir *rundir, struct error *err) {
    int fd = file_open_linkless_directory(rundir->outputs);

    return fd < 0 ? path_failed(rundir, "", err) : fd;
}

/* ---- paths ---- */

/* The next part of a path into `part`; the rest of the path, or NULL at its end. Parts that mean
 * the same directory are left out. One that is too long is cut to what is too long still, so that
 * who opens it is told ENAMETOOLONG, and never gets a file whose name only begins alike. */
static const char *next_part(const char *path, char part[static STEP_ROOM]) {
    size_t n, kept;

    for (;; path += n) {
        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n == 0)
            return NULL;
        if (!(n == 1 && path[0] == '.'))
            break;
    }
    kept = n < STEP_ROOM ? n : STEP_ROOM - 1;
    memcpy(part, path, kept);
    part[kept] = '\0';
    return path + n;
}

/* Whether a path, seen from `depth` directories below outputs/, stays inside of it. */
static bool stays_inside(const char *path, int depth) {
    char part[STEP_ROOM];

    if (path[0] == '/')
        return false;
    while (depth >= 0 && (path = next_part(path, part)))
        depth += strcmp(part, "..") == 0 ? -1 : 1;
    return depth >= 0;
}

/* ---- listing ---- */

struct walk {
    struct outputs *outputs;
    const struct rundir *rundir;
    char path[PATH_MAX];
    struct error *err;
};

static int walk_directory(struct walk *walk, int fd, size_t len, int depth);

static void add(struct walk *walk, int parent, const char *name, const struct stat *st) {
    struct outputs *outputs = walk->outputs;
    char target[PATH_MAX];
    ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(parent, name, target, sizeof target) : -1;

    *VEC_PUSH(&outputs->list) = (struct output){
        .path = arena_text(&outputs->arena, walk->path, strlen(walk->path)),
        .target = n >= 0 ? arena_text(&outputs->arena, target, (size_t)n) : NULL,
        .size = (uint64_t)st->st_size,
        .modified = st->st_mtim,
    };
}

/* Adds what the name is, below the path so far, which has `len` bytes. */
static int walk_entry(struct walk *walk, int parent, const char *name, size_t len, int depth) {
    size_t n =
        (size_t)snprintf(walk->path + len, sizeof walk->path - len, "%s%s", len ? "/" : "", name);
    struct stat st;
    int fd;

    if (n >= sizeof walk->path - len)
        return error_set(walk->err, ERROR_EXHAUSTED, "a path in the outputs of run %s is too long",
                         walk->rundir->id);
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : path_failed(walk->rundir, walk->path, walk->err);
    if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        add(walk, parent, name, &st);
    else if (!S_ISDIR(st.st_mode))
        walk->outputs->n_special++;
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (depth == OUTPUTS_DEPTH_MOST)
        return error_set(walk->err, ERROR_EXHAUSTED,
                         "the outputs of run %s are nested deeper than %d directories",
                         walk->rundir->id, OUTPUTS_DEPTH_MOST);
    fd = openat(parent, name, DIRECTORY);
    if (fd < 0)
        return errno == ENOENT ? 0 : path_failed(walk->rundir, walk->path, walk->err);
    return walk_directory(walk, fd, len + n, depth + 1);
}

/* Closes the descriptor. */
static int walk_directory(struct walk *walk, int fd, size_t len, int depth) {
    DIR *dir = fdopendir(fd);
    struct dirent *entry;
    int status = 0;

    if (!dir)
        abort();
    for (errno = 0; status == 0 && (entry = readdir(dir)); errno = 0)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = walk_entry(walk, dirfd(dir), entry->d_name, len, depth);
    if (status == 0 && errno) {
        walk->path[len] = '\0';
        status = path_failed(walk->rundir, walk->path, walk->err);
    }
    closedir(dir);
    return status;
}

/* NULL for a file, a directory or a link. */
static const char *special_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK: return NULL;
    case S_IFIFO: return "FIFO";
    case S_IFSOCK: return "socket";
    default: return "device";
    }
}

/* Goes down to a path of the user's part by part, and lists what is there. */
static int walk_path(struct walk *walk, int fd, const char *path) {
    char part[STEP_ROOM], next[STEP_ROOM];
    const char *given = path;
    size_t len = 0;
    int depth = 0, status, below;
    struct stat st;

    path = next_part(path, part);
    if (!path)
        return walk_directory(walk, fd, 0, 0);
    while ((path = next_part(path, next))) {
        size_t n = (size_t)snprintf(walk->path + len, sizeof walk->path - len, "%s%s",
                                    len ? "/" : "", part);

        len += n < sizeof walk->path - len ? n : 0;
        below = openat(fd, part, DIRECTORY);
        close(fd);
        if (below < 0)
            return path_failed(walk->rundir, given, walk->err);
        fd = below;
        depth++;
        memcpy(part, next, sizeof part);
    }
    if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
        status = path_failed(walk->rundir, given, walk->err);
    else if (special_kind(st.st_mode))
        status = error_set(walk->err, ERROR_NOT_FOUND,
                           "outputs/%.300s of run %s is a %s: only files, directories and links "
                           "are kept",
                           given, walk->rundir->id, special_kind(st.st_mode));
    else
        status = walk_entry(walk, fd, part, len, depth);
    close(fd);
    return status;
}

static bool names_parent(const char *path) {
    char part[STEP_ROOM];

    while ((path = next_part(path, part)))
        if (strcmp(part, "..") == 0)
            return true;
    return false;
}

int outputs_add(struct outputs *outputs, const struct rundir *rundir, const char *path,
                struct error *err) {
    struct walk walk = { .outputs = outputs, .rundir = rundir, .err = err };
    int fd;

    if (path && (path[0] == '/' || names_parent(path) || strlen(path) >= PATH_MAX))
        return error_set(err, ERROR_INVALID,
                         "'%.300s' is not below the outputs: give a path as 'myelin outputs %s' "
                         "prints it",
                         path, rundir->id);
    fd = open_outputs(rundir, err);
    if (fd < 0)
        return -1;
    return walk_path(&walk, fd, path ? path : "");
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct output *)a)->path, ((const struct output *)b)->path);
}

void outputs_sort(struct outputs *outputs) {
    size_t kept = 0;

    if (outputs->list.len == 0)
        return;
    qsort(outputs->list.items, outputs->list.len, sizeof *outputs->list.items, by_path);
    for (size_t i = 0; i < outputs->list.len; i++)
        if (i == 0 || by_path(&outputs->list.items[i], &outputs->list.items[kept - 1]) != 0)
            outputs->list.items[kept++] = outputs->list.items[i];
    outputs->list.len = kept;
}

void outputs_release(struct outputs *outputs) {
    VEC_RELEASE(&outputs->list);
    arena_release(&outputs->arena);
}

/* ---- copying ---- */

struct copying {
    const char *directory;
    int from, to;
    size_t strip;
    enum outputs_manner manner;
    const struct outputs_progress *progress; /* or NULL */
    uint64_t *copied;                        /* bytes */
    struct error *err;
};

/* Opens the directory that holds a path, below fd; missing ones are made where that is asked.
 * *name is the last part. Returns -1 with errno. */
static int open_parent(int fd, const char *path, bool make, char name[static STEP_ROOM],
                       int *depth) {
    char next[STEP_ROOM];
    int at = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    *depth = 0;
    path = next_part(path, name);
    while (at >= 0 && path && (path = next_part(path, next))) {
        int below, errnum;

        if (make && mkdirat(at, name, 0777) < 0 && errno != EEXIST) {
            errnum = errno;
            close(at);
            errno = errnum;
            return -1;
        }
        below = openat(at, name, DIRECTORY);
        errnum = errno;
        close(at);
        errno = errnum;
        at = below;
        ++*depth;
        memcpy(name, next, sizeof next);
    }
    return at;
}

int outputs_open(const struct rundir *rundir, const char *path, struct error *err) {
    char name[STEP_ROOM];
    int depth, parent = -1, fd = -1, from = open_outputs(rundir, err);
    struct stat st;

    if (from < 0)
        return -1;
    parent = open_parent(from, path, false, name, &depth);
    if (parent >= 0)
        fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        path_failed(rundir, path, err);
    } else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        error_set(err, ERROR_NOT_FOUND, "outputs/%.300s of run %s is not a file any more", path,
                  rundir->id);
        close(fd);
        fd = -1;
    }
    if (parent >= 0)
        close(parent);
    close(from);
    return fd;
}

static int copy_failed(const struct copying *copying, const struct output *output) {
    return error_set_errno(copying->err, errno, "cannot copy to '%.150s/%.250s'",
                           copying->directory, output->path);
}

/* Fails where the destination has a file of that path already. */
static int check_free(const struct copying *copying, const struct output *output) {
    char name[STEP_ROOM];
    int depth, at = open_parent(copying->to, output->path + copying->strip, false, name, &depth);
    struct stat st;
    bool is_there;

    if (at < 0 && errno == ENOENT)
        return 0;
    if (at < 0)
        return copy_failed(copying, output);
    is_there = fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    close(at);
    if (is_there)
        return error_set(copying->err, ERROR_CONFLICT,
                         "'%.150s/%.250s' exists; nothing was copied; --force replaces such files",
                         copying->directory, output->path);
    return 0;
}

/* Says whether to go on; errno is set where not. */
static bool tell_progress(const struct copying *copying, size_t n) {
    const struct outputs_progress *progress = copying->progress;

    *copying->copied += n;
    errno = EINTR;
    return !progress || progress->tell(progress->context, *copying->copied);
}

static int copy_bytes(const struct copying *copying, int from, int to) {
    static char bytes[COPY_PIECE];
    ssize_t n, written;

    /* The kernel copies where both sides allow it; where they do not, nothing was taken. */
    while ((n = copy_file_range(from, NULL, to, NULL, COPY_AT_ONCE, 0)) > 0)
        if (!tell_progress(copying, (size_t)n))
            return -1;
    while ((n = read(from, bytes, sizeof bytes)) > 0) {
        for (ssize_t at = 0; at < n; at += written) {
            written = write(to, bytes + at, (size_t)(n - at));
            if (written < 0)
                return -1;
        }
        if (!tell_progress(copying, (size_t)n))
            return -1;
    }
    return n < 0 ? -1 : 0;
}

/* Makes a file whose name is free, and says which. Returns -1 with errno. */
static int make_part(int at, char part[static PART_NAME]) {
    int fd = -1;

    for (unsigned i = 0; fd < 0 && (i == 0 || errno == EEXIST); i++) {
        snprintf(part, PART_NAME, ".myelin-part.%d.%u", (int)getpid(), i);
        fd = openat(at, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return fd;
}

/* Fills and closes it, with the bytes, rights and time of `from`. */
static int fill_part(const struct copying *copying, int from, int to) {
    struct stat st;
    int status = -1;

    if (fstat(from, &st) == 0 && S_ISREG(st.st_mode) && copy_bytes(copying, from, to) == 0 &&
        fchmod(to, st.st_mode & 0777) == 0 &&
        futimens(to, (struct timespec[]){ st.st_mtim, st.st_mtim }) == 0)
        status = 0;
    if (close(to) < 0)
        status = -1;
    return status;
}

/* Gives the finished part its name. */
static int place_part(const struct copying *copying, int at, const char *part, const char *name) {
    if (copying->manner == OUTPUTS_OVERWRITE)
        return renameat(at, part, at, name);
    if (renameat2(at, part, at, name, RENAME_NOREPLACE) == 0)
        return 0;
    /* Not every file system can refuse; that the name is free was looked up before. */
    return errno == EINVAL ? renameat(at, part, at, name) : -1;
}

static int copy_file(const struct copying *copying, int source, int at, const char *name) {
    int from = openat(source, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int to, status = -1, errnum;
    char part[PART_NAME];

    if (from < 0)
        return -1;
    to = make_part(at, part);
    if (to >= 0) {
        status = fill_part(copying, from, to);
        if (status == 0)
            status = place_part(copying, at, part, name);
        errnum = errno;
        if (status)
            unlinkat(at, part, 0);
        errno = errnum;
    }
    errnum = errno;
    close(from);
    errno = errnum;
    return status;
}

static int copy_link(const struct copying *copying, const char *target, int at, const char *name) {
    if (copying->manner == OUTPUTS_OVERWRITE && unlinkat(at, name, 0) < 0 && errno != ENOENT)
        return -1;
    return symlinkat(target, at, name);
}

/* How many directories of the copy a file is below. */
static int depth_in_copy(const struct copying *copying, const struct output *output) {
    int depth = 0;

    for (const char *p = output->path + copying->strip; (p = strchr(p, '/')); p++)
        depth++;
    return depth;
}

/* *left_out grows by a link that would lead out. */
static int copy_one(const struct copying *copying, const struct output *output, size_t *left_out) {
    char name[STEP_ROOM];
    int depth, source, at, status = -1, errnum;

    source = open_parent(copying->from, output->path, false, name, &depth);
    if (source < 0)
        return copy_failed(copying, output);
    if (output->target && !stays_inside(output->target, depth_in_copy(copying, output))) {
        ++*left_out;
        close(source);
        return 0;
    }
    at = open_parent(copying->to, output->path + copying->strip, true, name, &depth);
    if (at >= 0)
        status = output->target ? copy_link(copying, output->target, at, name)
                                : copy_file(copying, source, at, name);
    errnum = errno;
    if (at >= 0)
        close(at);
    close(source);
    errno = errnum;
    return status ? copy_failed(copying, output) : 0;
}

static int copy_all(const struct copying *copying, const struct outputs *outputs,
                    size_t *left_out) {
    size_t n_left_out = 0;

    for (size_t i = 0; copying->manner == OUTPUTS_NEW_ONLY && i < outputs->list.len; i++)
        if (check_free(copying, &outputs->list.items[i]))
            return -1;
    for (size_t i = 0; i < outputs->list.len; i++)
        if (copy_one(copying, &outputs->list.items[i], &n_left_out))
            return -1;
    *left_out = n_left_out;
    return 0;
}

int outputs_copy(const struct outputs *outputs, const struct rundir *rundir, const char *directory,
                 enum outputs_manner manner, const struct outputs_progress *progress,
                 size_t *left_out, struct error *err) {
    uint64_t copied = 0;
    struct copying copying = { .directory = directory,
                               .strip = outputs->strip,
                               .manner = manner,
                               .progress = progress,
                               .copied = &copied,
                               .err = err };
    int status;

    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the directory '%.300s'", directory);
    copying.to = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copying.to < 0)
        return error_set_errno(err, errno, "cannot copy to '%.300s'", directory);
    copying.from = open_outputs(rundir, err);
    if (copying.from < 0) {
        close(copying.to);
        return -1;
    }
    status = copy_all(&copying, outputs, left_out);
    close(copying.from);
    close(copying.to);
    return status;
}
