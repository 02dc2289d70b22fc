/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/mirror.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/vec.h"
#include "shim/segment.h"

enum {
    NAME_ROOM = SEGMENT_NAME_MAX + 1,
    SEGMENTS_MOST = 1 << 16, /* that are not confirmed at one time: 1024 of each process */
    LEDGER_MOST = 16 << 20,
    STATE_AT = offsetof(struct myelin_spool_header, state),
    WORD = 8, /* that begins a record */
};

/* A segment, as far as it is here. */
struct mirrored {
    char name[NAME_ROOM];
    struct segment walk; /* where its records end; of size 0: it has no header that counts */
    struct buf pending;  /* what follows the last whole record */
    char last_header[MYELIN_SPOOL_HEADER]; /* which says that it is done */
    bool has_last_header;
    bool is_refused; /* too large to be one: what comes of it is left out */
    bool is_complete, is_dirty;
    uint64_t whole; /* its size in the pod, once it is complete */
    uint64_t listed, confirmed;
};

struct mirror {
    char *spool, *directory, *ledger;
    VEC(struct mirrored) segments;
    size_t last; /* found */
};

/* How much of it is here, as the shim counts. */
static uint64_t kept_of(const struct mirrored *segment) {
    return segment->is_complete ? segment->whole : segment->walk.good;
}

/* ---- the list ---- */

static bool take_name(const char *bytes, size_t n, char out[static NAME_ROOM]) {
    if (n >= NAME_ROOM || memchr(bytes, '\0', n))
        return false;
    memcpy(out, bytes, n);
    out[n] = '\0';
    return segment_is_name(out);
}

static struct mirrored *find(struct mirror *mirror, const char *name) {
    const size_t len = mirror->segments.len;

    for (size_t i = 0; i < len; i++) {
        const size_t at = (mirror->last + i) % len;

        if (strcmp(mirror->segments.items[at].name, name) == 0) {
            mirror->last = at;
            return &mirror->segments.items[at];
        }
    }
    return NULL;
}

static struct mirrored *find_or_add(struct mirror *mirror, const char *name) {
    struct mirrored *segment = find(mirror, name);

    if (segment || mirror->segments.len >= SEGMENTS_MOST)
        return segment;
    segment = VEC_PUSH(&mirror->segments);
    memcpy(segment->name, name, strlen(name) + 1);
    segment->pending = (struct buf)BUF_INIT(MYELIN_SPOOL_SIZE_MAX);
    return segment;
}

/* ---- files ---- */

static int open_segment(const struct mirror *mirror, const char *name, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", mirror->directory, name) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
}

static int make_segment(const struct mirror *mirror, const char *name) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    int fd = open_segment(mirror, name, flags);

    if (fd < 0 && errno == ENOENT) {
        mkdir(mirror->spool, 0777);
        mkdir(mirror->directory, 0777);
        fd = open_segment(mirror, name, flags);
    }
    return fd;
}

static bool write_at(int fd, const void *bytes, size_t n, uint64_t offset) {
    const char *at = bytes;

    while (n > 0) {
        const ssize_t written = pwrite(fd, at, n, (off_t)offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            errno = written < 0 ? errno : ENOSPC;
            return false;
        }
        at += written;
        offset += (uint64_t)written;
        n -= (size_t)written;
    }
    return true;
}

/* The fold takes nothing that follows a word of 0: so the first word comes last. */
static bool write_records(int fd, const char *bytes, size_t n, uint64_t offset) {
    return write_at(fd, bytes + WORD, n - WORD, offset + WORD) && write_at(fd, bytes, WORD, offset);
}

static int close_with(const struct mirror *mirror, int fd, bool is_good, struct error *err) {
    if (!is_good)
        error_set_errno(err, errno, "'%.300s'", mirror->directory);
    if (fd >= 0)
        close(fd);
    return is_good ? 0 : -1;
}

/* ---- what is there ---- */

/* Who noted it as complete may have died before its header said so. */
static void restate(const struct mirror *mirror, const char *name, uint32_t state) {
    const unsigned char word[4] = { (unsigned char)state };
    const int fd = open_segment(mirror, name, O_WRONLY);

    if (fd < 0)
        return; /* folded and removed */
    (void)write_at(fd, word, sizeof word, STATE_AT);
    close(fd);
}

