/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/vec.h"

enum {
    PATH_MOST = 4096,
    INDEX_MOST = 512 << 20, /* of the file that names the files */
    FLUSH_EVERY = 16 << 20, /* so that the last write does not wait for all of a large file */
};

/* A file that some ranks have given whole. */
struct gathered {
    const char *path;
    uint32_t rank; /* the lowest */
};

/* What one rank has given. */
struct given {
    const char *path;
    uint32_t rank;
    uint64_t size;
};

/* Of one rank. */
struct part {
    char *path; /* of the file that is coming; NULL: none */
    uint64_t size;
    VEC(const struct given *) given;
};

struct gather {
    char *outputs, *index;
    struct arena arena;
    void *files; /* tree of struct gathered, by path */
    void *given; /* tree of struct given, by path and rank */
    struct part *parts;
    uint32_t n_tasks;
    struct gather_counts counts;
};

/* ---- paths ---- */

static bool is_component(const char *text, size_t n) {
    return n > 0 && n <= NAME_MAX && !(n == 1 && text[0] == '.') &&
           !(n == 2 && text[0] == '.' && text[1] == '.');
}

/* Downwards alone. The names of parts are not the task's to give. */
static bool is_path(const char *path, size_t n) {
    if (n == 0 || n >= PATH_MOST || memchr(path, '\0', n) ||
        (n >= strlen(GATHER_PART) && memcmp(path, GATHER_PART, strlen(GATHER_PART)) == 0))
        return false;
    for (size_t i = 0; i <= n; i++) {
        const char *slash = memchr(path + i, '/', n - i);
        const size_t len = slash ? (size_t)(slash - path) - i : n - i;

        if (!is_component(path + i, len))
            return false;
        i += len;
    }
    return true;
}

/* Opens the directory that the file is to be in, and makes those that are missing; -1 and errno.
 * *name is the last component. */
static int open_parent(const struct gather *gather, const char *path, const char **name) {
    int fd = open(gather->outputs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (fd >= 0) {
        const char *slash = strchr(path, '/');
        char component[NAME_MAX + 1];
        int next;

        if (!slash) {
            *name = path;
            return fd;
        }
        snprintf(component, sizeof component, "%.*s", (int)(slash - path), path);
        mkdirat(fd, component, 0777);
        next = openat(fd, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
        path = slash + 1;
    }
    return -1;
}

/* ---- which are known ---- */

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct gathered *)a)->path, ((const struct gathered *)b)->path);
}

static struct gathered *find(const struct gather *gather, const char *path) {
    const struct gathered key = { .path = path };
    void *const *found = tfind(&key, &gather->files, by_path);

    return found ? *found : NULL;
}

