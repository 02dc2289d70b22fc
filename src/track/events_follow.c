/* SPDX-License-Identifier: Apache-2.0 */
#include "track/events_follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "track/events_file.h"

enum {
    LOOK_EVERY_US = 2 * 1000 * 1000, /* at directories */
    SETTLED_S = 2,          /* two changes this close may leave a directory the same time */
    ENTRIES_MOST = 1 << 16, /* of one directory: the rest is not looked at */
    STEP_BYTES = 8 << 20,   /* read in one step */
    WINDOW = 1 << 18,       /* read at once, unless a record is longer */
    BUFFER = EVENTS_HEAD + EVENTS_RECORD_MOST + 4,
};

#define TOTAL_BAD "events total bad"

struct folder {
    char *path; /* below the directory; "" is the directory itself */
    unsigned depth;
    struct timespec changed;
    bool is_settled; /* any later change gives it another time */
};

struct event_file {
    char *path;
    size_t folder_n; /* bytes of the path before its last slash */
    uint32_t rank;
    ino_t inode;
    uint64_t size; /* when it was looked at */
    uint64_t offset;
    uint64_t base;   /* what is before it is another's */
    bool is_known;   /* offset is that of the store */
    bool is_anew;    /* read from the beginning, whatever the store says */
    bool is_waiting; /* nothing more can be read of this size */
    bool is_lost;    /* the next record is being looked for */
};

struct events_follow {
    struct events_given given;
    char *directory;
    int64_t next_us; /* when directories are looked at again */
    VEC(struct folder) folders;
    VEC(struct event_file) files;
    size_t turn; /* where to begin: a busy one does not keep the others waiting */
    bool is_full;
    unsigned char *buffer;
};

struct events_follow *events_follow_new(const struct events_given *given) {
    struct events_follow *follow = calloc(1, sizeof *follow);

    if (!follow)
        abort();
    follow->given = *given;
    follow->directory = strdup(given->directory);
    if (!follow->directory)
        abort();
    *VEC_PUSH(&follow->folders) = (struct folder){ .path = strdup("") };
    if (!follow->folders.items[0].path)
        abort();
    return follow;
}

void events_follow_free(struct events_follow *follow) {
    if (!follow)
        return;
    for (size_t i = 0; i < follow->folders.len; i++)
        free(follow->folders.items[i].path);
    for (size_t i = 0; i < follow->files.len; i++)
        free(follow->files.items[i].path);
    VEC_RELEASE(&follow->folders);
    VEC_RELEASE(&follow->files);
    free(follow->buffer);
    free(follow->directory);
    free(follow);
}

void events_follow_forget(struct events_follow *follow) {
    for (size_t i = 0; i < follow->files.len; i++)
        follow->files.items[i].is_known = false;
}

bool events_follow_is_full(const struct events_follow *follow) {
    return follow->is_full && follow->files.len > 0;
}

uint64_t events_bad_total(const struct series_store *store) {
    return series_marked(store, TOTAL_BAD);
}

/* ---- finding ---- */

/* Opens what is at a path below the directory, -1 if there is nothing or a link leads there. */
static int open_below(int root, const char *path, int flags) {
    const int usual = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int at = root, next;

    while (at >= 0) {
        const size_t n = strcspn(path, "/");
        char name[EVENTS_PATH_MOST];

        snprintf(name, sizeof name, "%.*s", n ? (int)n : 1, n ? path : ".");
        next = openat(at, name, usual | (path[n] ? O_DIRECTORY : flags));
        if (at != root)
            close(at);
        at = next;
        if (!path[n])
            return at;
        path += n + 1;
    }
    return -1;
}

/* Of the numbers in events.out.tfevents.<time>.<host>.<process>.<count>…, which one is the
 * process is not said: it is the first behind the time that a task has. */
