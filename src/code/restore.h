/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a run, made again: from its snapshot where it has one, else from its repository, by
 * the commit and the changes that were recorded. The repository is only read.
 */
#ifndef CODE_RESTORE_H
#define CODE_RESTORE_H

#include "archive/archive.h"
#include "base/buf.h"
#include "store/code_facts.h"
#include "store/rundir.h"

/* A run whose code is to be made again. */
struct code_run {
    const struct rundir *rundir;
    const struct code_facts *facts;
};

/* Makes the tree as <into>/code, and names the place in it that stands for the run's working
 * directory. The progress may be NULL. `missing` says what of the tree is not there, or is NULL.
 * Fails where the tree cannot be made as it was, with the way out; nothing is left then. */
struct code_restored {
    const char *directory; /* absolute */
    const char *missing;   /* a sentence, or NULL */
    const char *from;      /* "the snapshot", "commit 4f0c2d1 of /p" */
};
MUST_CHECK int code_restore(const struct code_run *run, const struct rundir *into,
                            struct arena *arena, const struct archive_progress *progress,
                            struct code_restored *out, struct error *err);

/* How the trees of two runs differ, as far as git knows them: as a unified diff, or how many lines
 * of which files. Appended to *out; nothing where they are the same. Fails with ERROR_NOT_FOUND
 * where a repository, a commit or all of the changes are missing. */
enum code_diff_manner { CODE_DIFF_STAT, CODE_DIFF_FULL };
MUST_CHECK int code_diff(const struct code_run *here, const struct code_run *there,
                         enum code_diff_manner manner, struct buf *out, struct error *err);

#endif
