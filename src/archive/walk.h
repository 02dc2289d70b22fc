/* SPDX-License-Identifier: Apache-2.0 */
/* All that is in a directory, in the order of names: a folder before what is in it. */
#ifndef ARCHIVE_WALK_H
#define ARCHIVE_WALK_H

#include <sys/stat.h>

#include "base/error.h"

struct walk_entry {
    const char *name;      /* below the directory */
    const char *path;      /* to open it by, at the moment of the visit */
    const struct stat *st; /* of itself, not of what a link leads to */
};

/* A visit that fails ends the walk. Whoever calls has one thread: the working directory changes
 * meanwhile. */
typedef int walk_visit(void *context, const struct walk_entry *entry, struct error *err);
MUST_CHECK int walk(const char *directory, walk_visit *visit, void *context, struct error *err);
/* The same of a directory that another user may own: it fails if a symbolic link is on the way to
 * it, also if the owner puts one there meanwhile (file_open_linkless_directory). */
MUST_CHECK int walk_linkless(const char *directory, walk_visit *visit, void *context,
                             struct error *err);

#endif
