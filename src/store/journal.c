/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sharing.h"

enum {
    LINE_MAX_BYTES = 256 * 1024,
    WAITING_MOST = 64 * 1024,
    ROOM_FOR_RUN = 32 * 1024,
    ROOM_FOR_TASK = 512, /* start and end */
};

static int journal_open(struct journal *journal, const struct rundir *rundir, int flags,
                        struct error *err) {
    AUTO(arena) arena = ARENA_INIT;

    *journal = (struct journal){ .line = BUF_INIT(LINE_MAX_BYTES),
                                 .waiting = BUF_INIT(WAITING_MOST + LINE_MAX_BYTES) };
    journal->fd = shared_open(rundir_home_of(rundir, &arena), rundir->journal,
                              O_RDWR | O_APPEND | O_CLOEXEC | flags, SHARED_TO_READ, 0666);
    if (journal->fd < 0)
        return error_set_errno(err, errno, "cannot write '%.300s'", rundir->journal);
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

int journal_reserve(struct journal *journal, struct error *err) {
    const off_t room = ROOM_FOR_RUN + (off_t)journal->n_tasks * ROOM_FOR_TASK;
    const off_t end = lseek(journal->fd, 0, SEEK_END);

    /* Not every file system can reserve. */
    if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, end > 0 ? end : 0, room) < 0 && errno == ENOSPC)
        return error_set_errno(err, ENOSPC, "there is no room for the journal");
    return 0;
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
    journal->fd = -1;
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

/* A line never goes on where another was cut: that would lose both. */
static bool append_lines(struct journal *journal) {
    const struct buf *lines = &journal->waiting;
    ssize_t n;

    if (journal->is_cut && write(journal->fd, "\n", 1) != 1)
        return false;
    journal->is_cut = false;
    n = write(journal->fd, lines->data, lines->len);
    journal->is_cut = n > 0 && n < (ssize_t)lines->len;
    return n == (ssize_t)lines->len;
}

void journal_flush(struct journal *journal) {
    if (journal->n_waiting == 0)
        return;
    if (journal->fd < 0 || !append_lines(journal))
        journal->lost += journal->n_waiting;
    buf_clear(&journal->waiting);
    journal->n_waiting = 0;
    if (journal->written)
        journal->written(journal->context);
}

void journal_end(struct journal *journal, enum journal_manner manner) {
    const uint64_t lost = journal->lost;
    struct error err;

    json_end(&journal->json);
    if (json_finish(&journal->json, &err) || buf_append(&journal->line, "\n", 1, &err) ||
        buf_append(&journal->waiting, journal->line.data, journal->line.len, &err))
        journal->lost++;
    else
        journal->n_waiting++;
    if (manner == JOURNAL_GATHERED && journal->waiting.len < WAITING_MOST)
        return;
    journal_flush(journal);
    if (manner == JOURNAL_DURABLE && journal->lost == lost)
        fdatasync(journal->fd);
}
