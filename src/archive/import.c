/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/import.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "archive/contents.h"
#include "archive/import_models.h"
#include "archive/walk.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/tree.h"
#include "store/find.h"
#include "store/owner.h"
#include "store/record.h"

#define TEMPORARY "import."
enum {
    ENTRIES_MOST = 50 * 1000 * 1000,
    LOCK_TRIES = 500,
    LOCK_PAUSE_MS = 10,
    LEFT_AFTER_S = 60, /* who has just begun may not have its lock yet */
};

struct importing {
    const char *home, *called;
    struct arena arena;
    char temporary[PATH_MAX]; /* $MYELIN_HOME/import.XXXXXX */
    int lock;                 /* of the temporary directory */
    struct contents contents;
};

void imports_release(struct imports *imports) {
    for (size_t i = 0; i < imports->list.len; i++)
        VEC_RELEASE(&imports->list.items[i].models);
    VEC_RELEASE(&imports->list);
    arena_release(&imports->arena);
}

/* A directory outside of runs/ as one of a run, for those who take such. */
static struct rundir as_run(const char *path, const char *id, struct arena *arena) {
    return rundir_copy(
        &(struct rundir){ .id = id, .path = path, .owner = geteuid(), .group = getegid() }, arena);
}

static const char *run_path(struct importing *im, const struct contents_run *run) {
    return arena_printf(&im->arena, "%s/content/runs/%s", im->temporary, run->uuid);
}

static int refuse(const struct importing *im, const struct contents_run *run, const char *why,
                  struct error *err) {
    return error_set(err, ERROR_INVALID, "%.100s: the run %.8s in it %s: nothing is imported",
                     im->called, run->uuid, why);
}

/* ---- unpacking ---- */

/* The lock says that somebody is at work here: `gc` takes what is not locked for left behind. */
static int make_temporary(struct importing *im, struct error *err) {
    struct rundir place;

    if (rundir_make_home(im->home, err))
        return -1;
    if (snprintf(im->temporary, sizeof im->temporary, "%s/" TEMPORARY "XXXXXX", im->home) >=
        (int)sizeof im->temporary)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (!mkdtemp(im->temporary))
        return error_set_errno(err, errno, "cannot write to '%.300s'", im->home);
    place = as_run(im->temporary, "import", &im->arena);
    if (owner_take(&place, &im->lock, err)) {
        tree_remove(im->temporary);
        return -1;
    }
    return 0;
}

static uint64_t free_bytes(const char *path) {
    struct statvfs vfs;

    return statvfs(path, &vfs) == 0 ? (uint64_t)vfs.f_bavail * vfs.f_frsize : UINT64_MAX;
}

static int unpack_all(struct importing *im, int fd, const struct archive_progress *progress,
                      struct error *err) {
    const struct unpack_terms terms = { .entries_most = ENTRIES_MOST,
                                        .bytes_most = free_bytes(im->temporary),
                                        .seal = UNPACK_SEALED_ONLY,
                                        .progress = progress };
    const char *content = arena_printf(&im->arena, "%s/content", im->temporary);
    AUTO(buf) text = BUF_INIT(CONTENTS_MOST);
    struct error why;

    if (unpack(fd, im->called, content, &terms, err))
        return -1;
    if (file_read(arena_printf(&im->arena, "%s/" CONTENTS_FILE, content), &text, &why))
        return error_set(err, ERROR_INVALID,
                         "%.200s is an archive, but not of runs: it has no " CONTENTS_FILE,
                         im->called);
    if (contents_parse(text.data, text.len, &im->contents, err))
        return error_wrap(err, "%.200s: " CONTENTS_FILE, im->called);
    return 0;
}

/* ---- what a run is held to ---- */

struct checking {
    const struct importing *im;
    const struct contents_run *run;
};

/* Links lead to somewhere in the run itself, and stand where tasks put them: one in the place of
 * our own files, or of the outputs, would make the run share what is another's. */
static int check_entry(void *context, const struct walk_entry *entry, struct error *err) {
    const struct checking *checking = context;
    char target[PATH_MAX];
    ssize_t n;

    if (!S_ISLNK(entry->st->st_mode))
        return 0;
    n = readlink(entry->path, target, sizeof target - 1);
    if (n < 0)
        return error_set_errno(err, errno, "cannot read the link '%.300s'", entry->name);
    target[n] = '\0';
    if (strncmp(entry->name, "outputs/", 8) != 0 || !archive_link_stays(entry->name, target))
        return refuse(checking->im, checking->run, "has a link that leads out of it", err);
    return 0;
}

static int check_record(const struct importing *im, const struct contents_run *run,
                        const struct rundir *rundir, struct error *err) {
    struct run_record record;
    int status = 0;

    if (record_read(&record, rundir, err))
        return -1;
    if (!record.uuid)
        status = refuse(im, run, "has no journal that can be read", err);
    else if (strcmp(record.uuid, run->uuid) != 0)
        status = refuse(im, run, "has the journal of another run", err);
    else if (!state_is_final(record.state))
        status = refuse(im, run, "is not over", err);
    record_release(&record);
    return status;
}

static int make_missing(const char *path, struct error *err) {
    struct stat st;

    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make '%.300s'", path);
    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return error_set(err, ERROR_INVALID, "'%.300s' is not a directory", path);
    return 0;
}