static int by_path_and_rank(const void *a, const void *b) {
    const struct given *left = a, *right = b;
    const int order = strcmp(left->path, right->path);

    return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static bool is_given(const struct gather *gather, uint32_t rank, const char *path) {
    const struct given key = { .path = path, .rank = rank };

    return tfind(&key, &gather->given, by_path_and_rank) != NULL;
}

static void add_given(struct gather *gather, uint32_t rank, const char *path, uint64_t size) {
    struct given *given = ARENA_NEW(&gather->arena, struct given);

    *given = (struct given){ path, rank, size };
    if (!tsearch(given, &gather->given, by_path_and_rank))
        abort();
    *VEC_PUSH(&gather->parts[rank].given) = given;
}

static void note_double(struct gather *gather, const char *path) {
    gather->counts.doubles++;
    if (!gather->counts.double_path)
        gather->counts.double_path = path;
}

static void note_given(struct gather *gather, uint32_t rank, const char *path, uint64_t size) {
    struct gathered *known = find(gather, path);

    if (is_given(gather, rank, path))
        return;
    if (!known) {
        known = ARENA_NEW(&gather->arena, struct gathered);
        *known = (struct gathered){ arena_text(&gather->arena, path, strlen(path)), rank };
        if (!tsearch(known, &gather->files, by_path))
            abort();
        gather->counts.files++;
    } else {
        note_double(gather, known->path);
    }
    if (rank < known->rank)
        known->rank = rank;
    add_given(gather, rank, known->path, size);
}

/* Entries of "<rank> <size> <path>", each ended by NUL: a path may have any other byte. */
static void read_index(struct gather *gather) {
    AUTO(buf) text = BUF_INIT(INDEX_MOST);
    struct error err;

    if (file_read(gather->index, &text, &err))
        return;
    for (size_t at = 0; at < text.len;) {
        const char *entry = text.data + at;
        const size_t n = strlen(entry);
        uint32_t rank;
        uint64_t size;
        int head = 0;

        at += n + 1;
        if (at > text.len || sscanf(entry, "%" SCNu32 " %" SCNu64 "%n", &rank, &size, &head) != 2 ||
            head == 0 || entry[head] != ' ' || rank >= gather->n_tasks ||
            !is_path(entry + head + 1, n - (size_t)head - 1))
            continue;
        note_given(gather, rank, entry + head + 1, size);
    }
}

static int write_index(const struct gather *gather, uint32_t rank, uint64_t size, const char *path,
                       struct error *err) {
    AUTO(buf) entry = BUF_INIT(PATH_MOST + 64);
    int fd;
    bool is_written;

    if (buf_printf(&entry, err, "%" PRIu32 " %" PRIu64 " %s", rank, size, path))
        return -1;
    fd = open(gather->index, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_set_errno(err, errno, "'%.300s'", gather->index);
    is_written = file_append(fd, entry.data, entry.len + 1); /* its NUL too */
    if (!is_written)
        error_set_errno(err, errno, "'%.300s'", gather->index);
    close(fd);
    return is_written ? 0 : -1;
}

/* ---- its life ---- */

struct gather *gather_new(const char *outputs, const char *logs, uint32_t n_tasks) {
    struct gather *gather = calloc(1, sizeof *gather);

    if (!gather)
        abort();
    gather->outputs = strdup(outputs);
    gather->n_tasks = n_tasks;
    gather->parts = calloc(n_tasks, sizeof *gather->parts);
    if (!gather->outputs || !gather->parts || asprintf(&gather->index, "%s/.outputs", logs) < 0)
        abort();
    read_index(gather);
    return gather;
}

static void keep_node(void *node) {
    (void)node; /* it is the arena's */
}

void gather_free(struct gather *gather) {
    if (!gather)
        return;
    for (uint32_t rank = 0; rank < gather->n_tasks; rank++) {
        free(gather->parts[rank].path);
        VEC_RELEASE(&gather->parts[rank].given);
    }
    tdestroy(gather->files, keep_node);
    tdestroy(gather->given, keep_node);
    free(gather->parts);
    free(gather->outputs);
    free(gather->index);
    arena_release(&gather->arena);
    free(gather);
}

/* ---- parts ---- */

static int open_part(const struct gather *gather, uint32_t rank, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/" GATHER_PART "%" PRIu32, gather->outputs, rank) >=
        (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
}

static void remove_part(const struct gather *gather, uint32_t rank) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/" GATHER_PART "%" PRIu32, gather->outputs, rank) <
        (int)sizeof path)
        unlink(path);
}

static int fail(const struct gather *gather, int fd, struct error *err) {
    error_set_errno(err, errno, "'%.300s'", gather->outputs);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int begin_part(struct gather *gather, uint32_t rank, const char *path, struct error *err) {
    struct part *part = &gather->parts[rank];
    const int fd = open_part(gather, rank, O_WRONLY | O_CREAT | O_TRUNC);

    if (fd < 0)
        return fail(gather, fd, err);
    close(fd);
    free(part->path);
    part->path = strdup(path);
    if (!part->path)
        abort();
    part->size = 0;
    return 0;
}

static int append_part(struct gather *gather, uint32_t rank, const char *bytes, size_t n,
                       struct error *err) {
    struct part *part = &gather->parts[rank];
    const int fd = open_part(gather, rank, O_WRONLY);
    const uint64_t before = part->size;

    if (fd < 0)
        return fail(gather, fd, err);
    while (n > 0) {
        const ssize_t written = pwrite(fd, bytes, n, (off_t)part->size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            errno = written < 0 ? errno : ENOSPC;
            return fail(gather, fd, err);
        }
        bytes += written;
        n -= (size_t)written;
        part->size += (uint64_t)written;
    }
    if (before / FLUSH_EVERY != part->size / FLUSH_EVERY)
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    close(fd);
    return 0;
}

/* Who cannot have a place is received all the same, and left out: the rest follows it. */
static void refuse(struct gather *gather, const char *path) {
    gather->counts.refused++;
    if (!gather->counts.refused_path)
        gather->counts.refused_path = arena_text(&gather->arena, path, strlen(path));
}

/* ---- what comes ---- */

/* The path as a text; false: it is none that a shim sends. */
static bool take_path(const char *path, size_t n, char out[static PATH_MOST + 1]) {
    if (n == 0 || n > PATH_MOST || memchr(path, '\0', n))
        return false;
    memcpy(out, path, n);
    out[n] = '\0';
    return true;
}

int gather_write(struct gather *gather, uint32_t rank, const char *path, size_t n_path,
                 uint64_t offset, const char *bytes, size_t n, struct error *err) {
    struct part *part = &gather->parts[rank];
    char text[PATH_MOST + 1];
    bool is_same;
    uint64_t known;

    if (!take_path(path, n_path, text))
        return error_set(err, ERROR_INVALID, "it names no file of the outputs");
    if (is_given(gather, rank, text) || !is_path(text, n_path))
        return 0;
    is_same = part->path && strcmp(part->path, text) == 0;
    if (offset > (is_same ? part->size : 0) || offset + n < offset)
        return error_set(err, ERROR_INVALID, "it sends '%.100s' from %" PRIu64 " on", text, offset);
    if (!is_same && begin_part(gather, rank, text, err))
        return -1;
    known = part->size - offset;
    if (known >= n)
        return 0;
    return append_part(gather, rank, bytes + known, n - (size_t)known, err);
}

/* Moves the part to its place. Returns 0, or -1 and errno. */
static int place(const struct gather *gather, uint32_t rank, const char *path) {
    char part[PATH_MAX];
    const char *name;
    int fd, status;

    if (snprintf(part, sizeof part, "%s/" GATHER_PART "%" PRIu32, gather->outputs, rank) >=
        (int)sizeof part)
        return -1;
    fd = open_parent(gather, path, &name);
    if (fd < 0)
        return -1;
    status = renameat(AT_FDCWD, part, fd, name);
    if (status == 0)
        (void)fsync(fd);
    close(fd);
    return status;
}

static int sync_part(const struct gather *gather, uint32_t rank, struct error *err) {
    const int fd = open_part(gather, rank, O_RDONLY);

    if (fd < 0 || fsync(fd))
        return fail(gather, fd, err);
    close(fd);
    return 0;
}

/* Something that is not a file stands in its way, or its name is too long for this machine. */
static bool is_in_the_way(int errnum) {
    static const int rows[] = { ENOTDIR, ELOOP, EISDIR, ENOTEMPTY, EEXIST, ENAMETOOLONG, EINVAL };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i] == errnum)
            return true;
    return false;
}

