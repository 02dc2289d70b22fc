/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code a run ran: where it was in the history of its repository, what was changed since, and
 * the archive that was taken of it. The journal has it as a line `code`, a later one in the place
 * of an earlier; the changes themselves are beside it, as runs/<id>/code.diff, and the archive as
 * runs/<id>/code.tar.zst. docs/code.md is the manual.
 *
 * A run whose working directory lies in no repository, and of which no archive was taken, has no
 * such facts: all is NULL and 0.
 */
#ifndef STORE_CODE_FACTS_H
#define STORE_CODE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/json.h"

#define CODE_DIFF_FILE     "code.diff"
#define CODE_SNAPSHOT_FILE "code.tar.zst"
#define CODE_DIRECTORY     "code" /* where the code of a rerun is */

enum { CODE_NAMES_MOST = 100, CODE_SHA256_TEXT = 65 };

struct code_names {
    const char *list[CODE_NAMES_MOST];
    uint32_t n;
    uint64_t all; /* how many there are, beside those that are listed */
};
void code_names_add(struct code_names *names, const char *name);

struct code_facts {
    const char *place; /* the working directory, from the top of the tree: "." or "a/b" */

    /* Of the repository. */
    const char *repository; /* the top of its tree; NULL: there is none */
    const char *commit;     /* NULL: there is none yet */
    const char *branch;     /* NULL: none is checked out */
    const char *remote;     /* its address, without credentials; NULL: none */
    const char *trouble;    /* why not all of this is known, or NULL */
    bool is_read;           /* the tree was compared with the commit: what follows is known */
    bool is_dirty;          /* files that git knows are changed, added or removed */
    bool is_late;           /* the tasks had been started when the tree was read */
    bool has_submodules;
    uint64_t diff_bytes; /* of code.diff; 0: there is none */
    bool is_diff_cut;    /* it is not all of the changes */
    const char *diff_sha256;
    struct code_names untracked; /* files that git does not know, folders with a '/' at the end */

    /* Of the archive. */
    const char *snapshot_root; /* the directory that it was taken of; NULL: there is none */
    uint64_t snapshot_files, snapshot_bytes;
    struct code_links {
        const char *names[CODE_NAMES_MOST], *targets[CODE_NAMES_MOST];
        uint32_t n;
    } links; /* those that lead out, which are not in it: their targets are absolute */
};

static inline bool code_facts_any(const struct code_facts *facts) {
    return facts->repository || facts->snapshot_root;
}

/* Writes the members of an object that the caller has begun. */
void code_facts_write(struct json *json, const struct code_facts *facts);

/* Reads them again; what is not as it is written counts as not there. Lives in the arena. */
void code_facts_read(const struct node *node, struct arena *arena, struct code_facts *out);

/* The same facts, copied into the arena. */
struct code_facts code_facts_copy(const struct code_facts *facts, struct arena *arena);

#endif
