/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/mirror.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/vec.h"

#define MYELIN_SPOOL_FORMAT
#include "myelin.h"

enum {
    NAME_MOST = 80,          /* of a segment, with its NUL */
    SEGMENTS_MOST = 1 << 16, /* that are not confirmed at one time: 1024 of each process */
    LEDGER_MOST = 16 << 20,
    STATE_AT = offsetof(struct myelin_spool_header, state),
};

struct segment {
    char name[NAME_MOST];
    uint64_t size, listed, confirmed;
    bool is_complete, is_dirty;
};

struct mirror {
    char *spool, *directory, *ledger;
    VEC(struct segment) segments;
    size_t last; /* found */
};

/* ---- names ---- */

/* <pid>-<start>-<number>.spool: digits and dashes, and nothing that leads elsewhere. */
static bool is_segment_name(const char *name, size_t n) {
    const size_t n_suffix = strlen(MYELIN_SPOOL_SUFFIX);
    size_t dashes = 0;

    if (n <= n_suffix || n >= NAME_MOST ||
        memcmp(name + n - n_suffix, MYELIN_SPOOL_SUFFIX, n_suffix) != 0 || name[0] == '-')
        return false;
    for (size_t i = 0; i < n - n_suffix; i++) {
        if (!memchr("0123456789abcdef-", name[i], 17))
            return false;
        dashes += name[i] == '-';
    }
    return dashes == 2;
}

static struct segment *find(struct mirror *mirror, const char *name, size_t n) {
    const size_t len = mirror->segments.len;

    for (size_t i = 0; i < len; i++) {
        const size_t at = (mirror->last + i) % len;
        struct segment *segment = &mirror->segments.items[at];

        if (strlen(segment->name) == n && memcmp(segment->name, name, n) == 0) {
            mirror->last = at;
            return segment;
        }
    }
    return NULL;
}

static struct segment *add(struct mirror *mirror, const char *name, size_t n) {
    struct segment *segment = VEC_PUSH(&mirror->segments);

    memcpy(segment->name, name, n);
    return segment;
}

/* ---- what is there ---- */

static int open_segment(const struct mirror *mirror, const char *name, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", mirror->directory, name) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
}

static void find_files(struct mirror *mirror) {
    DIR *directory = opendir(mirror->directory);
    const struct dirent *entry;
    struct stat st;

    while (directory && (entry = readdir(directory))) {
        const size_t n = strlen(entry->d_name);

        if (!is_segment_name(entry->d_name, n) || mirror->segments.len == SEGMENTS_MOST ||
            fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(st.st_mode))
            continue;
        struct segment *segment = add(mirror, entry->d_name, n);

        segment->size = (uint64_t)st.st_size;
        segment->is_dirty = true; /* nobody knows whether it reached the disk */
    }
    if (directory)
        closedir(directory);
}

static bool write_at(int fd, const void *bytes, size_t n, uint64_t offset) {
    const char *at = bytes;

    while (n > 0) {
        const ssize_t written = pwrite(fd, at, n, (off_t)offset);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        offset += (uint64_t)written;
        n -= (size_t)written;
    }
    return true;
}

/* Who noted it as complete may have died before the file said so. */
static void restate(const struct mirror *mirror, const char *name, uint32_t state) {
    const unsigned char word[4] = { (unsigned char)state };
    const int fd = open_segment(mirror, name, O_WRONLY);

    if (fd < 0)
        return; /* folded and removed */
    (void)write_at(fd, word, sizeof word, STATE_AT);
    close(fd);
}

