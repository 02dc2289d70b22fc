/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a run: runs/<id>/events.jsonl, one JSON object a line, appended and never
 * changed. It is the truth about a run; everything else is made from it (record.h). Its lines
 * are described in docs/run-directory.md.
 *
 * Room for the whole of a usual attempt is reserved before it, so that a verdict can still be
 * written on a full disk. Lines of which there may be any number (JOURNAL_SPARE) never take of that
 * room. Where a file system cannot reserve, it is at least asked whether there is room. Order is by
 * `seq`; durations are monotonic; wall clock times are for people.
 *
 * Its mode comes from the owner's umask. In a shared home the lines that other users need are also
 * written to a file that all members may read (public_line.h).
 */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <sys/types.h>

#include "codec/json.h"
#include "store/rundir.h"

enum { JOURNAL_LINE_MOST = 256 * 1024 }; /* bytes */

struct journal {
    int fd;        /* -1: closed */
    int public_fd; /* of the lines for others; -1: the home is not shared */
    uint64_t seq;
    uint32_t attempt;   /* told by each line */
    uint32_t n_tasks;   /* of the run */
    int64_t started_us; /* of the monotonic clock: what `elapsed` counts from */
    struct buf line;    /* being made */
    struct buf waiting; /* whole lines that are to be written with the next */
    struct json json;
    uint64_t n_waiting;
    off_t reserved;    /* up to where there is room for the lines that have to be written */
    uint64_t lost;     /* lines that could not be written */
    uint64_t too_long; /* those of them that are longer than a line may be */
    bool is_cut;       /* the file ends in the middle of a line */
    void (*written)(void *context); /* others can read more than before; NULL: nobody is told */
    void *context;
};

/* Makes the file. Fails where a run cannot be recorded. */
MUST_CHECK int journal_create(struct journal *journal, const struct rundir *rundir,
                              uint32_t n_tasks, struct error *err);
/* Opens an existing one of this user's to append to; `elapsed` counts on from what it says last. */
MUST_CHECK int journal_reopen(struct journal *journal, const struct rundir *rundir, uint64_t seq,
                              double elapsed_s, struct error *err);
void journal_close(struct journal *journal);

/* Reserves room for as many lines as an attempt usually takes; journal_create does so for the
 * first. Where there is none a full disk may cost the verdict: nothing more. */
MUST_CHECK int journal_reserve(struct journal *journal, struct error *err);

enum journal_manner {
    JOURNAL_GATHERED, /* with the next line, or by journal_flush: how one of many tasks fares */
    JOURNAL_SOON,     /* to be read by others when the call returns; on the disk with the next
                         durable one */
    JOURNAL_DURABLE,  /* on the disk when the call returns: what happened to the run */
    JOURNAL_SPARE     /* as JOURNAL_SOON, where the disk has room for more than what is reserved;
                         else the line is as if it was never begun */
};

/* Starts a line; the caller adds members to the returned writer, and ends it. A line that
 * cannot be written is counted: a run goes on without its journal. Returns false where it is as if
 * it was never begun. */
struct json *journal_begin(struct journal *journal, const char *event);
bool journal_end(struct journal *journal, enum journal_manner manner);

/* Writes what was gathered. Also before a fork: else both would write it. */
void journal_flush(struct journal *journal);

double journal_elapsed(const struct journal *journal);

/* ---- reading ---- */

enum {
    JOURNAL_MOST = 1 << 30, /* bytes of one that is read: the ceiling of the text below */
    JOURNAL_FOREIGN_MOST = 32 << 20,
};

/* The journal, opened to be read; its public lines if it is another user's and private. Returns the
 * descriptor, or -1 with errno. */
MUST_CHECK int journal_open_to_read(const struct rundir *rundir);

/* Appends all of it; of a run that has none yet, nothing. Of another user's run at most
 * JOURNAL_FOREIGN_MOST bytes are read: more is an error. */
MUST_CHECK int journal_load(const struct rundir *rundir, struct buf *text, struct error *err);
/* The line at *at, which moves behind it; false where none is whole any more: the last may be
 * being written, or cut by a crash. It has no terminator. */
bool journal_next(const struct buf *text, size_t *at, const char **line, size_t *n);

#endif
