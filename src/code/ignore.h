/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a .gitignore or .polyaxonignore says, with the rules of git. Pure.
 *
 *   # comment           a line without meaning, as an empty one
 *   *.pyc               without a '/' in it: any file or folder of that name, at any depth
 *   /data   a/b         with one: from the folder that has the file
 *   logs/               with one at the end: folders alone
 *   !keep.log           what an earlier line ignores is kept after all
 *   two stars          as a whole part of the path: any number of folders
 *   * ? [a-z] [!x]      within one part of a path; \ takes the next character as it is
 *
 * The last line that matches decides. What lies in an ignored folder is never asked for: who walks
 * the tree does not go into one.
 */
#ifndef CODE_IGNORE_H
#define CODE_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/vec.h"

enum { IGNORE_LINE_MOST = 4096 }; /* longer lines match nothing: no path is so long */

struct ignore_rule {
    const char *pattern; /* without what the flags say */
    size_t literal;      /* bytes at its beginning that stand for themselves */
    bool is_negated, is_for_folders, is_anchored;
};

struct ignore_rules {
    VEC(struct ignore_rule) list;
};
void ignore_release(struct ignore_rules *rules);

/* Adds the lines of a file after those that are there. */
void ignore_parse(struct ignore_rules *rules, const char *text, size_t n, struct arena *arena);

enum ignore_answer { IGNORE_UNDECIDED, IGNORE_IGNORED, IGNORE_KEPT };
enum ignore_kind { IGNORE_FILE, IGNORE_FOLDER };

/* `path` is from the folder that has the file, without a '/' at either end. */
enum ignore_answer ignore_ask(const struct ignore_rules *rules, const char *path,
                              enum ignore_kind kind);

#endif
