/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rundir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "store/sharing.h"

enum {
    HOME_MODE = 0700,
    ID_DIGITS = 9,
    ID_TRIES = 10000,
    LOCK_TRIES = 500,
    LOCK_PAUSE_MS = 2,
};

static const char last_name[] = "last-run";

int rundir_home(struct arena *arena, const char **out, struct error *err) {
    const char *given = getenv("MYELIN_HOME");
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (given && given[0]) {
        *out = arena_text(arena, given, strlen(given));
        return 0;
    }
    if (!home || !home[0]) {
        user = getpwuid(geteuid());
        home = user ? user->pw_dir : NULL;
    }
    if (!home || !home[0])
        return error_set(err, ERROR_NOT_FOUND,
                         "there is no home directory to keep runs in: set MYELIN_HOME");
    *out = arena_printf(arena, "%s/.myelin", home);
    return 0;
}

static int cannot_make(struct error *err, int errnum, const char *path) {
    if (errnum == EROFS || errnum == EACCES)
        return error_set(err, ERROR_DENIED,
                         "cannot make the directory '%.200s': %s; runs are kept there: make it "
                         "writable, or set MYELIN_HOME to a directory that is",
                         path, strerror(errnum));
    return error_set_errno(err, errnum, "cannot make the directory '%.300s'", path);
}

/* Makes the directory and those above it. */
static int make_path(const char *path, struct error *err) {
    char so_far[PATH_MAX];
    const size_t n = strlen(path);

    if (n >= sizeof so_far)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(so_far, path, i);
        so_far[i] = '\0';
        if (mkdir(so_far, HOME_MODE) < 0 && errno != EEXIST)
            return cannot_make(err, errno, so_far);
    }
    return 0;
}

/* The number that a name is as we write it, without leading zeros, or 0. */
static unsigned long id_of(const char *name) {
    char *end;
    unsigned long id;

    if (!isdigit((unsigned char)name[0]) || name[0] == '0')
        return 0;
    id = strtoul(name, &end, 10);
    return *end == '\0' && id <= RUNDIR_ID_LAST ? id : 0;
}

static unsigned long highest_id(const char *runs) {
    DIR *dir = opendir(runs);
    unsigned long highest = 0;
    struct dirent *entry;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)))
        if (id_of(entry->d_name) > highest)
            highest = id_of(entry->d_name);
    closedir(dir);
    return highest;
}

/* ---- ids that are not given again ---- */

/* Opens the file that keeps the highest id whose directory was removed. */
static int open_last(const char *home, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", home, last_name) >= (int)sizeof path)
        return -1;
    return shared_open(home, path, flags | O_CLOEXEC, SHARED_TO_WRITE, 0666);
}

/* What is not as we write it is as nothing: the file is only a lower bound. */
static unsigned long read_last(int fd) {
    char text[ID_DIGITS + 3] = "";

    if (fd < 0 || pread(fd, text, sizeof text - 1, 0) != ID_DIGITS + 1 ||
        strspn(text, "0123456789") != ID_DIGITS || text[ID_DIGITS] != '\n')
        return 0;
    return strtoul(text, NULL, 10);
}

/* Numbers have one length, so that each write replaces the whole of the one before. */
static int write_last(int fd, unsigned long id) {
    char text[ID_DIGITS + 2];
    const int n = snprintf(text, sizeof text, "%0*lu\n", ID_DIGITS, id);

    return pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0 ? 0 : -1;
}

/* A stopped process may sit on the lock: nobody waits for it for ever. */
static bool lock_last(int fd) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_OFD_SETLK, &all) == 0)
            return true;
        clock_pause_ms(LOCK_PAUSE_MS);
    }
    return false;
}

int rundir_retire(const char *home, unsigned long id, struct error *err) {
    const int fd = open_last(home, O_RDWR | O_CREAT);
    int status = 0;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot write '%.300s/%s'", home, last_name);
    if (!lock_last(fd))
        status = error_set(err, ERROR_UNAVAILABLE, "'%.300s/%s' is locked by another process", home,
                           last_name);
    else if (read_last(fd) < id && write_last(fd, id))
        status = error_set_errno(err, errno, "cannot write '%.300s/%s'", home, last_name);
    close(fd);
    return status;
}

unsigned long rundir_last(const char *home) {
    char runs[PATH_MAX];
    const unsigned long highest =
        snprintf(runs, sizeof runs, "%s/runs", home) < (int)sizeof runs ? highest_id(runs) : 0;
    /* Who removes a run writes its id down first: so who looks here last misses none. */
    const int fd = open_last(home, O_RDONLY);
    const unsigned long last = read_last(fd);

    if (fd >= 0)
        close(fd);
    return last > highest ? last : highest;
}

/* ---- runs ---- */

static int ascending(const void *a, const void *b) {
    const unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

    return (x > y) - (x < y);
}