static void read_ledger_line(struct mirror *mirror, const char *line) {
    char name[NAME_MOST];
    uint64_t size;
    uint32_t state;
    struct segment *segment;

    _Static_assert(NAME_MOST == 80, "the width below");
    if (sscanf(line, "%79s %" SCNu64 " %" SCNu32, name, &size, &state) != 3 ||
        !is_segment_name(name, strlen(name)) || state > MYELIN_SPOOL_CLOSED)
        return;
    segment = find(mirror, name, strlen(name));
    if (!segment && mirror->segments.len < SEGMENTS_MOST)
        segment = add(mirror, name, strlen(name));
    if (!segment)
        return;
    segment->size = size;
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

struct mirror *mirror_new(const char *spool, const char *logs, const char *task) {
    struct mirror *mirror = calloc(1, sizeof *mirror);

    if (!mirror)
        abort();
    mirror->spool = strdup(spool);
    if (!mirror->spool || asprintf(&mirror->directory, "%s/%s", spool, task) < 0 ||
        asprintf(&mirror->ledger, "%s/.spool.%s", logs, task) < 0)
        abort();
    find_files(mirror);
    read_ledger(mirror);
    return mirror;
}

void mirror_free(struct mirror *mirror) {
    if (!mirror)
        return;
    VEC_RELEASE(&mirror->segments);
    free(mirror->spool);
    free(mirror->directory);
    free(mirror->ledger);
    free(mirror);
}

/* ---- writing ---- */

static uint32_t state_in(const char *header) {
    uint32_t state = 0;

    for (int i = 3; i >= 0; i--)
        state = state << 8 | (unsigned char)header[STATE_AT + i];
    return state;
}

static int note_complete(struct mirror *mirror, struct segment *segment, uint32_t state,
                         struct error *err) {
    const int fd =
        open(mirror->ledger, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    char line[NAME_MOST + 40];
    const int n = snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu32 "\n", segment->name,
                           segment->size, state);
    ssize_t written;

    if (fd < 0)
        return error_set_errno(err, errno, "'%.300s'", mirror->ledger);
    errno = ENOSPC;
    written = write(fd, line, (size_t)n);
    if (written != n)
        error_set_errno(err, errno, "'%.300s'", mirror->ledger);
    close(fd);
    if (written != n)
        return -1;
    segment->is_complete = true;
    return 0;
}

static int write_file(struct mirror *mirror, struct segment *segment, const char *bytes, size_t n,
                      uint64_t offset, struct error *err) {
    int fd = open_segment(mirror, segment->name, O_WRONLY | (segment->size == 0 ? O_CREAT : 0));

    if (fd < 0 && errno == ENOENT && segment->size == 0) {
        mkdir(mirror->spool, 0777);
        mkdir(mirror->directory, 0777);
        fd = open_segment(mirror, segment->name, O_WRONLY | O_CREAT);
    }
    if (fd < 0 && errno == ENOENT)
        return 0; /* the fold has done with it: what comes has no use */
    if (fd < 0)
        return error_set_errno(err, errno, "'%.300s'", mirror->directory);
    errno = ENOSPC;
    if (!write_at(fd, bytes, n, offset)) {
        error_set_errno(err, errno, "'%.300s'", mirror->directory);
        close(fd);
        return -1;
    }
    close(fd);
    segment->is_dirty = true;
    return 0;
}

/* The header comes again behind the records that it covers: only then does it count as it is. */
static int write_header(struct mirror *mirror, struct segment *segment, const char *bytes,
                        struct error *err) {
    char header[MYELIN_SPOOL_HEADER];
    const uint32_t state = state_in(bytes);

    memcpy(header, bytes, sizeof header);
    if (segment->size == 0 && state >= MYELIN_SPOOL_SEALED)
        memcpy(header + STATE_AT, (const char[4]){ MYELIN_SPOOL_OPEN }, 4);
    else if (state == MYELIN_SPOOL_SEALED || state == MYELIN_SPOOL_CLOSED) {
        if (note_complete(mirror, segment, state, err))
            return -1;
    }
    if (write_file(mirror, segment, header, sizeof header, 0, err))
        return -1;
    if (segment->size < sizeof header)
        segment->size = sizeof header;
    return 0;
}

static int check(const struct mirror *mirror, const struct segment *segment, const char *name,
                 size_t n_name, uint64_t offset, size_t n, struct error *err) {
    const uint64_t size = segment ? segment->size : 0;

    if (!is_segment_name(name, n_name))
        return error_set(err, ERROR_INVALID, "it names a segment '%.*s'", (int)(n_name % NAME_MOST),
                         name);
    if (!segment && mirror->segments.len >= SEGMENTS_MOST)
        return error_set(err, ERROR_INVALID, "it has more than %d segments", SEGMENTS_MOST);
    if (offset > size || n > MYELIN_SPOOL_SIZE_MAX || offset + n > MYELIN_SPOOL_SIZE_MAX ||
        (size == 0 && n < MYELIN_SPOOL_HEADER))
        return error_set(err, ERROR_INVALID,
                         "it sends %zu bytes at %" PRIu64 " of a segment that has %" PRIu64, n,
                         offset, size);
    return 0;
}

int mirror_write(struct mirror *mirror, const char *name, size_t n_name, uint64_t offset,
                 const char *bytes, size_t n, struct error *err) {
    struct segment *segment = find(mirror, name, n_name);
    struct segment fresh = { 0 };

    if (check(mirror, segment, name, n_name, offset, n, err))
        return -1;
    if (segment && segment->is_complete)
        return 0;
    if (!segment) {
        memcpy(fresh.name, name, n_name);
        segment = &fresh;
    }
    if (offset == 0 && n >= MYELIN_SPOOL_HEADER && write_header(mirror, segment, bytes, err))
        return -1;
    if (offset + n > segment->size) {
        const size_t known = (size_t)(segment->size - offset);

        if (write_file(mirror, segment, bytes + known, n - known, segment->size, err))
            return -1;
        segment->size = offset + n;
    }
    if (segment == &fresh)
        *add(mirror, name, n_name) = fresh;
    return 0;
}

/* ---- what the shim is told ---- */

void mirror_list(struct mirror *mirror, enum mirror_extent extent, struct buf *out) {
    struct error err;

    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct segment *segment = &mirror->segments.items[i];

        segment->listed = segment->confirmed;
        if ((extent == MIRROR_NEWS && segment->size == segment->confirmed) || segment->size == 0)
            continue;
        if (buf_printf(out, &err, MIRROR_PREFIX "%s %" PRIu64 "\n", segment->name,
                       segment->size) == 0)
            segment->listed = segment->size;
    }
}

