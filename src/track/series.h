/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of series of a run, runs/<id>/series: the writer. query.h reads, also meanwhile.
 *
 * A series is what one task logged under one name in one attempt: (name, rank, attempt). A point is
 * a step, a time in microseconds since 1970, and a value. Points keep the order in which they were
 * added: steps may repeat and go back, times too. NaN and the infinities are values; which NaN it
 * was is forgotten, the sign of zero is not.
 *
 *   series_store_open   one writer at a time; recovers what a crash left
 *   series_find, series_add, series_mark      memory only
 *   series_commit       all of it is on the disk when it returns, or none of it is
 *   series_finish       at the end of a run: compact, indexed for charts of any length
 *
 * Exactly once: a commit stores points and marks together. A mark says how far a source (a file of
 * the spool) has been read. Whoever opens the store after a crash reads on from series_marked, and
 * no point is lost or doubled, provided that
 *   1. a source is removed only after the commit of the mark that covers it, and
 *   2. its mark is removed only after the source is gone for good (directory synced).
 *
 * Promises:
 *   1. What a commit that returned 0 has stored survives kill -9 and power loss. What was added
 *      since is the window that may be lost, and the marks know nothing of it.
 *   2. A failed commit (a full disk) loses nothing: the points stay here, and the next one tries
 *      again. Only where the disk itself fails, so that nobody knows what it holds,
 *      series_is_broken says that the store must be opened anew.
 *   3. Memory is bounded as long as the caller commits when series_is_full says so, and adds no
 *      more than one record while it does.
 *
 *   4. If somebody removes the directory, or files in it, while the store is open, the next commit
 *      makes it anew with all that it held: nothing is lost. series_remade says so.
 *
 * The files are described in docs/series.md.
 */
#ifndef TRACK_SERIES_H
#define TRACK_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "track/point.h"

struct disk;

enum {
    SERIES_NAME_MOST = 255,    /* bytes */
    SERIES_SOURCE_MOST = 4096, /* bytes in the name of a source */
    SERIES_MOST = 1 << 18, /* in one store: a program that puts the step into the name ends here */
};
#define SERIES_NONE UINT32_MAX /* no series: the store has too many */

struct series_store;

/* Zero members mean the default. Tests make the limits small and replace the disk. */
struct series_options {
    size_t wal_limit;        /* bytes of the log before it becomes chunks */
    const struct disk *disk; /* what touches files: disk.h */
};

/* Opens or makes the store in this directory, which is made where it is missing (its parent is
 * not). ERROR_CONFLICT: somebody else writes. Options may be NULL. */
MUST_CHECK int series_store_open(const char *directory, const struct series_options *options,
                                 struct series_store **out, struct error *err);
/* What was not committed is forgotten. Takes NULL. */
void series_store_close(struct series_store *store);

/* The series of this name, made if it is new. A name is UTF-8: bytes that are not become '?', and
 * a longer one is cut at a character. SERIES_NONE when there are SERIES_MOST others. */
uint32_t series_find(struct series_store *store, const char *name, size_t n, uint32_t rank,
                     uint32_t attempt);

/* A point to SERIES_NONE is dropped, and counted in series_refused, which a commit keeps. */
void series_add(struct series_store *store, uint32_t series, int64_t step, int64_t time_us,
                double value);
uint64_t series_refused(const struct series_store *store);

/* How far a source has been read, 0 if it is not known. A name over SERIES_SOURCE_MOST is cut. */
void series_mark(struct series_store *store, const char *source, uint64_t offset);
void series_unmark(struct series_store *store, const char *source);
uint64_t series_marked(const struct series_store *store, const char *source);
/* Calls back for each mark, in no order: to forget those whose source is gone. The callback may not
 * change marks. */
void series_each_mark(const struct series_store *store,
                      void (*visit)(void *context, const char *source, uint64_t offset),
                      void *context);

/* How often the files were removed, and made anew. */
uint64_t series_remade(const struct series_store *store);

/* True: commit before more is added. */
bool series_is_full(const struct series_store *store);

/* Makes all that was added and marked durable. Costs one write and one fdatasync, and nothing
 * when there is nothing new. */
MUST_CHECK int series_commit(struct series_store *store, struct error *err);

/* Commits, merges what is scattered into full chunks, and writes summaries with an index. The
 * store may be added to afterwards, and finished again. On failure all that was committed is as
 * it was. Nothing is done to a store that is finished already. */
MUST_CHECK int series_finish(struct series_store *store, struct error *err);
bool series_is_finished(const struct series_store *store);

/* The disk failed in a way that leaves what it holds unknown: every commit fails from now on.
 * Close, open again, and read on from the marks. */
bool series_is_broken(const struct series_store *store);

#endif
