/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that the tasks of a run have left in its outputs directory: to list, and to copy
 * out. Nothing outside of that directory is ever reached, whatever a task has put there: each
 * directory is opened from the one above it, and symbolic links are not followed. While a run
 * goes on its files may change; what is gone meanwhile is left out.
 */
#ifndef STORE_OUTPUTS_H
#define STORE_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/vec.h"
#include "store/rundir.h"

enum { OUTPUTS_DEPTH_MOST = 200 };

struct output {
    const char *path;   /* below outputs/ */
    const char *target; /* of a symbolic link; NULL: it is a file */
    uint64_t size;      /* bytes */
    struct timespec modified;
};

struct outputs {
    struct arena arena;
    VEC(struct output) list; /* by path */
    size_t strip;            /* bytes of each path that a copy is without */
    size_t n_special;        /* FIFOs, sockets and devices, which are never opened: left out */
};

/* Adds a file, or all files of a directory, below outputs/; NULL for all. Fails with
 * ERROR_NOT_FOUND where there is none or where the path is a FIFO, a socket or a device, with
 * ERROR_INVALID for a path that would lead out, with ERROR_EXHAUSTED where more is there than is
 * ever listed. What may go otherwise a moment later has another code. */
MUST_CHECK int outputs_add(struct outputs *outputs, const struct rundir *rundir, const char *path,
                           struct error *err);
void outputs_sort(struct outputs *outputs); /* and drops what was added twice */
void outputs_release(struct outputs *outputs);

/* Opens one file of the list to read; what is not a file any more is ERROR_NOT_FOUND. */
MUST_CHECK int outputs_open(const struct rundir *rundir, const char *path, struct error *err);

enum outputs_manner {
    OUTPUTS_NEW_ONLY,  /* a file that exists is an error, found before anything is copied */
    OUTPUTS_OVERWRITE, /* it is replaced, whole */
};

/* Told every now and then how many bytes were copied; false ends the copying. */
struct outputs_progress {
    bool (*tell)(void *context, uint64_t bytes);
    void *context;
};

/* Copies to a directory, which is made when it is missing. Links that stay inside are copied as
 * links; *left_out counts those that do not, and are not copied. The file system may share what is
 * alike until one side changes it. `progress` may be NULL. */
MUST_CHECK int outputs_copy(const struct outputs *outputs, const struct rundir *rundir,
                            const char *directory, enum outputs_manner manner,
                            const struct outputs_progress *progress, size_t *left_out,
                            struct error *err);

#endif