static uint32_t rank_of(const struct events_follow *follow, const char *name) {
    const char *at = strstr(name, "tfevents.");

    at = at ? strchr(at + strlen("tfevents."), '.') : NULL;
    while (at) {
        char *end;
        const long long pid = strtoll(at + 1, &end, 10);
        const int64_t rank = end > at + 1 && (*end == '.' || *end == '\0') && pid > 0
                                 ? follow->given.rank(follow->given.context, pid)
                                 : -1;

        if (rank >= 0 && rank < UINT32_MAX)
            return (uint32_t)rank;
        at = strchr(at + 1, '.');
    }
    return 0;
}

static bool has_folder(const struct events_follow *follow, const char *path) {
    for (size_t i = 0; i < follow->folders.len; i++)
        if (strcmp(follow->folders.items[i].path, path) == 0)
            return true;
    return false;
}

static bool has_file(const struct events_follow *follow, const char *path) {
    for (size_t i = 0; i < follow->files.len; i++)
        if (strcmp(follow->files.items[i].path, path) == 0)
            return true;
    return false;
}

static void add_entry(struct events_follow *follow, const char *path, unsigned depth,
                      bool is_file) {
    const char *slash = strrchr(path, '/');
    char *copy;

    /* The limit comes first: beyond it nothing is compared with all that is known. */
    if (is_file ? follow->files.len >= EVENTS_FILES_MOST
                : follow->folders.len >= EVENTS_FOLDERS_MOST || depth > EVENTS_DEPTH_MOST) {
        follow->is_full = true;
        return;
    }
    if (is_file ? has_file(follow, path) : has_folder(follow, path))
        return;
    copy = strdup(path);
    if (!copy)
        abort();
    if (is_file)
        *VEC_PUSH(&follow->files) =
            (struct event_file){ .path = copy,
                                 .folder_n = slash ? (size_t)(slash - path) : 0,
                                 .rank = rank_of(follow, slash ? slash + 1 : path) };
    else
        *VEC_PUSH(&follow->folders) = (struct folder){ .path = copy, .depth = depth };
}

static bool is_of_type(int directory, const struct dirent *entry, unsigned char type, mode_t mode) {
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == type;
    return fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_mode & S_IFMT) == mode;
}

/* Lists a folder; the array of folders may move meanwhile. */
static void list_folder(struct events_follow *follow, DIR *directory, const struct folder *folder) {
    const struct dirent *entry;

    for (size_t n = 0; n < ENTRIES_MOST && (entry = readdir(directory)); n++) {
        const bool is_file = strstr(entry->d_name, "tfevents") &&
                             is_of_type(dirfd(directory), entry, DT_REG, S_IFREG);
        char path[EVENTS_PATH_MOST];
        int length;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            !(is_file || is_of_type(dirfd(directory), entry, DT_DIR, S_IFDIR)))
            continue;
        length = snprintf(path, sizeof path, "%s%s%s", folder->path, *folder->path ? "/" : "",
                          entry->d_name);
        if (length < (int)sizeof path)
            add_entry(follow, path, folder->depth + 1, is_file);
    }
}

static void look_into(struct events_follow *follow, int root, size_t i) {
    struct folder *folder = &follow->folders.items[i];
    const int64_t now_s = clock_wall_us() / 1000000;
    struct stat st;
    DIR *directory;
    int fd;

    if (fstatat(root, *folder->path ? folder->path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (folder->is_settled && st.st_mtim.tv_sec == folder->changed.tv_sec &&
         st.st_mtim.tv_nsec == folder->changed.tv_nsec))
        return;
    fd = open_below(root, folder->path, O_DIRECTORY);
    directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        if (fd >= 0)
            close(fd);
        return;
    }
    folder->changed = st.st_mtim;
    folder->is_settled =
        now_s - st.st_mtim.tv_sec > SETTLED_S || st.st_mtim.tv_sec > now_s + SETTLED_S;
    list_folder(follow, directory, &(const struct folder){ folder->path, .depth = folder->depth });
    closedir(directory);
}