static void read_ledger_line(struct mirror *mirror, const char *line) {
    char name[NAME_ROOM];
    uint64_t size;
    uint32_t state;
    struct mirrored *segment;

    _Static_assert(SEGMENT_NAME_MAX == 63, "the width below");
    if (sscanf(line, "%63s %" SCNu64 " %" SCNu32, name, &size, &state) != 3 ||
        !segment_is_name(name) || state > MYELIN_SPOOL_CLOSED)
        return;
    segment = find_or_add(mirror, name);
    if (!segment)
        return;
    segment->whole = size;
    segment->is_complete = true;
    restate(mirror, name, state);
}

static void read_ledger(struct mirror *mirror) {
    AUTO(buf) text = BUF_INIT(LEDGER_MOST);
    struct error err;
    char *rest = NULL;

    if (file_read(mirror->ledger, &text, &err) || text.len == 0)
        return;
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        read_ledger_line(mirror, line);
}

/* How far its records go; false: nothing of it can be used. */
static bool walk_file(const struct mirror *mirror, const char *name, struct segment *out) {
    AUTO(buf) bytes = BUF_INIT(MYELIN_SPOOL_SIZE_MAX);
    struct myelin_spool_header header;
    char path[PATH_MAX];
    struct stat st;
    struct error err;

    if (snprintf(path, sizeof path, "%s/%s", mirror->directory, name) >= (int)sizeof path ||
        lstat(path, &st) || !S_ISREG(st.st_mode) || file_read(path, &bytes, &err) ||
        bytes.len < sizeof header)
        return false;
    memcpy(&header, bytes.data, sizeof header);
    if (!segment_begin(out, &header, bytes.len))
        return false;
    (void)segment_walk(out, bytes.data + sizeof header, bytes.len - sizeof header);
    return true;
}

static void find_files(struct mirror *mirror) {
    DIR *directory = opendir(mirror->directory);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        struct mirrored *segment;

        if (!segment_is_name(entry->d_name) || !(segment = find_or_add(mirror, entry->d_name)) ||
            segment->is_complete)
            continue;
        segment->is_dirty = walk_file(mirror, entry->d_name, &segment->walk);
        if (!segment->is_dirty)
            segment->walk = (struct segment){ 0 }; /* it comes again, whole */
    }
    if (directory)
        closedir(directory);
}

struct mirror *mirror_new(const char *spool, const char *logs, const char *task) {
    struct mirror *mirror = calloc(1, sizeof *mirror);

    if (!mirror)
        abort();
    mirror->spool = strdup(spool);
    if (!mirror->spool || asprintf(&mirror->directory, "%s/%s", spool, task) < 0 ||
        asprintf(&mirror->ledger, "%s/.spool.%s", logs, task) < 0)
        abort();
    read_ledger(mirror);
    find_files(mirror);
    return mirror;
}

void mirror_free(struct mirror *mirror) {
    if (!mirror)
        return;
    for (size_t i = 0; i < mirror->segments.len; i++)
        buf_release(&mirror->segments.items[i].pending);
    VEC_RELEASE(&mirror->segments);
    free(mirror->spool);
    free(mirror->directory);
    free(mirror->ledger);
    free(mirror);
}

void mirror_begin(struct mirror *mirror) {
    for (size_t i = 0; i < mirror->segments.len; i++) {
        buf_release(&mirror->segments.items[i].pending);
        mirror->segments.items[i].has_last_header = false;
        mirror->segments.items[i].is_refused = false;
    }
}

/* ---- writing ---- */

static uint32_t state_in(const char *header) {
    uint32_t state = 0;

    for (int i = 3; i >= 0; i--)
        state = state << 8 | (unsigned char)header[STATE_AT + i];
    return state;
}

static bool is_done(const char *header) {
    const uint32_t state = state_in(header);

    return state == MYELIN_SPOOL_SEALED || state == MYELIN_SPOOL_CLOSED;
}

/* The file gets its whole size with its header: to the fold one that ends early is damaged. */
static int begin_segment(struct mirror *mirror, struct mirrored *segment, const char *bytes,
                         const struct segment *walk, struct error *err) {
    char header[MYELIN_SPOOL_HEADER];
    int fd;

    memcpy(header, bytes, sizeof header);
    if (is_done(header)) /* a shim says so behind the records: nobody believes it before */
        memcpy(header + STATE_AT, (const char[4]){ MYELIN_SPOOL_OPEN }, 4);
    fd = make_segment(mirror, segment->name);
    if (close_with(mirror, fd,
                   fd >= 0 && ftruncate(fd, (off_t)walk->size) == 0 &&
                       write_at(fd, header, sizeof header, 0),
                   err))
        return -1;
    segment->walk = *walk;
    segment->is_dirty = true;
    return 0;
}

