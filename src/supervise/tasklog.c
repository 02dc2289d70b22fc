/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/tasklog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/logindex.h"

enum { INDEX_FREE = 64 * 1024, INDEX_SHARE = 4, LOOK_EVERY_US = 1000 * 1000 };

int64_t tasklog_origin(void) {
    return clock_wall_us() - clock_monotonic_us();
}

int64_t tasklog_now(int64_t origin_us) {
    return origin_us + clock_monotonic_us();
}

enum { TO_WRITE = O_RDWR | O_CREAT }; /* its end is read again for the diagnosis */

static int open_beside(const char *directory, const char *task, const char *suffix, int flags) {
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s.%s", directory, task, suffix) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_open_linkless(path, flags, 0666);
}

static void open_log(struct tasklog *log, const char *directory, const char *task) {
    struct stat st;

    log->fd = open_beside(directory, task, "log", TO_WRITE | O_APPEND);
    if (log->fd < 0 && errno == ENOENT && file_make_directory_linkless(directory, 0777) == 0)
        log->fd = open_beside(directory, task, "log",
                              TO_WRITE | O_APPEND); /* a task has removed that too */
    if (log->fd < 0) {
        log->errnum = errno;
        return;
    }
    if (fstat(log->fd, &st) == 0)
        log->kept = (uint64_t)st.st_size; /* of an earlier supervisor, whose records stay */
    log->index_fd = open_beside(directory, task, "idx", TO_WRITE);
    if (log->kept == 0 && log->index_fd >= 0 && ftruncate(log->index_fd, 0) < 0)
        log->errnum = errno; /* one that is left of a log which was removed */
    if (log->index_fd >= 0 && fstat(log->index_fd, &st) == 0)
        log->n_records = (uint64_t)st.st_size / LOGINDEX_RECORD;
}

/* ---- the index ---- */

/* Writes the next record. A cut one is written over by the next try. */
static bool put_record(struct tasklog *log, const struct logindex_entry *entry) {
    unsigned char record[LOGINDEX_RECORD];

    logindex_encode(entry, record);
    return log->index_fd >= 0 && pwrite(log->index_fd, record, sizeof record,
                                        (off_t)(log->n_records * sizeof record)) == sizeof record;
}

static void close_files(struct tasklog *log) {
    if (log->fd >= 0)
        close(log->fd);
    if (log->index_fd >= 0)
        close(log->index_fd);
    log->fd = log->index_fd = -1;
}

/* What a task has removed is gone: the file is made again, and begins with the gap. */
static void forget_removed(struct tasklog *log, int64_t now_us) {
    struct stat st;

    if (log->fd < 0 || now_us - log->looked_us < LOOK_EVERY_US)
        return;
    log->looked_us = now_us;
    if (fstat(log->fd, &st) < 0 || st.st_nlink > 0)
        return;
    close_files(log);
    log->errnum = ENOENT;
    log->lost += log->kept;
    log->gap += log->kept;
    log->gap_offset = log->kept = log->n_records = log->indexed_offset = 0;
    log->indexed_us = 0;
}

static void put_time(struct tasklog *log, int64_t now_us) {
    const struct logindex_entry entry = { .time_us = now_us, .offset = log->kept };

    if (!put_record(log, &entry))
        return;
    log->n_records++;
    log->indexed_offset = log->kept;
    log->indexed_us = now_us;
}

static bool put_gap(struct tasklog *log) {
    const struct logindex_entry entry = { .time_us = (int64_t)log->gap,
                                          .offset = log->gap_offset,
                                          .is_gap = true };

    return put_record(log, &entry);
}

/* The loss is over: its record stays as it is, and the next one comes behind it. */
static void end_gap(struct tasklog *log) {
    if (log->gap == 0 || !put_gap(log))
        return;
    log->n_records++;
    log->gap = 0;
    log->indexed_us = 0;
    free(log->tail);
    log->tail = NULL;
}

static void index_bytes(struct tasklog *log, int64_t now_us) {
    const uint64_t size = log->n_records * LOGINDEX_RECORD;
    const bool is_due = log->n_records == 0 || now_us - log->indexed_us >= INDEX_EVERY_US ||
                        log->kept - log->indexed_offset >= INDEX_EVERY_BYTES;

    if (is_due && log->gap == 0 && size < INDEX_FREE + log->kept / INDEX_SHARE)
        put_time(log, now_us);
}

