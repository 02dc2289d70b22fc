/* SPDX-License-Identifier: Apache-2.0 */
#include "code/snapshot.h"

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
#include "code/facts.h"
#include "code/ignore.h"

enum { RULES_MAX = 1 << 20 }; /* bytes of a file of rules */

/* What a folder's files of rules say; those of the folders above hang behind it. */
struct level {
    struct ignore_rules rules;
    size_t prefix; /* bytes of a path that lead to this folder */
    const struct level *above;
};

struct taking {
    struct pack *pack;
    struct arena *arena;
    struct code_facts *facts;
    struct stat home;
    bool has_home;
    uint64_t bytes, largest;
    char largest_name[PATH_MAX];
    char path[PATH_MAX]; /* from the top, of what is looked at */
};

static int take_folder(struct taking *t, int fd, size_t n, const struct level *above,
                       struct error *err);

/* ---- rules ---- */

/* A file that is missing says nothing; neither does one that cannot be read. */
static void read_rules(struct taking *t, int folder, const char *name, struct level *level) {
    AUTO(buf) text = BUF_INIT(RULES_MAX);
    char path[64];
    struct error err;
    const int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    struct stat st;

    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* Opening a pipe by this path would wait for a writer. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && file_read(path, &text, &err) == 0)
        ignore_parse(&level->rules, text.data, text.len, t->arena);
    close(fd);
}

static bool is_ignored(const struct level *level, const char *path, enum ignore_kind kind) {
    for (; level; level = level->above) {
        const enum ignore_answer answer = ignore_ask(&level->rules, path + level->prefix, kind);

        if (answer != IGNORE_UNDECIDED)
            return answer == IGNORE_IGNORED;
    }
    return false;
}

/* ---- entries ---- */

static int too_large(struct taking *t, struct error *err) {
    return error_set(err, ERROR_EXHAUSTED,
                     "a snapshot holds at most %d files and %llu MiB, and this tree has more (the "
                     "largest file is '%.200s', with %llu MiB): name what is no code in "
                     ".polyaxonignore",
                     SNAPSHOT_FILES_MOST, (unsigned long long)(SNAPSHOT_BYTES_MOST >> 20),
                     t->largest_name, (unsigned long long)(t->largest >> 20));
}

static int count(struct taking *t, const struct stat *st, struct error *err) {
    const uint64_t size = S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;

    if (size >= t->largest) {
        t->largest = size;
        snprintf(t->largest_name, sizeof t->largest_name, "%s", t->path);
    }
    t->bytes += size;
    if (++t->facts->snapshot_files > SNAPSHOT_FILES_MOST || t->bytes > SNAPSHOT_BYTES_MOST)
        return too_large(t, err);
    return 0;
}

static int add(struct taking *t, int folder, const char *name, struct error *err) {
    char entry[PATH_MAX + sizeof SNAPSHOT_TOP];

    snprintf(entry, sizeof entry, "%s/%s", SNAPSHOT_TOP, t->path);
    return pack_add(t->pack, entry, folder, name, err);
}

/* A link that leads out is told by what it leads to from where it is now. */
static int take_link(struct taking *t, int folder, const char *name, struct error *err) {
    struct code_links *links = &t->facts->links;
    char target[PATH_MAX];
    const ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
    const char *slash = strrchr(t->path, '/');

    if (n < 0)
        return errno == ENOENT ? 0 : error_set_errno(err, errno, "cannot read '%.300s'", t->path);
    target[n] = '\0';
    if (archive_link_stays(t->path, target)) {
        t->facts->snapshot_files++;
        return add(t, folder, name, err);
    }
    if (links->n == CODE_NAMES_MOST)
        return error_set(err, ERROR_EXHAUSTED,
                         "more than %d links lead out of the tree (the last is '%.200s'): name "
                         "them in .polyaxonignore",
                         CODE_NAMES_MOST, t->path);
    links->names[links->n] = arena_text(t->arena, t->path, strlen(t->path));
    links->targets[links->n++] =
        target[0] == '/'
            ? arena_text(t->arena, target, strlen(target))
            : arena_printf(t->arena, "%s/%.*s/%s", t->facts->snapshot_root,
                           slash ? (int)(slash - t->path) : 1, slash ? t->path : ".", target);
    return 0;
}

static bool is_home(const struct taking *t, const struct stat *st) {
    return t->has_home && st->st_dev == t->home.st_dev && st->st_ino == t->home.st_ino;
}