static int write_header(struct mirror *mirror, struct mirrored *segment, const char *bytes,
                        struct error *err) {
    int fd;

    if (is_done(bytes)) {
        memcpy(segment->last_header, bytes, MYELIN_SPOOL_HEADER);
        segment->has_last_header = true;
        return 0;
    }
    fd = open_segment(mirror, segment->name, O_WRONLY);
    if (fd < 0 && errno == ENOENT)
        return 0; /* the fold is done with it */
    segment->is_dirty = true;
    return close_with(mirror, fd, fd >= 0 && write_at(fd, bytes, MYELIN_SPOOL_HEADER, 0), err);
}

/* Appends what is new to the records that are not whole yet, and writes those that are now. */
static int add_records(struct mirror *mirror, struct mirrored *segment, struct error *err) {
    struct segment walk = segment->walk;
    size_t n;
    int fd;

    (void)segment_walk(&walk, segment->pending.data, segment->pending.len);
    n = (size_t)(walk.good - segment->walk.good);
    if (n == 0)
        return 0;
    fd = open_segment(mirror, segment->name, O_WRONLY);
    if (!(fd < 0 && errno == ENOENT) && /* the fold is done with it */
        close_with(mirror, fd,
                   fd >= 0 && write_records(fd, segment->pending.data, n, segment->walk.good), err))
        return -1;
    walk.at = walk.good;
    walk.is_within = false;
    segment->walk = walk;
    segment->is_dirty = true;
    memmove(segment->pending.data, segment->pending.data + n, segment->pending.len - n);
    segment->pending.len -= n;
    segment->pending.data[segment->pending.len] = '\0';
    return 0;
}

static int add_bytes(struct mirror *mirror, struct mirrored *segment, uint64_t offset,
                     const char *bytes, size_t n, struct error *err) {
    const uint64_t has = segment->walk.good + segment->pending.len;
    const uint64_t known = has - offset;

    if (offset > has)
        return error_set(err, ERROR_INVALID,
                         "it sends a segment from %" PRIu64 " on, which has %" PRIu64 " bytes here",
                         offset, has);
    if (known >= n)
        return 0;
    if (buf_append(&segment->pending, bytes + known, n - (size_t)known, err)) {
        buf_release(&segment->pending);
        segment->is_refused = true;
        return 0;
    }
    return segment->walk.size > 0 ? add_records(mirror, segment, err) : 0;
}

int mirror_write(struct mirror *mirror, const char *name, size_t n_name, uint64_t offset,
                 const char *bytes, size_t n, struct error *err) {
    const bool is_header = offset == 0 && n == MYELIN_SPOOL_HEADER;
    struct myelin_spool_header header;
    struct mirrored *segment;
    struct segment walk;
    char text[NAME_ROOM];

    if (!take_name(name, n_name, text) || !(segment = find_or_add(mirror, text)))
        return error_set(err, ERROR_INVALID, "it names what is no segment");
    if (segment->is_complete || segment->is_refused)
        return 0;
    if (is_header && segment->walk.size > 0)
        return write_header(mirror, segment, bytes, err);
    if (is_header && segment->pending.len == 0) {
        memcpy(&header, bytes, sizeof header);
        if (segment_begin(&walk, &header, header.size))
            return begin_segment(mirror, segment, bytes, &walk, err);
    }
    return add_bytes(mirror, segment, offset, bytes, n, err);
}

/* What was written to the ledger outlasts a power cut; also that there is one. */
static bool sync_ledger(const struct mirror *mirror, int fd, bool is_new) {
    char directory[PATH_MAX];
    int parent, failed;

    if (fdatasync(fd))
        return false;
    if (!is_new)
        return true;
    snprintf(directory, sizeof directory, "%.*s",
             (int)(strrchr(mirror->ledger, '/') - mirror->ledger), mirror->ledger);
    parent = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return false;
    failed = fsync(parent);
    close(parent);
    return failed == 0;
}