/* What has changed with a file. */
static void look_at(struct event_file *file, int root) {
    struct stat st;

    if (fstatat(root, file->path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)) {
        file->is_waiting = true;
        return;
    }
    if (file->inode && (file->inode != st.st_ino || (uint64_t)st.st_size < file->size)) {
        file->offset = file->base = 0;
        file->is_lost = false;
        file->is_anew = true;
    }
    if (file->inode != st.st_ino || file->size != (uint64_t)st.st_size)
        file->is_waiting = false;
    file->inode = st.st_ino;
    file->size = (uint64_t)st.st_size;
}

bool events_follow_look(struct events_follow *follow, enum events_extent extent) {
    const int root = file_open_linkless_directory(follow->directory);
    const int64_t now_us = clock_monotonic_us();
    bool has_new = false;

    if (root < 0)
        return false;
    if (extent == EVENTS_OVER || now_us >= follow->next_us) {
        /* Those that are found meanwhile are looked into at once. */
        for (size_t i = 0; i < follow->folders.len; i++)
            look_into(follow, root, i);
        follow->next_us = now_us + LOOK_EVERY_US;
    }
    for (size_t i = 0; i < follow->files.len; i++) {
        struct event_file *file = &follow->files.items[i];

        look_at(file, root);
        has_new |= (extent == EVENTS_OVER || !file->is_waiting) && file->inode &&
                   (!file->is_known || file->size > file->offset);
    }
    close(root);
    return has_new;
}

void events_follow_skip(struct events_follow *follow) {
    for (size_t i = 0; i < follow->files.len; i++)
        follow->files.items[i].base = follow->files.items[i].size;
}

/* ---- reading ---- */

/* One file at a time. */
struct reading {
    struct event_file *file;
    struct series_store *store;
    uint32_t attempt;
    struct events_result *result;
    int64_t budget;
};

static void mark_name(const char *kind, const struct event_file *file,
                      char out[SERIES_SOURCE_MOST]) {
    snprintf(out, SERIES_SOURCE_MOST, "%s:%s", kind, file->path);
}

static void mark(const struct reading *reading) {
    char source[SERIES_SOURCE_MOST];

    mark_name("events", reading->file, source);
    series_mark(reading->store, source, reading->file->offset);
}

/* Takes over what the store knows of a file, or tells it. */
static void know(struct reading *reading) {
    struct event_file *file = reading->file;
    char source[SERIES_SOURCE_MOST];
    uint64_t known;

    if (!file->is_known) {
        mark_name("events-rank", file, source);
        known = series_marked(reading->store, source);
        if (known > 0 && known <= UINT32_MAX)
            file->rank = (uint32_t)known - 1;
        else
            series_mark(reading->store, source, (uint64_t)file->rank + 1);
        mark_name("events", file, source);
        known = series_marked(reading->store, source);
        file->offset = file->is_anew || known > file->size ? 0 : known;
        if (file->offset < file->base)
            file->offset = file->base;
        mark(reading);
    }
    file->is_known = true;
    file->is_anew = false;
}

static void add_point(void *context, const char *tag, size_t n, const struct point *point) {
    struct reading *reading = context;
    const struct event_file *file = reading->file;
    char name[EVENTS_PATH_MOST + SERIES_NAME_MOST + 1];
    size_t length = file->folder_n;
    uint32_t series;

    if (length > 0) {
        memcpy(name, file->path, length);
        name[length++] = '/';
    }
    if (n > SERIES_NAME_MOST)
        n = SERIES_NAME_MOST;
    memcpy(name + length, tag, n);
    series = series_find(reading->store, name, length + n, file->rank, reading->attempt);
    series_add(reading->store, series, point->step, point->time_us, point->value);
    reading->result->points++;
}

static void count_bad(struct reading *reading) {
    reading->result->bad++;
    series_mark(reading->store, TOTAL_BAD, series_marked(reading->store, TOTAL_BAD) + 1);
}

