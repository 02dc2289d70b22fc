/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event files (events_file.h) that appear below a directory are followed while they grow, and
 * become points of series: a run whose code writes for TensorBoard is tracked as it is.
 *
 *   events_follow_look   finds files; true: some have what was not read yet
 *   events_follow_read   reads it, into the store
 *
 * A series is named as `tensorboard --logdir DIRECTORY` shows it: the folder of the file below the
 * directory, a slash, and the tag; the tag alone for a file in the directory itself. Files of one
 * folder that have the same tag are one series. The rank is that of the task whose process number
 * stands in the name of the file, else 0; it is decided when the file is found, and kept.
 *
 * Exactly once: how far a file was read is a mark, `events:<path>`, which is committed with the
 * points. A file that became shorter, or that another took the place of, is read from its
 * beginning.
 *
 * What costs: a look calls stat for each file that is known; directories are looked at every few
 * seconds, and listed again only after a change. Files that are called *tfevents* count, down to a
 * depth and up to a number; symbolic links are not followed.
 */
#ifndef TRACK_EVENTS_FOLLOW_H
#define TRACK_EVENTS_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "track/series.h"

enum {
    EVENTS_DEPTH_MOST = 16,     /* of folders below the directory */
    EVENTS_FOLDERS_MOST = 1024, /* that are looked into */
    EVENTS_FILES_MOST = 1024,
    EVENTS_PATH_MOST = 1024, /* bytes, below the directory */
};

struct events_given {
    const char *directory; /* may be missing yet */
    /* The rank of the task that has this process number, or -1: none. */
    int64_t (*rank)(void *context, int64_t pid);
    void *context;
};

enum events_extent {
    EVENTS_LIVING, /* what is cut is in the making */
    EVENTS_OVER,   /* nobody writes: directories are looked at now, and what is cut is damaged */
};

struct events_result {
    uint64_t points;
    uint64_t bad;   /* records: damaged, cut at the end, or no Event */
    uint64_t large; /* passed over for their length */
    bool more;      /* there is more to read at once: the step was long enough */
};

struct events_follow;

struct events_follow *events_follow_new(const struct events_given *given);
void events_follow_free(struct events_follow *follow); /* takes NULL */

bool events_follow_look(struct events_follow *follow, enum events_extent extent);

/* What the files held when they were looked at is another's: it is never read. */
void events_follow_skip(struct events_follow *follow);

/* Points and marks are added; the caller commits them. Only where the store is full in between they
 * are committed here, and that may fail: nothing is lost then. */
MUST_CHECK int events_follow_read(struct events_follow *follow, enum events_extent extent,
                                  struct series_store *store, uint32_t attempt,
                                  struct events_result *out, struct error *err);

/* The store was closed, with what was not committed: the next one's marks count. */
void events_follow_forget(struct events_follow *follow);

/* There are event files, and as many of them or of folders as are followed: more would be left out.
 */
bool events_follow_is_full(const struct events_follow *follow);

/* Damaged records over the life of a run; kept with the series. */
uint64_t events_bad_total(const struct series_store *store);

#endif