int rundir_list(const char *home, struct arena *arena, unsigned long **ids, size_t *n,
                struct error *err) {
    VEC(unsigned long) found = { 0 };
    char runs[PATH_MAX];
    struct dirent *entry;
    DIR *dir;

    if (snprintf(runs, sizeof runs, "%s/runs", home) >= (int)sizeof runs)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    dir = opendir(runs);
    if (!dir && errno != ENOENT)
        return error_set_errno(err, errno, "cannot read '%.300s'", runs);
    while (dir && (entry = readdir(dir)))
        if (id_of(entry->d_name))
            *VEC_PUSH(&found) = id_of(entry->d_name);
    if (dir)
        closedir(dir);
    if (found.len > 0)
        qsort(found.items, found.len, sizeof *found.items, ascending);
    *ids = arena_copy(arena, found.items, found.len * sizeof *found.items);
    *n = found.len;
    VEC_RELEASE(&found);
    return 0;
}

/* Whose outputs the link of a run leads to; NULL where it has its own. Only links of the form
 * that rundir_share_outputs makes count. */
static const char *shared_outputs(const struct rundir *rundir, struct arena *arena) {
    const char *path = arena_printf(arena, "%s/outputs", rundir->path);
    char target[64];
    ssize_t n = readlink(path, target, sizeof target - 1);
    char *end;

    if (n < 0)
        return NULL;
    target[n] = '\0';
    end = strrchr(target, '/');
    if (strncmp(target, "../", 3) != 0 || !end || strcmp(end, "/outputs") != 0)
        return NULL;
    *end = '\0';
    return end > target + 3 && id_of(target + 3) ? arena_text(arena, target + 3, strlen(target + 3))
                                                 : NULL;
}

static void name_parts(struct rundir *rundir, struct arena *arena) {
    const char *other = shared_outputs(rundir, arena);
    const char *slash = strrchr(rundir->path, '/');

    rundir->outputs = other ? arena_printf(arena, "%.*s/%s/outputs", (int)(slash - rundir->path),
                                           rundir->path, other)
                            : arena_printf(arena, "%s/outputs", rundir->path);
    rundir->outputs_of = other ? other : rundir->id;
    rundir->logs = arena_printf(arena, "%s/logs", rundir->path);
    rundir->journal = arena_printf(arena, "%s/events.jsonl", rundir->path);
    rundir->spool = arena_printf(arena, "%s/spool", rundir->path);
    rundir->series = arena_printf(arena, "%s/series", rundir->path);
}

struct rundir rundir_copy(const struct rundir *rundir, struct arena *arena) {
    struct rundir copy = { .id = arena_text(arena, rundir->id, strlen(rundir->id)),
                           .path = arena_text(arena, rundir->path, strlen(rundir->path)),
                           .owner = rundir->owner,
                           .group = rundir->group };

    name_parts(&copy, arena);
    return copy;
}

int rundir_open(const char *home, unsigned long id, struct arena *arena, struct rundir *out,
                struct error *err) {
    struct rundir found = { .id = arena_printf(arena, "%lu", id) };
    char real[PATH_MAX];
    struct stat st;
    int errnum = 0;

    /* Only down to `runs`: the owner of the run may put a link in its place at any moment. */
    if (realpath(arena_printf(arena, "%s/runs", home), real))
        found.path = arena_printf(arena, "%s/%lu", real, id);
    if (!found.path || lstat(found.path, &st) < 0)
        errnum = errno;
    if (errnum == ENOENT || errnum == ENOTDIR || (!errnum && !S_ISDIR(st.st_mode)))
        return error_set(err, ERROR_NOT_FOUND, "there is no run %lu", id);
    if (errnum)
        return error_set_errno(err, errnum, "cannot look at run %lu", id);
    found.owner = st.st_uid;
    found.group = st.st_gid;
    name_parts(&found, arena);
    *out = found;
    return 0;
}

const char *rundir_home_of(const struct rundir *rundir, struct arena *arena) {
    const char *runs = strrchr(rundir->path, '/');

    while (runs && runs > rundir->path && *--runs != '/')
        continue;
    return runs ? arena_text(arena, rundir->path, (size_t)(runs - rundir->path)) : ".";
}

unsigned long rundir_id_before_next(const unsigned long *ids, size_t n, unsigned long last) {
    if (last < RUNDIR_ID_LAST && (n == 0 || ids[n - 1] <= last))
        return last;
    for (size_t i = n; i > 0; i--)
        if (ids[i - 1] < RUNDIR_ID_LAST && (i == n || ids[i] != ids[i - 1] + 1))
            return ids[i - 1];
    return 0;
}

/* The id after which the next one is looked for. */
static unsigned long find_id_before_next(const char *home, struct arena *arena) {
    const unsigned long last = rundir_last(home);
    struct error ignored;
    unsigned long *ids;
    size_t n;

    if (last < RUNDIR_ID_LAST || rundir_list(home, arena, &ids, &n, &ignored))
        return last;
    return rundir_id_before_next(ids, n, last);
}

