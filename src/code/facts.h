/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the code in a repository: its commit, and what was changed since. Nothing is
 * written to the repository, its index included.
 */
#ifndef CODE_FACTS_H
#define CODE_FACTS_H

#include "base/buf.h"
#include "store/code_facts.h"

enum {
    CODE_DIFF_MOST = 16 << 20, /* bytes that are kept of the changes */
    CODE_FILE_MOST = 8 << 20,  /* of a changed file: the changes to a larger one are left out */
};

/* The top of the tree that a directory belongs to: the nearest one above it that has a `.git`, on
 * the same file system, as git itself looks. NULL: it is in no repository. A few calls of stat. */
const char *code_top(const char *directory, struct arena *arena);

/* Where a directory lies in the tree whose top code_top has found: "." or "a/b". */
const char *code_place(const char *top, const char *directory, struct arena *arena);

/* Reads the facts in two steps: `head` is told as soon as commit and branch are known, which takes
 * no time; the comparison of the tree may take long where the tree is large. Changes of tracked
 * files, staged or not, are appended to `diff`, whose limit is the caller's; untracked files are
 * named. What cannot be known is told as facts.trouble. */
struct code_listener {
    void (*head)(void *context, const struct code_facts *facts);
    void *context;
};
void code_facts_gather(const char *top, const char *place, const struct code_listener *listener,
                       struct arena *arena, struct buf *diff, struct code_facts *out);

#endif