/* Without memory for it only the diagnosis is poorer. */
static void keep_in_memory(struct tasklog *log, const char *bytes, size_t n) {
    if (!log->tail)
        log->tail = calloc(1, sizeof *log->tail);
    if (log->tail)
        tail_add(log->tail, bytes, n);
}

/* A growing gap has its record written over, not with each loss, but soon. */
static void count_lost(struct tasklog *log, uint64_t n, int64_t now_us) {
    log->lost += n;
    if (log->gap == 0)
        log->gap_offset = log->kept;
    log->gap += n;
    if (log->gap == n || now_us - log->indexed_us >= INDEX_EVERY_US) {
        put_gap(log);
        log->indexed_us = now_us;
    }
}

/* ---- the log ---- */

/* Returns how many bytes were taken. */
static size_t append(struct tasklog *log, const char *bytes, size_t n) {
    size_t taken = 0;

    while (taken < n) {
        const ssize_t written = write(log->fd, bytes + taken, n - taken);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            log->errnum = errno; /* the next bytes are tried again: room may come back */
            break;
        }
        taken += (size_t)written;
    }
    return taken;
}

void tasklog_write(struct tasklog *log, const struct tasklog_place *place, const char *task,
                   int64_t now_us, const char *bytes, size_t n) {
    size_t fits, taken = 0;

    forget_removed(log, now_us);
    if (log->fd < 0)
        open_log(log, place->directory, task);
    fits = log->kept >= place->limit      ? 0
           : n < place->limit - log->kept ? n
                                          : (size_t)(place->limit - log->kept);
    if (fits < n)
        log->errnum = EFBIG;
    if (fits && log->fd >= 0) {
        index_bytes(log, now_us);
        taken = append(log, bytes, fits);
    }
    if (taken && log->gap) {
        end_gap(log);
        index_bytes(log, now_us);
    }
    log->kept += taken;
    if (taken < n) {
        keep_in_memory(log, bytes + taken, n - taken);
        count_lost(log, n - taken, now_us);
    }
}

void tasklog_end(struct tasklog *log) {
    if (log->gap)
        (void)put_gap(log);
}

void tasklog_close(struct tasklog *log) {
    end_gap(log);
    close_files(log);
    free(log->tail);
    log->tail = NULL;
}

uint64_t tasklog_size(const char *directory, const char *task) {
    char path[PATH_MAX];
    struct stat st;

    if (snprintf(path, sizeof path, "%s/%s.log", directory, task) >= (int)sizeof path ||
        stat(path, &st) < 0)
        return 0;
    return (uint64_t)st.st_size;
}

static void read_tail(int fd, struct buf *out, size_t most) {
    const off_t end = lseek(fd, 0, SEEK_END);
    off_t at = end > (off_t)most ? end - (off_t)most : 0;
    char chunk[4096];
    struct error err;

    while (at < end) {
        const size_t want = (size_t)(end - at) < sizeof chunk ? (size_t)(end - at) : sizeof chunk;
        const ssize_t n = pread(fd, chunk, want, at);

        if (n <= 0 || buf_append(out, chunk, (size_t)n, &err))
            break;
        at += n;
    }
}

/* By the descriptor where there is one: a task may have removed the file. */
void tasklog_tail(const struct tasklog *log, const char *directory, const char *task,
                  struct buf *out) {
    const struct tail *tail = log ? log->tail : NULL;
    const size_t in_memory = tail ? tail->n : 0, room = out->limit - out->len;
    const bool is_open = log && log->fd >= 0;
    const int fd = is_open ? log->fd : open_beside(directory, task, "log", O_RDONLY);

    if (fd >= 0 && in_memory < room)
        read_tail(fd, out, room - in_memory);
    if (fd >= 0 && !is_open)
        close(fd);
    if (tail)
        tail_read(tail, out);
}

bool tasklog_lost_tail(const struct tasklog *log) {
    return log->gap > 0 && !log->tail;
}