/* Makes the directory of the next id, or moves one there (`from`, NULL: none). */
static int make_numbered(const char *home, const char *runs, const char *from, struct arena *arena,
                         struct rundir *out, struct error *err) {
    unsigned long id = find_id_before_next(home, arena);

    for (int i = 0; i < ID_TRIES && id < RUNDIR_ID_LAST; i++) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%s/%lu", runs, ++id) >= (int)sizeof path)
            return error_set(err, ERROR_INVALID, "the path of the home is too long");
        if ((from ? renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE)
                  : shared_mkdir(home, path, SHARED_TO_ENTER, 0777)) == 0) {
            out->id = arena_printf(arena, "%lu", id);
            out->path = arena_text(arena, path, strlen(path));
            out->owner = geteuid();
            out->group = getegid();
            return 0;
        }
        if (errno != EEXIST)
            return cannot_make(err, errno, path);
    }
    return error_set(err, ERROR_EXHAUSTED, "no run number is free in '%.300s'", runs);
}

/* The directory of all runs, made where it is missing. */
static int make_runs(const char *home, char real[static PATH_MAX], struct error *err) {
    char runs[PATH_MAX];

    if (snprintf(runs, sizeof runs, "%s/runs", home) >= (int)sizeof runs)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    if (make_path(home, err))
        return -1;
    if (access(runs, F_OK) < 0 && home_check_maker(home, err))
        return -1;
    if (shared_mkdir(home, runs, SHARED_TO_WRITE, HOME_MODE) < 0 && errno != EEXIST)
        return cannot_make(err, errno, runs);
    if (!realpath(runs, real))
        return error_set_errno(err, errno, "cannot enter '%.300s'", runs);
    return home_check_safe(home, real, err);
}

int rundir_make_home(const char *home, struct error *err) {
    char real[PATH_MAX];

    return make_runs(home, real, err);
}

int rundir_adopt(const char *home, const char *directory, struct arena *arena, struct rundir *out,
                 struct error *err) {
    char real[PATH_MAX];
    struct rundir made;

    if (make_runs(home, real, err) || make_numbered(home, real, directory, arena, &made, err))
        return -1;
    name_parts(&made, arena);
    *out = made;
    return 0;
}

int rundir_make(const char *home, struct arena *arena, struct rundir *out, struct error *err) {
    char real[PATH_MAX];
    struct rundir made;

    if (make_runs(home, real, err) || make_numbered(home, real, NULL, arena, &made, err))
        return -1;
    name_parts(&made, arena);
    if (mkdir(made.outputs, 0777) < 0 || mkdir(made.logs, 0777) < 0 ||
        mkdir(made.spool, 0777) < 0) {
        error_set_errno(err, errno, "cannot make the directories of run %s", made.id);
        rundir_remove(&made);
        return -1;
    }
    *out = made;
    return 0;
}

int rundir_share_outputs(const struct rundir *rundir, const struct rundir *other,
                         struct error *err) {
    char own[PATH_MAX], target[64];

    if (snprintf(own, sizeof own, "%s/outputs", rundir->path) >= (int)sizeof own)
        return error_set(err, ERROR_INVALID, "the path of the home is too long");
    snprintf(target, sizeof target, "../%s/outputs", other->outputs_of);
    if (rmdir(own) < 0 || symlink(target, own) < 0)
        return error_set_errno(err, errno, "cannot give run %s the outputs of run %s", rundir->id,
                               other->id);
    return 0;
}

const char *rundir_attempt_logs(const struct rundir *rundir, uint32_t attempt,
                                struct arena *arena) {
    return attempt == 0 ? arena_text(arena, rundir->logs, strlen(rundir->logs))
                        : arena_printf(arena, "%s/attempt-%" PRIu32, rundir->logs, attempt);
}

mode_t rundir_umask(const struct rundir *rundir) {
    const mode_t others = S_IRWXG | S_IRWXO;
    struct stat st;

    return lstat(rundir->logs, &st) == 0 && S_ISDIR(st.st_mode) ? others & ~st.st_mode : others;
}

void rundir_remove(const struct rundir *rundir) {
    static const char *const ours[] = { "lock", "events.jsonl" };
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (snprintf(path, sizeof path, "%s/%s", rundir->path, ours[i]) < (int)sizeof path)
            unlink(path);
    rmdir(rundir->outputs);
    rmdir(rundir->spool);
    rmdir(rundir->logs);
    rmdir(rundir->path);
}

int rundir_write(const struct rundir *rundir, const char *name, const char *bytes, size_t n,
                 struct error *err) {
    char path[PATH_MAX], part[PATH_MAX];
    FILE *file;
    size_t written;

    if (snprintf(path, sizeof path, "%s/%s", rundir->path, name) >= (int)sizeof path ||
        snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return error_set(err, ERROR_INVALID, "the path of %s is too long", name);
    file = fopen(part, "we");
    if (!file)
        return error_set_errno(err, errno, "cannot write '%.300s'", path);
    written = fwrite(bytes, 1, n, file);
    if (fclose(file) != 0 || written != n || rename(part, path) < 0) {
        error_set_errno(err, errno, "cannot write '%.300s'", path);
        unlink(part);
        return -1;
    }
    return 0;
}
