/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes stock of the artifacts of a run (artifact.h) once nothing of it is left: hashes their
 * files, gives models their version (models.h), and writes a line `artifact` for each to the
 * journal. While tasks run nothing is read, so it costs a training nothing.
 *
 * A supervisor does it before it tells the run's end, for artifacts up to INVENTORY_AT_END bytes
 * together: a few seconds at most. What is larger, and the runs whose supervisor died, are left to
 * the first command that wants to know (inventory_settle).
 *
 * An artifact whose path leaves the outputs, or is not there, or has more files than are ever
 * hashed, gets a line that says so, and neither a hash nor a version, for ever. One whose files
 * cannot be read at the moment gets no line: the next who looks tries again.
 */
#ifndef STORE_INVENTORY_H
#define STORE_INVENTORY_H

#include "store/artifact.h"
#include "store/journal.h"
#include "store/record.h"

#define INVENTORY_AT_END ((uint64_t)512 << 20) /* bytes */

struct inventory_terms {
    uint64_t bytes_most;                               /* UINT64_MAX: no limit */
    void (*tell)(void *context, const char *sentence); /* of what cannot be recorded; or NULL */
    void *context;
};

/* Writes what an artifact is, as `artifact` tells it, to a journal; of a model with its version, or
 * without (0), so that it is given one by who looks next. */
void inventory_write(struct journal *journal, const struct artifact *artifact, int64_t version);

/* Fails where the database does, and, after all others were taken, where the files of an artifact
 * cannot be read; what was written stays, and the rest can be done later. */
MUST_CHECK int inventory_take(const struct run_record *record, struct journal *journal,
                              const struct inventory_terms *terms, struct error *err);

/* The same, without a limit, for a run that is over and whose owner is gone. Nothing is done where
 * somebody owns the run. *is_done: nothing is missing. */
MUST_CHECK int inventory_settle(const struct rundir *rundir, bool *is_done, struct error *err);

#endif
