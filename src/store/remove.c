/* SPDX-License-Identifier: Apache-2.0 */
#include "store/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/rights.h"

enum {
    ROUNDS_MOST = 100,
    LATE_MOST = 1000,
};

static const char *const last_files[] = { "events.jsonl", "lock" };

struct removal {
    const struct rundir *rundir;
    int root; /* the run's directory */
    dev_t device;
    unsigned long moved; /* directories that were moved up so far */
    struct timespec began;
    unsigned late; /* directories among them that were made or changed after that */
    uint64_t freed;
    struct error *err;
};

static int failed(struct removal *r, const char *name) {
    return error_set_errno(r->err, errno, "cannot remove '%.100s' of run %s", name, r->rundir->id);
}

static bool is_last(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(last_files); i++)
        if (strcmp(name, last_files[i]) == 0)
            return true;
    return false;
}

/* A task may have taken our own rights away. Does nothing where the directory is not ours. */
static void make_writable(int parent, const char *name) {
    int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[64];
    struct stat st;

    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
        errno = 0; /* what needs the right says that it has none */
    close(fd);
}

static DIR *open_directory(struct removal *r, int parent, const char *name) {
    struct stat st;
    DIR *dir;
    int fd;

    make_writable(parent, name);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        failed(r, name);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (st.st_dev != r->device) {
        close(fd);
        error_set(r->err, ERROR_CONFLICT, "'%.100s' of run %s is another file system: unmount it",
                  name, r->rundir->id);
        return NULL;
    }
    dir = fdopendir(fd);
    if (!dir)
        abort();
    return dir;
}

static int remove_file(struct removal *r, int parent, const char *name) {
    struct stat st = { 0 };
    bool counts = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_nlink == 1;

    if (unlinkat(parent, name, 0) < 0 && errno != ENOENT)
        return failed(r, name);
    if (counts)
        r->freed += (uint64_t)st.st_blocks * 512;
    return 0;
}

static int still_written(struct removal *r) {
    return error_set(r->err, ERROR_CONFLICT, "something still writes to run %s", r->rundir->id);
}

/* Whether somebody has made or changed a directory since the removal began, which has not touched
 * it yet. Its owner can set the other times, but not this one. */
static bool is_late(const struct removal *r, int parent, const char *name) {
    struct stat st;

    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_ctim.tv_sec > r->began.tv_sec ||
            (st.st_ctim.tv_sec == r->began.tv_sec && st.st_ctim.tv_nsec > r->began.tv_nsec));
}

/* Moves a directory to the root, under a name that is free there. A process that goes on making
 * directories does not keep the caller for ever. */
static int move_up(struct removal *r, int parent, const char *name) {
    char up[32];

    r->late += is_late(r, parent, name);
    if (r->late > LATE_MOST)
        return still_written(r);
    make_writable(parent, name);
    for (;;) {
        snprintf(up, sizeof up, ".removed.%lu", r->moved++);
        if (renameat2(parent, name, r->root, up, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return failed(r, name);
    }
}

static bool is_directory(int parent, const struct dirent *entry) {
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(parent, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool is_self_or_parent(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Removes a directory's files and moves up the directories in it. */
static int empty(struct removal *r, DIR *dir) {
    struct dirent *entry;

    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (is_self_or_parent(name))
            continue;
        if (is_directory(dirfd(dir), entry) ? move_up(r, dirfd(dir), name)
                                            : remove_file(r, dirfd(dir), name))
            return -1;
    }
    return 0;
}

static int remove_directory(struct removal *r, const char *name) {
    struct stat st = { 0 };
    DIR *dir = open_directory(r, r->root, name);
    int status;

    if (!dir)
        return -1;
    status = empty(r, dir);
    fstat(dirfd(dir), &st);
    closedir(dir);
    if (status)
        return -1;
    if (unlinkat(r->root, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return errno == ENOTEMPTY ? 0 : failed(r, name); /* what came meanwhile: next round */
    r->freed += (uint64_t)st.st_blocks * 512;
    return 0;
}

/* One pass over the root; *left is whether there was something besides the last files. */
static int remove_round(struct removal *r, bool *left) {
    DIR *dir = open_directory(r, r->root, ".");
    struct dirent *entry;
    int status = 0;

    *left = false;
    if (!dir)
        return -1;
    while (status == 0 && (entry = readdir(dir))) {
        if (is_self_or_parent(entry->d_name) || is_last(entry->d_name))
            continue;
        *left = true;
        status = is_directory(r->root, entry) ? remove_directory(r, entry->d_name)
                                              : remove_file(r, r->root, entry->d_name);
    }
    closedir(dir);
    return status;
}

static int remove_root(struct removal *r) {
    for (int i = 0; i < ROUNDS_MOST; i++) {
        for (size_t j = 0; j < ARRAY_LEN(last_files); j++)
            if (remove_file(r, r->root, last_files[j]))
                return -1;
        if (rmdir(r->rundir->path) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY)
            break; /* else someone has just asked for the lock, and made it anew */
    }
    return failed(r, r->rundir->path);
}

static int remove_all(struct removal *r) {
    bool left = true;
    unsigned rounds = 0;

    while (left) {
        unsigned long before = r->moved;

        if (remove_round(r, &left))
            return -1;
        /* A round that moves nothing up leaves nothing, unless someone adds to it. */
        rounds = r->moved == before ? rounds + 1 : 0;
        if (rounds > ROUNDS_MOST)
            return still_written(r);
    }
    return remove_root(r);
}

int remove_unbegun_run(const struct rundir *rundir, uint64_t *freed, struct error *err) {
    struct removal r = { .rundir = rundir, .err = err };
    struct stat st;
    int status;

    if (rights_check(rundir, err))
        return -1;
    make_writable(AT_FDCWD, rundir->path);
    r.root = open(rundir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (r.root < 0)
        return error_set_errno(err, errno, "cannot remove run %s", rundir->id);
    if (fstat(r.root, &st) == 0)
        r.device = st.st_dev;
    clock_gettime(CLOCK_REALTIME, &r.began);
    status = remove_all(&r);
    close(r.root);
    if (status == 0)
        *freed = r.freed;
    return status;
}

/* A disk that is full of runs must not keep one from being removed: then the id may come again. */
static void retire_id(const struct rundir *rundir) {
    AUTO(arena) arena = ARENA_INIT;
    struct error ignored;

    if (rundir_retire(rundir_home_of(rundir, &arena), strtoul(rundir->id, NULL, 10), &ignored))
        return;
}

int remove_run(const struct rundir *rundir, uint64_t *freed, struct error *err) {
    if (rights_check(rundir, err))
        return -1;
    retire_id(rundir);
    return remove_unbegun_run(rundir, freed, err);
}
