/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are over to an archive, whole: the directory of each, but for its lock, and what only
 * the home knows of it (contents.h). The same runs give the same bytes.
 *
 * A run that shares the outputs of another is written with them as its own, so that each run in an
 * archive stands by itself. Sockets, pipes and the like are left out, and symbolic links that lead
 * out of the run; both are counted.
 *
 *   export_add     each run, while its lock is held; looks at what there is
 *   export_write   all of them
 */
#ifndef ARCHIVE_EXPORT_H
#define ARCHIVE_EXPORT_H

#include "archive/archive.h"
#include "archive/contents.h"
#include "store/record.h"

struct export {
    struct contents contents;
    VEC(struct rundir) rundirs; /* by the index of the contents' runs; they live in its arena */
    uint64_t bytes;             /* of all files */
    uint64_t left_out;          /* things that are not written */
};
void export_release(struct export *export);

/* Fails with ERROR_INVALID for a run that is not over, or was added before. */
MUST_CHECK int export_add(struct export *export, const struct run_record *record,
                          struct error *err);
/* Adds everything to an archive that has just begun. */
MUST_CHECK int export_write(struct export *export, struct pack *pack, struct error *err);

#endif
