/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs from an archive (export.h) into a home. Each gets the next id of the home and keeps its
 * uuid; one whose uuid is here is left alone. Nothing is believed of an archive: it is unpacked
 * beside the runs (archive.h), each run in it is held to what a run that is over is, and only then
 * moved to its place, by one rename, while its lock is held.
 *
 *   what does not fit           nothing of the archive becomes a run
 *   a crash                     leaves whole runs, and import.XXXXXX, which `gc` removes
 *
 * The models of a run get versions of this home: the number that they had where it is higher than
 * every one that was given here to that name, else the next. They are written to the run's journal.
 * An alias that no version here has goes with them; another stays where it is.
 */
#ifndef ARCHIVE_IMPORT_H
#define ARCHIVE_IMPORT_H

#include "archive/archive.h"
#include "base/arena.h"
#include "base/vec.h"

struct imported_model {
    const char *name;
    int64_t version_there, version; /* version 0: none yet, `models_trouble` says why */
    const char **aliases;           /* that it has here now, ended by NULL */
    const char **aliases_kept_back; /* that another version has here, likewise */
};

struct imported {
    const char *uuid;
    int64_t id_there;
    unsigned long id; /* here */
    bool was_here;    /* nothing was done */
    uint64_t bytes;
    VEC(struct imported_model) models;
    const char *models_trouble; /* or NULL: why they get their versions later */
};

struct imports {
    struct arena arena;
    VEC(struct imported) list; /* in the order of the archive */
};
void imports_release(struct imports *imports);

/* Imports all runs of an archive. `name` is what it is called in messages. Where it fails in the
 * middle of moving runs to their places, *out has those that are in place. */
MUST_CHECK int import_archive(const char *home, int fd, const char *name,
                              const struct archive_progress *progress, struct imports *out,
                              struct error *err);

/* What imports that died have left in a home: the paths of directories that nobody owns. */
MUST_CHECK int import_leftovers(const char *home, struct arena *arena, const char ***paths,
                                size_t *n, struct error *err);

#endif
