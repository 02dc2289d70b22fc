/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILES_MAX = 1 << 16,
    RAW_MAX = 64 << 20, /* of a file that is no segment in spite of its name */
    WINDOW = 64 << 10,
    TRIES = 20, /* of a file that cannot be read, a pass each */
};

struct spool_file {
    char name[SPOOL_NAME_MAX]; /* "spool/<segment>" */
    struct segment walk;
    struct myelin_spool_header header; /* as it was before the last walk */
    uint64_t size;                     /* of the file, once `until` counts */
    uint64_t sent, until;
    uint64_t told_dropped; /* by the last header that was sent */
    uint32_t told_state;
    unsigned pass; /* in which it was last looked at */
    bool is_begun; /* it is a segment, and in use */
    bool owes_opening, owes_whole;
    bool is_late;   /* it could not be read in this pass */
    unsigned tries; /* in which that was so, on end */
    bool is_whole;  /* nothing more to send */
    bool is_gone;
};

#define PREFIX "spool/"

/* What WHOLE says of a file, and what acknowledges it: one more than its size. Its records may end
 * at its size, and who has them does not have its last header yet. */
static uint64_t whole_of(const struct spool_file *file) {
    return file->size + 1;
}

static const char *own_name(const struct spool_file *file) {
    return file->name + strlen(PREFIX);
}

void spool_init(struct spool *spool, const char *path, const struct acks *acks) {
    *spool = (struct spool){ .path = path, .acks = acks };
}

void spool_restart(struct spool *spool) {
    spool->n = spool->turn = 0;
}

bool spool_is_looking(const struct spool *spool) {
    return spool->turn < spool->n;
}

/* ---- finding */

/* Where a name is in the list, or belongs. */
static size_t place_of(const struct spool *spool, const char *name) {
    size_t low = 0, high = spool->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (strcmp(own_name(&spool->files[middle]), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add(struct spool *spool, const char *name) {
    const size_t place = place_of(spool, name);

    if (place < spool->n && !strcmp(own_name(&spool->files[place]), name))
        return;
    if (spool->n == spool->room) {
        const size_t room = spool->room ? spool->room * 2 : 16;
        struct spool_file *wider =
            room > FILES_MAX ? NULL : realloc(spool->files, room * sizeof *wider);

        if (!wider)
            return; /* its turn comes when others are gone */
        spool->files = wider;
        spool->room = room;
    }
    memmove(&spool->files[place + 1], &spool->files[place],
            (spool->n - place) * sizeof *spool->files);
    spool->files[place] = (struct spool_file){ .pass = spool->pass - 1 };
    snprintf(spool->files[place].name, sizeof spool->files[place].name, PREFIX "%.*s",
             SEGMENT_NAME_MAX, name);
    spool->n++;
}

static void forget_gone(struct spool *spool) {
    size_t kept = 0;

    for (size_t i = 0; i < spool->n; i++)
        if (!spool->files[i].is_gone)
            spool->files[kept++] = spool->files[i];
    spool->n = kept;
}

void spool_look(struct spool *spool) {
    DIR *directory = opendir(spool->path);
    const struct dirent *entry;

    spool->turn = 0;
    spool->pass++;
    spool->unlisted = directory || errno == ENOENT ? 0 : spool->unlisted + 1;
    forget_gone(spool);
    while (directory && (entry = readdir(directory)))
        if (segment_is_name(entry->d_name))
            add(spool, entry->d_name);
    if (directory)
        closedir(directory);
}

bool spool_is_late(const struct spool *spool) {
    if (spool->unlisted && spool->unlisted < TRIES)
        return true;
    for (size_t i = 0; i < spool->n; i++)
        if (spool->files[i].is_late)
            return true;
    return false;
}

/* ---- one file */

/* A file that cannot be read now (no descriptor is left, say) has its turn again in the next pass;
 * after some of them it is given up. */
static void put_off(struct spool_file *file) {
    file->is_late = ++file->tries < TRIES;
    file->is_whole |= !file->is_late;
}

static int open_file(const struct spool *spool, struct spool_file *file, struct stat *st) {
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof path, "%s/%s", spool->path, own_name(file));
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        file->is_gone = errno == ENOENT || errno == ELOOP;
        if (!file->is_gone)
            put_off(file);
        return -1;
    }
    if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
        file->is_gone = true;
        close(fd);
        return -1;
    }
    return fd;
}

static void remove_file(const struct spool *spool, struct spool_file *file) {
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", spool->path, own_name(file));
    if (!unlink(path) || errno == ENOENT)
        file->is_gone = true;
}

static enum segment_end walk(struct segment *segment, int fd) {
    static unsigned char window[WINDOW];

    for (;;) {
        const ssize_t n = pread(fd, window, sizeof window, (off_t)segment->at);
        const enum segment_end end = n > 0 ? segment_walk(segment, window, (size_t)n) : SEGMENT_END;

        if (end != SEGMENT_MORE || n < 8)
            return end;
    }
}

/* Reads the header, and with the first good one begins the segment; false if there is nothing to
 * send of it now. */