/* On the disk, before the header makes the fold remove the segment for good: the shim has it
 * still, and would be asked for it again. */
static int note_complete(struct mirror *mirror, struct mirrored *segment, uint64_t size,
                         struct error *err) {
    const int fd =
        open(mirror->ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    const uint32_t state =
        segment->has_last_header ? state_in(segment->last_header) : MYELIN_SPOOL_OPEN;
    char line[NAME_ROOM + 40];
    const int n =
        snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu32 "\n", segment->name, size, state);
    struct stat st;

    if (close_with(mirror, fd,
                   fd >= 0 && fstat(fd, &st) == 0 && file_append(fd, line, (size_t)n) &&
                       sync_ledger(mirror, fd, st.st_size == 0),
                   err))
        return -1;
    segment->whole = size;
    segment->is_complete = true;
    return 0;
}

/* What is no record stays as it came: the fold is the judge of it. */
static int write_rest(struct mirror *mirror, struct mirrored *segment, struct error *err) {
    const uint64_t from = segment->walk.good;
    size_t n = segment->pending.len;
    int fd;

    if (n == 0 || segment->is_refused)
        return 0;
    if (segment->walk.size > 0 && n > segment->walk.size - from)
        n = (size_t)(segment->walk.size - from);
    fd = segment->walk.size > 0 ? open_segment(mirror, segment->name, O_WRONLY)
                                : make_segment(mirror, segment->name);
    segment->is_dirty = true;
    if (fd < 0 && errno == ENOENT)
        return 0;
    return close_with(mirror, fd, fd >= 0 && write_at(fd, segment->pending.data, n, from), err);
}

int mirror_whole(struct mirror *mirror, const char *name, size_t n_name, uint64_t size,
                 struct error *err) {
    struct mirrored *segment;
    char text[NAME_ROOM];
    int fd;

    if (!take_name(name, n_name, text) || !(segment = find_or_add(mirror, text)))
        return error_set(err, ERROR_INVALID, "it names what is no segment");
    if (segment->is_complete)
        return 0;
    if (write_rest(mirror, segment, err) || note_complete(mirror, segment, size, err))
        return -1;
    buf_release(&segment->pending);
    fd = segment->has_last_header ? open_segment(mirror, segment->name, O_WRONLY) : -1;
    if (fd < 0)
        return 0;
    return close_with(mirror, fd, write_at(fd, segment->last_header, MYELIN_SPOOL_HEADER, 0), err);
}

/* ---- what the shim is told ---- */

void mirror_list(struct mirror *mirror, enum mirror_extent extent, struct buf *out) {
    struct error err;

    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct mirrored *segment = &mirror->segments.items[i];
        const uint64_t kept = kept_of(segment);

        segment->listed = segment->confirmed;
        if ((extent == MIRROR_NEWS && kept == segment->confirmed) || kept == 0)
            continue;
        if (buf_printf(out, &err, MIRROR_PREFIX "%s %" PRIu64 "\n", segment->name, kept) == 0)
            segment->listed = kept;
    }
}

/* A segment that is complete and confirmed is not in the pod any more: it is forgotten. */
void mirror_confirmed(struct mirror *mirror) {
    size_t kept = 0;

    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct mirrored *segment = &mirror->segments.items[i];

        segment->confirmed = segment->listed;
        if (segment->is_complete && segment->confirmed >= segment->whole)
            buf_release(&segment->pending);
        else
            mirror->segments.items[kept++] = *segment;
    }
    mirror->segments.len = kept;
    mirror->last = 0;
    if (kept == 0)
        unlink(mirror->ledger);
}

bool mirror_has_news(const struct mirror *mirror) {
    for (size_t i = 0; i < mirror->segments.len; i++)
        if (kept_of(&mirror->segments.items[i]) != mirror->segments.items[i].confirmed)
            return true;
    return false;
}

int mirror_sync(struct mirror *mirror, struct error *err) {
    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct mirrored *segment = &mirror->segments.items[i];
        const int fd = segment->is_dirty ? open_segment(mirror, segment->name, O_RDONLY) : -1;

        /* One that is not there was folded, which is as good as the disk. */
        if (fd >= 0 && close_with(mirror, fd, fdatasync(fd) == 0, err))
            return -1;
        segment->is_dirty = false;
    }
    return 0;
}
