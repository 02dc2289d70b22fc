/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/walk.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static int by_name(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int visit_entry(const FTSENT *entry, size_t prefix, walk_visit *visit, void *context,
                       struct error *err) {
    const char *name = entry->fts_path + prefix;
    const struct walk_entry it = { .name = name + (*name == '/'),
                                   .path = entry->fts_accpath,
                                   .st = entry->fts_statp };

    switch (entry->fts_info) {
    case FTS_DP: return 0; /* for the second time */
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return error_set_errno(err, entry->fts_errno, "cannot read '%.300s'", entry->fts_path);
    default: return entry->fts_level == FTS_ROOTLEVEL ? 0 : visit(context, &it, err);
    }
}

/* fts enters a directory only if it is the one that it has seen before, but it follows links on the
 * way to the first. */
static bool is_other(const FTSENT *entry, const struct stat *wanted) {
    return wanted && entry->fts_level == FTS_ROOTLEVEL &&
           (entry->fts_statp->st_dev != wanted->st_dev ||
            entry->fts_statp->st_ino != wanted->st_ino);
}

static int walk_from(const char *directory, const struct stat *wanted, walk_visit *visit,
                     void *context, struct error *err) {
    /* fts declares its paths without const, and does not change them. */
    char *paths[] = { (char *)(uintptr_t)directory, NULL };
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, by_name);
    const FTSENT *entry = NULL;
    int status = 0;

    if (!tree)
        return error_set_errno(err, errno, "cannot read '%.300s'", directory);
    while (status == 0 && (errno = 0, entry = fts_read(tree)))
        status = is_other(entry, wanted)
                     ? error_set(err, ERROR_CONFLICT, "'%.300s' was replaced meanwhile", directory)
                     : visit_entry(entry, strlen(directory), visit, context, err);
    if (status == 0 && errno)
        status = error_set_errno(err, errno, "cannot read '%.300s'", directory);
    fts_close(tree);
    return status;
}

int walk(const char *directory, walk_visit *visit, void *context, struct error *err) {
    return walk_from(directory, NULL, visit, context, err);
}

int walk_linkless(const char *directory, walk_visit *visit, void *context, struct error *err) {
    const int fd = file_open_linkless_directory(directory);
    struct stat wanted;
    int status;

    /* While it is open, no other directory gets its number. */
    if (fd < 0 || fstat(fd, &wanted) < 0)
        status = error_set_errno(err, errno, "cannot read '%.300s'", directory);
    else
        status = walk_from(directory, &wanted, visit, context, err);
    if (fd >= 0)
        close(fd);
    return status;
}