static bool load(struct spool *spool, struct spool_file *file, int fd, const struct stat *st,
                 enum spool_writers writers) {
    struct myelin_spool_header header;
    const ssize_t n = pread(fd, &header, sizeof header, 0);
    struct segment segment;

    if (n < 0) {
        put_off(file);
        return false;
    }
    if (n == (ssize_t)sizeof header && segment_begin(&segment, &header, (uint64_t)st->st_size)) {
        if (header.state == MYELIN_SPOOL_PREPARED ||
            (file->is_begun && file->walk.nonce != segment.nonce))
            return false;
        file->header = header;
        if (file->is_begun)
            return true;
        file->walk = segment;
        file->size = segment.size;
        file->sent = acks_get(spool->acks, file->name);
        file->owes_opening = file->sent < sizeof header;
        if (file->owes_opening)
            file->sent = sizeof header;
        file->told_state = UINT32_MAX;
        return file->is_begun = true;
    }
    if (file->is_begun || writers == SPOOL_ALIVE)
        return false;
    file->size = (uint64_t)st->st_size < RAW_MAX ? (uint64_t)st->st_size : RAW_MAX;
    file->until = file->size;
    file->sent = acks_get(spool->acks, file->name);
    file->owes_whole = true;
    return false;
}

static bool is_done(const struct spool_file *file, enum spool_writers writers) {
    return writers == SPOOL_OVER || file->header.state >= MYELIN_SPOOL_SEALED;
}

/* The state is looked at before the records, so that a header that says `sealed` covers them all.
 */
static void look(struct spool *spool, struct spool_file *file, enum spool_writers writers) {
    enum segment_end end;
    struct stat st;
    const int fd = open_file(spool, file, &st);

    if (fd < 0)
        return;
    if (load(spool, file, fd, &st, writers)) {
        end = walk(&file->walk, fd);
        if (end == SEGMENT_BAD)
            end = walk(&file->walk, fd); /* it may have been read while it was written */
        file->until = file->walk.good;
        if (is_done(file, writers)) {
            if (end == SEGMENT_BAD)
                file->until = file->size;
            file->owes_whole = true;
        }
    }
    close(fd);
    if (file->owes_whole && acks_get(spool->acks, file->name) >= whole_of(file))
        remove_file(spool, file);
}

/* ---- its frames */

static bool send_records(struct spool *spool, struct spool_file *file, struct outgoing *out) {
    const uint64_t left = file->until - file->sent;
    struct stat st;
    const int fd = open_file(spool, file, &st);
    ssize_t n;

    if (fd < 0)
        return false;
    n = pread(fd, outgoing_bytes(out, strlen(file->name)),
              left < FRAME_BYTES_MAX ? (size_t)left : FRAME_BYTES_MAX, (off_t)file->sent);
    close(fd);
    if (n < 0)
        put_off(file);
    if (n == 0) /* somebody truncates it: it is not sent as whole */
        file->is_whole = true;
    if (n <= 0)
        return false;
    file->tries = 0;
    outgoing_file(out, FRAME_DATA, file->name, file->sent, (uint32_t)n);
    file->sent += (uint64_t)n;
    return true;
}

static void send_header(struct spool_file *file, uint32_t state, struct outgoing *out) {
    struct myelin_spool_header header = file->header;

    header.state = state;
    memcpy(outgoing_bytes(out, strlen(file->name)), &header, sizeof header);
    outgoing_file(out, FRAME_DATA, file->name, 0, sizeof header);
    file->told_state = state;
    file->told_dropped = header.dropped;
}

/* Sends what is owed; false: nothing is, until it is looked at again. */
static bool send_owed(struct spool *spool, struct spool_file *file, struct outgoing *out) {
    if (file->owes_opening) {
        file->owes_opening = false;
        send_header(file, MYELIN_SPOOL_OPEN, out);
        return true;
    }
    if (file->sent < file->until)
        return send_records(spool, file, out);
    if (file->is_begun &&
        (file->told_state != file->header.state || file->told_dropped != file->header.dropped)) {
        send_header(file, file->header.state, out);
        return true;
    }
    if (file->owes_whole) {
        file->owes_whole = false;
        file->is_whole = true;
        outgoing_file(out, FRAME_WHOLE, file->name, whole_of(file), 0);
        return true;
    }
    return false;
}

static bool file_next(struct spool *spool, struct spool_file *file, enum spool_writers writers,
                      struct outgoing *out) {
    if (file->is_whole || file->is_gone)
        return false;
    if (file->pass != spool->pass)
        file->is_late = false;
    if (!file->is_late && send_owed(spool, file, out))
        return true;
    if (file->pass == spool->pass || file->is_late)
        return false;
    file->pass = spool->pass;
    look(spool, file, writers);
    return !file->is_gone && !file->is_late && send_owed(spool, file, out);
}

bool spool_next(struct spool *spool, enum spool_writers writers, struct outgoing *out) {
    for (; spool->turn < spool->n; spool->turn++)
        if (file_next(spool, &spool->files[spool->turn], writers, out))
            return true;
    return false;
}

/* ---- afterwards */

void spool_acknowledged(struct spool *spool) {
    for (size_t i = 0; i < spool->n; i++) {
        struct spool_file *file = &spool->files[i];

        if (file->is_whole && !file->is_gone && acks_get(spool->acks, file->name) >= whole_of(file))
            remove_file(spool, file);
    }
}

uint64_t spool_unsent(const char *path, const struct acks *acks) {
    struct spool spool;
    uint64_t sum = 0;

    spool_init(&spool, path, acks);
    spool_look(&spool);
    for (size_t i = 0; i < spool.n; i++) {
        struct spool_file *file = &spool.files[i];
        const uint64_t has = acks_get(acks, file->name);

        look(&spool, file, SPOOL_OVER);
        if (!file->is_gone && has < file->until)
            sum += file->until - has;
    }
    free(spool.files);
    return sum;
}
