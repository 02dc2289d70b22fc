/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/public_line.h"
#include "store/rights.h"
#include "store/sharing.h"

enum {
    WAITING_MOST = 64 * 1024,
    ROOM_FOR_RUN = 32 * 1024,
    ROOM_FOR_TASK = 512, /* start and end */
};

static int journal_open(struct journal *journal, const struct rundir *rundir, int flags,
                        struct error *err) {
    AUTO(arena) arena = ARENA_INIT;
    const char *home;

    *journal = (struct journal){ .fd = -1,
                                 .public_fd = -1,
                                 .line = BUF_INIT(JOURNAL_LINE_MOST),
                                 .waiting = BUF_INIT(WAITING_MOST + JOURNAL_LINE_MOST) };
    if (rights_check(rundir, err))
        return -1;
    journal->fd = file_open_linkless(rundir->journal, O_RDWR | O_APPEND | flags, 0666);
    if (journal->fd < 0)
        return error_set_errno(err, errno, "cannot write '%.300s'", rundir->journal);
    home = rundir_home_of(rundir, &arena);
    if (home_is_shared(home))
        journal->public_fd =
            file_open_linkless(arena_printf(&arena, "%s/" PUBLIC_FILE, rundir->path),
                               O_WRONLY | O_APPEND | O_CREAT, S_IRUSR | S_IWUSR);
    journal->started_us = clock_monotonic_us();
    return 0;
}

int journal_create(struct journal *journal, const struct rundir *rundir, uint32_t n_tasks,
                   struct error *err) {
    if (journal_open(journal, rundir, O_CREAT | O_EXCL, err))
        return -1;
    journal->n_tasks = n_tasks;
    if (journal_reserve(journal, err)) {
        journal_close(journal);
        return error_wrap(err, "cannot keep a run in '%.300s'", rundir->path);
    }
    return 0;
}

static bool is_roomy(int fd, off_t n) {
    struct statvfs disk;

    return fstatvfs(fd, &disk) < 0 || disk.f_blocks == 0 || /* which does not know its size */
           (uint64_t)disk.f_bavail * disk.f_frsize >= (uint64_t)n;
}

static off_t end_of(const struct journal *journal) {
    const off_t end = lseek(journal->fd, 0, SEEK_END);

    return end > 0 ? end : 0;
}

/* Not every file system can reserve; a run is not refused for that, nor for what else may be amiss:
 * only for what is known to be too little. */
static bool take_room(const struct journal *journal, off_t from, off_t n) {
    int status;

    do
        status = fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, from, n);
    while (status < 0 && errno == EINTR);
    if (status < 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        return is_roomy(journal->fd, from + n - end_of(journal));
    return status == 0 || (errno != ENOSPC && errno != EDQUOT);
}

int journal_reserve(struct journal *journal, struct error *err) {
    const off_t room = ROOM_FOR_RUN + (off_t)journal->n_tasks * ROOM_FOR_TASK;
    const off_t end = end_of(journal);

    if (!take_room(journal, end, room))
        return error_set_errno(err, ENOSPC, "there is no room for the journal");
    journal->reserved = end + room;
    return 0;
}

/* What stands before the line in the file, or waits to, has its room; so much as the line takes of
 * the reserve is put to its end. */
static bool make_spare_room(struct journal *journal, size_t n) {
    const off_t end = end_of(journal) + (off_t)journal->waiting.len;
    const off_t from = journal->reserved > end ? journal->reserved : end;

    if (!take_room(journal, from, (off_t)n))
        return false;
    journal->reserved = from + (off_t)n;
    return true;
}

/* Whoever wrote last may have died in the middle of a line. */
static bool ends_in_a_cut_line(int fd) {
    off_t end = lseek(fd, 0, SEEK_END);
    char last;

    return end > 0 && pread(fd, &last, 1, end - 1) == 1 && last != '\n';
}

int journal_reopen(struct journal *journal, const struct rundir *rundir, uint64_t seq,
                   double elapsed_s, struct error *err) {
    if (journal_open(journal, rundir, 0, err))
        return -1;
    journal->seq = seq;
    journal->started_us -= (int64_t)(elapsed_s * 1e6 + 0.5);
    journal->is_cut = ends_in_a_cut_line(journal->fd);
    return 0;
}

void journal_close(struct journal *journal) {
    journal_flush(journal);
    if (journal->fd >= 0)
        close(journal->fd);
    if (journal->public_fd >= 0)
        close(journal->public_fd);
    journal->fd = journal->public_fd = -1;
    buf_release(&journal->line);
    buf_release(&journal->waiting);
}

double journal_elapsed(const struct journal *journal) {
    return (double)(clock_monotonic_us() - journal->started_us) / 1e6;
}