/* Nothing more is to come of it, and it is not asked for again. */
static int settle(struct gather *gather, uint32_t rank, struct error *err) {
    struct part *part = &gather->parts[rank];
    const struct gathered *known = find(gather, part->path);
    bool is_refused = false;

    if (known && known->rank < rank) {
        remove_part(gather, rank);
    } else if (sync_part(gather, rank, err)) {
        return -1;
    } else if (place(gather, rank, part->path)) {
        if (!is_in_the_way(errno))
            return fail(gather, -1, err);
        remove_part(gather, rank);
        refuse(gather, part->path);
        is_refused = true;
    }
    if (write_index(gather, rank, part->size, part->path, err))
        return -1;
    if (is_refused)
        add_given(gather, rank, arena_text(&gather->arena, part->path, strlen(part->path)),
                  part->size);
    else
        note_given(gather, rank, part->path, part->size);
    return 0;
}

int gather_whole(struct gather *gather, uint32_t rank, const char *path, size_t n_path,
                 uint64_t size, struct error *err) {
    struct part *part = &gather->parts[rank];
    char text[PATH_MOST + 1];
    int status;

    if (!take_path(path, n_path, text))
        return error_set(err, ERROR_INVALID, "it names no file of the outputs");
    if (is_given(gather, rank, text))
        return 0;
    if (!is_path(text, n_path)) {
        refuse(gather, text);
        return 0;
    }
    if (size == 0 && !(part->path && strcmp(part->path, text) == 0) &&
        begin_part(gather, rank, text, err))
        return -1;
    if (!part->path || strcmp(part->path, text) != 0 || part->size != size)
        return error_set(err, ERROR_INVALID, "it says that '%.100s' is whole, which it is not",
                         text);
    /* One that fails comes again from its beginning: half of the way it may have been moved. */
    status = settle(gather, rank, err);
    free(part->path);
    part->path = NULL;
    return status;
}

void gather_end(struct gather *gather, uint32_t rank) {
    free(gather->parts[rank].path);
    gather->parts[rank].path = NULL;
    remove_part(gather, rank);
}

/* ---- what is told ---- */

/* A line cannot hold a name with a newline: such a file comes again. */
static void list_file(const char *path, uint64_t size, struct buf *out) {
    struct error err;

    if (size > 0 && !strchr(path, '\n'))
        (void)!buf_printf(out, &err, GATHER_PREFIX "%s %" PRIu64 "\n", path, size);
}

void gather_list(const struct gather *gather, uint32_t rank, struct buf *out) {
    const struct part *part = &gather->parts[rank];

    if (part->path)
        list_file(part->path, part->size, out);
    for (size_t i = part->given.len; i-- > 0;)
        list_file(part->given.items[i]->path, part->given.items[i]->size, out);
}

struct gather_counts gather_counts(const struct gather *gather) {
    return gather->counts;
}