/* Takes one record; returns how many bytes it takes, 0 to wait for more. */
static uint64_t take(struct reading *reading, const struct events_record *record) {
    struct event_file *file = reading->file;
    const bool was_lost = file->is_lost;

    file->is_lost = record->kind == EVENTS_LOST;
    switch (record->kind) {
    case EVENTS_RECORD:
        if (!events_decode(record->data, record->n, add_point, reading))
            count_bad(reading);
        return record->room;
    case EVENTS_BAD: count_bad(reading); return record->room;
    case EVENTS_LOST:
        if (!was_lost)
            count_bad(reading);
        return record->room;
    case EVENTS_LARGE:
        if (record->room > file->size - file->offset)
            return 0;
        reading->result->large++;
        return record->room;
    case EVENTS_SHORT: file->is_lost = was_lost; return 0;
    }
    return 0;
}

/* Takes what is in a window; *needed becomes the length of a record that it does not hold. */
static int take_all(struct reading *reading, const unsigned char *bytes, size_t n, uint64_t *needed,
                    struct error *err) {
    struct event_file *file = reading->file;
    size_t at = 0;

    while (at < n) {
        const struct events_record record = events_next(bytes + at, n - at);
        const uint64_t room = take(reading, &record);

        if (room == 0) {
            *needed = record.room;
            break;
        }
        file->offset += room;
        at = room < n - at ? at + (size_t)room : n;
        if (series_is_full(reading->store)) {
            mark(reading);
            if (series_commit(reading->store, err))
                return error_wrap(err, "cannot keep what event files say");
        }
    }
    mark(reading);
    return 0;
}

static int read_open_file(struct events_follow *follow, struct reading *reading, int fd,
                          struct error *err) {
    struct event_file *file = reading->file;
    size_t wanted = WINDOW;

    while (reading->budget > 0 && file->offset < file->size) {
        const uint64_t before = file->offset, left = file->size - before;
        const size_t n = left < wanted ? (size_t)left : wanted;
        const ssize_t got = pread(fd, follow->buffer, n, (off_t)before);
        uint64_t needed = 0;

        if (got > 0 && take_all(reading, follow->buffer, (size_t)got, &needed, err))
            return -1;
        if (got <= 0 || needed > file->size - file->offset ||
            (file->offset == before && (size_t)got < n)) {
            file->is_waiting = true;
            break;
        }
        reading->budget -= got;
        wanted = needed > WINDOW ? (size_t)needed : WINDOW;
    }
    return 0;
}

/* What is behind the last whole record of a file that nobody writes to is lost. */
static void end_file(struct reading *reading) {
    struct event_file *file = reading->file;

    if (!file->is_waiting || file->offset >= file->size)
        return;
    if (!file->is_lost)
        count_bad(reading);
    file->offset = file->size;
    mark(reading);
}

static int read_file(struct events_follow *follow, struct reading *reading, int root,
                     enum events_extent extent, struct error *err) {
    struct event_file *file = reading->file;
    struct stat st;
    int fd, status = 0;

    if (!file->inode)
        return 0;
    know(reading);
    if (file->is_waiting || file->offset >= file->size) {
        if (extent == EVENTS_OVER)
            end_file(reading);
        return 0;
    }
    fd = open_below(root, file->path, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != file->inode)
        file->is_waiting = true;
    else {
        status = read_open_file(follow, reading, fd, err);
        if (status == 0 && extent == EVENTS_OVER)
            end_file(reading);
    }
    if (fd >= 0)
        close(fd);
    return status;
}

int events_follow_read(struct events_follow *follow, enum events_extent extent,
                       struct series_store *store, uint32_t attempt, struct events_result *out,
                       struct error *err) {
    struct reading reading = {
        .store = store, .attempt = attempt, .result = out, .budget = STEP_BYTES
    };
    const int root = file_open_linkless_directory(follow->directory);
    int status = 0;

    *out = (struct events_result){ 0 };
    if (root < 0)
        return 0;
    if (!follow->buffer && !(follow->buffer = malloc(BUFFER)))
        abort();
    for (size_t i = 0; status == 0 && i < follow->files.len && reading.budget > 0; i++) {
        reading.file = &follow->files.items[(follow->turn + i) % follow->files.len];
        status = read_file(follow, &reading, root, extent, err);
    }
    follow->turn++;
    out->more = reading.budget <= 0;
    close(root);
    return status;
}