struct json *journal_begin(struct journal *journal, const char *event) {
    struct json *json = &journal->json;

    buf_clear(&journal->line);
    json_init(json, JSON_COMPACT, json_to_buf, &journal->line);
    json_object(json);
    json_key(json, "seq");
    json_int(json, (int64_t)++journal->seq);
    json_key(json, "time");
    json_text(json, time_text(clock_wall_us(), TIME_MICROSECONDS).text);
    json_key(json, "elapsed");
    json_number(json, journal_elapsed(journal));
    json_key(json, "attempt");
    json_int(json, journal->attempt);
    json_key(json, "event");
    json_text(json, event);
    return json;
}

static uint64_t count_lines(const char *bytes, size_t n) {
    uint64_t lines = 0;

    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    return lines;
}

/* Returns how many are whole in the file. A line never goes on where another was cut: that would
 * lose both. */
static uint64_t append_lines(struct journal *journal) {
    const struct buf *lines = &journal->waiting;
    ssize_t n;

    if (journal->is_cut && write(journal->fd, "\n", 1) != 1)
        return 0;
    journal->is_cut = false;
    n = write(journal->fd, lines->data, lines->len);
    if (n == (ssize_t)lines->len)
        return journal->n_waiting;
    if (n <= 0)
        return 0;
    journal->is_cut = lines->data[n - 1] != '\n';
    return count_lines(lines->data, (size_t)n);
}

void journal_flush(struct journal *journal) {
    if (journal->n_waiting == 0)
        return;
    journal->lost += journal->n_waiting - (journal->fd >= 0 ? append_lines(journal) : 0);
    buf_clear(&journal->waiting);
    journal->n_waiting = 0;
    if (journal->written)
        journal->written(journal->context);
}

/* A line that others cannot read costs them the view of the run, and the run nothing. */
static void publish_line(const struct journal *journal) {
    AUTO(buf) line = BUF_INIT(JOURNAL_LINE_MOST);
    struct error ignored;

    if (journal->public_fd >= 0 && journal->line.len > 0 &&
        public_line(journal->line.data, journal->line.len - 1, &line, &ignored) == 0 &&
        line.len > 0 && !file_append(journal->public_fd, line.data, line.len))
        return;
}

bool journal_end(struct journal *journal, enum journal_manner manner) {
    const uint64_t lost = journal->lost;
    struct error err;
    bool is_whole;

    json_end(&journal->json);
    is_whole =
        json_finish(&journal->json, &err) == 0 && buf_append(&journal->line, "\n", 1, &err) == 0;
    if (is_whole && manner == JOURNAL_SPARE && !make_spare_room(journal, journal->line.len)) {
        journal->seq--;
        return false;
    }
    if (is_whole && buf_append(&journal->waiting, journal->line.data, journal->line.len, &err) == 0)
        journal->n_waiting++;
    else
        journal->lost++;
    if (is_whole)
        publish_line(journal);
    journal->too_long += !is_whole;
    if (manner == JOURNAL_GATHERED && journal->waiting.len < WAITING_MOST)
        return true;
    journal_flush(journal);
    if (manner == JOURNAL_DURABLE && journal->lost == lost)
        fdatasync(journal->fd);
    return true;
}

/* ---- reading ---- */

int journal_open_to_read(const struct rundir *rundir) {
    int fd = file_open_linkless(rundir->journal, O_RDONLY, 0);
    char path[PATH_MAX];

    if (fd < 0 && errno == EACCES &&
        snprintf(path, sizeof path, "%s/" PUBLIC_FILE, rundir->path) < (int)sizeof path)
        fd = file_open_linkless(path, O_RDONLY, 0);
    return fd;
}

int journal_load(const struct rundir *rundir, struct buf *text, struct error *err) {
    const int fd = journal_open_to_read(rundir);
    struct stat st;
    int status;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return error_set_errno(err, errno, "%s", rundir->journal);
    if (rundir->owner != getuid() && fstat(fd, &st) == 0 && st.st_size > JOURNAL_FOREIGN_MOST)
        status = error_set(err, ERROR_EXHAUSTED, "%s has more than %d MiB", rundir->journal,
                           JOURNAL_FOREIGN_MOST >> 20);
    else
        status = file_read_rest(fd, text, err) ? error_wrap(err, "%s", rundir->journal) : 0;
    close(fd);
    return status;
}

bool journal_next(const struct buf *text, size_t *at, const char **line, size_t *n) {
    const char *end = *at < text->len ? memchr(text->data + *at, '\n', text->len - *at) : NULL;

    if (!end)
        return false;
    *line = text->data + *at;
    *n = (size_t)(end - *line);
    *at += *n + 1;
    return true;
}