static int take_entry(struct taking *t, int folder, const char *name, size_t n,
                      const struct level *level, struct error *err) {
    struct stat st;
    int fd, status;

    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0
                               : error_set_errno(err, errno, "cannot look at '%.300s'", t->path);
    if (is_home(t, &st) ||
        is_ignored(level, t->path, S_ISDIR(st.st_mode) ? IGNORE_FOLDER : IGNORE_FILE))
        return 0;
    if (S_ISLNK(st.st_mode))
        return take_link(t, folder, name, err);
    if (S_ISREG(st.st_mode))
        return count(t, &st, err) || add(t, folder, name, err) ? -1 : 0;
    if (!S_ISDIR(st.st_mode))
        return 0;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", t->path);
    status = add(t, folder, name, err);
    if (status == 0)
        status = take_folder(t, fd, n, level, err);
    close(fd);
    return status;
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_passed_over(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, ".git") == 0;
}

/* The names in it, sorted: the same tree gives the same archive. */
static int list_names(struct taking *t, int fd, const char ***out, size_t *n, struct error *err) {
    VEC(const char *) names = { 0 };
    const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = own >= 0 ? fdopendir(own) : NULL;
    struct dirent *entry;

    if (!folder) {
        error_set_errno(err, errno, "cannot read '%.300s'", t->path);
        if (own >= 0)
            close(own);
        return -1;
    }
    while ((entry = readdir(folder)))
        if (!is_passed_over(entry->d_name))
            *VEC_PUSH(&names) = arena_text(t->arena, entry->d_name, strlen(entry->d_name));
    closedir(folder);
    if (names.len)
        qsort(names.items, names.len, sizeof names.items[0], by_name);
    *out = arena_copy(t->arena, names.items, names.len * sizeof names.items[0]);
    *n = names.len;
    VEC_RELEASE(&names);
    return 0;
}

/* `n`: bytes of its path, 0 at the top. */
static int take_folder(struct taking *t, int fd, size_t n, const struct level *above,
                       struct error *err) {
    struct level level = { .prefix = n ? n + 1 : 0, .above = above };
    const char **names;
    size_t n_names;
    int status = list_names(t, fd, &names, &n_names, err);

    if (status)
        return -1;
    if (n == 0)
        read_rules(t, fd, ".git/info/exclude", &level);
    read_rules(t, fd, ".gitignore", &level);
    read_rules(t, fd, ".polyaxonignore", &level);
    for (size_t i = 0; status == 0 && i < n_names; i++) {
        const size_t length = strlen(names[i]);

        if (level.prefix + length >= sizeof t->path) {
            status = error_set(err, ERROR_INVALID, "a path is too long: '%.200s...'", t->path);
            break;
        }
        if (n)
            t->path[n] = '/';
        memcpy(t->path + level.prefix, names[i], length + 1);
        status = take_entry(t, fd, names[i], level.prefix + length, &level, err);
    }
    t->path[n] = '\0';
    ignore_release(&level.rules);
    return status;
}

static int take_all(struct taking *t, const char *root, struct error *err) {
    const int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", root);
    status = pack_add(t->pack, SNAPSHOT_TOP, fd, ".", err);
    if (status == 0)
        status = take_folder(t, fd, 0, NULL, err);
    close(fd);
    return status;
}

int snapshot_take(const char *directory, const char *home, const struct rundir *rundir,
                  const struct archive_progress *progress, struct arena *arena,
                  struct code_facts *facts, struct error *err) {
    const char *top = code_top(directory, arena);
    struct code_facts found = *facts;
    struct taking *t = calloc(1, sizeof *t);
    int status;

    if (!t)
        abort();
    found.snapshot_root = arena_text(arena, top ? top : directory, strlen(top ? top : directory));
    found.place = code_place(found.snapshot_root, directory, arena);
    t->arena = arena;
    t->facts = &found;
    t->has_home = stat(home, &t->home) == 0;
    status = pack_begin(arena_printf(arena, "%s/%s", rundir->path, CODE_SNAPSHOT_FILE),
                        PACK_NEW_ONLY, &t->pack, err);
    if (status == 0) {
        pack_tell(t->pack, progress);
        status = take_all(t, found.snapshot_root, err);
        if (status)
            pack_discard(t->pack);
        else
            status = pack_finish(t->pack, &found.snapshot_bytes, err);
    }
    free(t);
    if (status)
        return error_wrap(err, "no snapshot can be taken of '%.150s'", found.snapshot_root);
    *facts = found;
    return 0;
}
