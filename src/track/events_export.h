/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series written out as event files (events_file.h), which TensorBoard and its kin read: a file for
 * each task and attempt, with all its series, one behind the other.
 *
 * Where one task has logged, its file is in the directory itself, else each task has a folder that
 * is named after it; attempts after the first have the folder attempt-<n> in that. A file has its
 * name only when it is whole.
 */
#ifndef TRACK_EVENTS_EXPORT_H
#define TRACK_EVENTS_EXPORT_H

#include "track/query.h"

enum { EVENTS_TASK_MOST = 64 };

struct events_export {
    const char *directory; /* exists */
    const char *name;      /* of each file */
    void (*task)(void *context, uint32_t rank, char out[EVENTS_TASK_MOST]);
    /* Told of each file when it is whole. May be NULL. */
    void (*wrote)(void *context, const char *path, uint32_t rank, uint32_t attempt, uint64_t series,
                  uint64_t points);
    void *context;
};

/* On failure files that were written before stay. */
MUST_CHECK int events_export(struct series_reader *reader, const struct events_export *wish,
                             struct error *err);

#endif
