/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task calls an artifact: a file or a folder of the run's outputs, with a name, a type and
 * metadata. It comes from two lines of the journal (docs/run-directory.md): `tracked`, which the
 * task has caused, and `artifact`, which is written once when the run is over (inventory.h) and
 * says what the files then were.
 *
 * The hash of a file is its SHA-256. That of a folder is the SHA-256 of a list: for each file, by
 * path, its own hash, two blanks, the path below the folder and a newline, as sha256sum prints; in
 * the place of a symbolic link's hash stands that of its target's text.
 */
#ifndef STORE_ARTIFACT_H
#define STORE_ARTIFACT_H

#include "base/sha256.h"
#include "codec/node.h"
#include "store/outputs.h"
#include "store/record.h"

#define ARTIFACT_MODEL "model" /* the type of those that get a version */

struct artifact {
    const char *name, *path;     /* path: below outputs/; "" where none was told */
    const char *type;            /* or NULL */
    const struct node *metadata; /* or NULL */
    int64_t step;                /* at which it was logged; -1: not told */
    const char *logged_at;       /* when its `artifact` line was written, or NULL */
    /* Known once the run is over. */
    const char *sha256; /* or NULL */
    uint64_t size, files;
    const char *problem; /* why there is no hash and never will be, or NULL */
    int64_t version;     /* of a model; 0: none */
};

struct artifacts {
    struct artifact *list; /* in the order in which they were first logged */
    size_t n;
};

/* All of a run; they live in the arena. */
struct artifacts artifacts_read(const struct run_record *record, struct arena *arena);

/* What the files at a path below outputs/ are. Fails with ERROR_EXHAUSTED, at once, where they are
 * more than so many bytes or files; with ERROR_INVALID where the path leaves the outputs. */
struct content {
    char sha256[SHA256_TEXT];
    uint64_t size, files;
    uint64_t special; /* FIFOs, sockets and devices in it, which the hash knows nothing of */
};
enum { CONTENT_FILES_MOST = 1000000 };
MUST_CHECK int content_hash(const struct rundir *rundir, const char *path, uint64_t bytes_most,
                            struct content *out, struct error *err);

/* The hash of one file of a list of outputs. */
MUST_CHECK int content_hash_one(const struct rundir *rundir, const struct output *output,
                                char out[static SHA256_TEXT], struct error *err);

#endif