static int check_run(struct importing *im, const struct contents_run *run, struct error *err) {
    const struct checking checking = { im, run };
    const char *path = run_path(im, run);
    struct rundir rundir;
    struct stat st;

    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return refuse(im, run, "is only told of", err);
    if (walk(path, check_entry, (void *)(uintptr_t)&checking, err))
        return -1;
    rundir = as_run(path, run->uuid, &im->arena);
    if (lstat(arena_printf(&im->arena, "%s/lock", path), &st) == 0)
        return refuse(im, run, "has a lock", err);
    return check_record(im, run, &rundir, err) || make_missing(rundir.outputs, err) ||
                   make_missing(rundir.logs, err)
               ? -1
               : 0;
}

/* ---- to its place ---- */

/* The run of this home with that uuid, or 0. */
static int find_uuid(struct importing *im, const char *uuid, unsigned long *out,
                     struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    unsigned long *ids;
    size_t n;

    *out = 0;
    if (rundir_list(im->home, &arena, &ids, &n, err))
        return -1;
    for (size_t i = 0; i < n && !*out; i++) {
        struct run_identity identity;
        struct rundir rundir;
        struct error gone;

        if (rundir_open(im->home, ids[i], &arena, &rundir, &gone))
            continue;
        identify_run(&rundir, &arena, &identity);
        if (identity.uuid && strcmp(identity.uuid, uuid) == 0)
            *out = ids[i];
    }
    return 0;
}

/* Between the look for its uuid and the move nobody else imports the same. */
static int lock_runs(struct importing *im, struct error *err) {
    const char *runs = arena_printf(&im->arena, "%s/runs", im->home);
    const int fd = open(runs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_set_errno(err, errno, "cannot lock '%.300s'", runs);
    /* A stopped process may sit on the lock: nobody waits for it for ever. */
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        clock_pause_ms(LOCK_PAUSE_MS);
    }
    close(fd);
    return error_set(err, ERROR_UNAVAILABLE, "another import holds '%.300s': try again", runs);
}

static int put_in_place(struct importing *im, const struct contents_run *run, struct imported *out,
                        struct rundir *rundir, struct error *err) {
    const int runs = lock_runs(im, err);
    int status;

    if (runs < 0)
        return -1;
    status = find_uuid(im, run->uuid, &out->id, err);
    out->was_here = out->id != 0;
    if (status == 0 && !out->was_here)
        status = rundir_adopt(im->home, run_path(im, run), &im->arena, rundir, err);
    if (status == 0 && !out->was_here) {
        out->id = strtoul(rundir->id, NULL, 10);
        fsync(runs);
    }
    close(runs);
    return status;
}

static int import_run(struct importing *im, const struct contents_run *run, struct imports *imports,
                      struct error *err) {
    struct imported it = { .id_there = run->id, .bytes = run->bytes };
    struct rundir rundir = as_run(run_path(im, run), run->uuid, &im->arena);
    struct error why;
    int lock;

    if (import_models_forget(&rundir, err) || owner_take(&rundir, &lock, err))
        return -1;
    if (put_in_place(im, run, &it, &rundir, err)) {
        close(lock);
        return -1;
    }
    it.uuid = arena_text(&imports->arena, run->uuid, strlen(run->uuid));
    if (!it.was_here && import_models_adopt(im->home, &rundir, run, &imports->arena, &it, &why))
        it.models_trouble = arena_text(&imports->arena, why.message, strlen(why.message));
    close(lock);
    *VEC_PUSH(&imports->list) = it;
    return 0;
}

static int import_all(struct importing *im, int fd, const struct archive_progress *progress,
                      struct imports *imports, struct error *err) {
    const struct contents *contents = &im->contents;

    if (unpack_all(im, fd, progress, err))
        return -1;
    for (size_t i = 0; i < contents->runs.len; i++)
        if (check_run(im, &contents->runs.items[i], err))
            return -1;
    for (size_t i = 0; i < contents->runs.len; i++)
        if (import_run(im, &contents->runs.items[i], imports, err))
            return -1;
    return 0;
}

int import_archive(const char *home, int fd, const char *name,
                   const struct archive_progress *progress, struct imports *out,
                   struct error *err) {
    struct importing im = { .home = home, .called = name };
    int status = make_temporary(&im, err);

    if (status == 0) {
        status = import_all(&im, fd, progress, out, err);
        tree_remove(im.temporary);
        close(im.lock);
    }
    contents_release(&im.contents);
    arena_release(&im.arena);
    return status;
}

/* ---- what was left behind ---- */

int import_leftovers(const char *home, struct arena *arena, const char ***paths, size_t *n,
                     struct error *err) {
    VEC(const char *) found = { 0 };
    const struct dirent *entry;
    DIR *dir = opendir(home);

    if (!dir && errno != ENOENT)
        return error_set_errno(err, errno, "cannot read '%.300s'", home);
    while (dir && (entry = readdir(dir))) {
        struct rundir place;
        struct stat st;
        pid_t pid;

        if (strncmp(entry->d_name, TEMPORARY, sizeof TEMPORARY - 1) != 0)
            continue;
        place = as_run(arena_printf(arena, "%s/%s", home, entry->d_name), "import", arena);
        if (lstat(place.path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
            time(NULL) - st.st_mtim.tv_sec > LEFT_AFTER_S && !owner_lives(&place, &pid))
            *VEC_PUSH(&found) = place.path;
    }
    if (dir)
        closedir(dir);
    *paths = arena_copy(arena, found.items, found.len * sizeof *found.items);
    *n = found.len;
    VEC_RELEASE(&found);
    return 0;
}