/* A segment that is complete and confirmed is not in the pod any more: it is forgotten. */
void mirror_confirmed(struct mirror *mirror) {
    size_t kept = 0;

    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct segment segment = mirror->segments.items[i];

        segment.confirmed = segment.listed;
        if (!segment.is_complete || segment.confirmed < segment.size)
            mirror->segments.items[kept++] = segment;
    }
    mirror->segments.len = kept;
    mirror->last = 0;
    if (kept == 0)
        unlink(mirror->ledger);
}

uint64_t mirror_unconfirmed(const struct mirror *mirror) {
    uint64_t n = 0;

    for (size_t i = 0; i < mirror->segments.len; i++)
        n += mirror->segments.items[i].size - mirror->segments.items[i].confirmed;
    return n;
}

int mirror_sync(struct mirror *mirror, struct error *err) {
    for (size_t i = 0; i < mirror->segments.len; i++) {
        struct segment *segment = &mirror->segments.items[i];
        int fd, status;

        if (!segment->is_dirty)
            continue;
        fd = open_segment(mirror, segment->name, O_RDONLY);
        status = fd < 0 ? 0 : fdatasync(fd);
        if (status)
            error_set_errno(err, errno, "'%.300s'", mirror->directory);
        if (fd >= 0)
            close(fd);
        if (status)
            return -1;
        segment->is_dirty = false;
    }
    return 0;
}
