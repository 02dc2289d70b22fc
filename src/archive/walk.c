/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/walk.h"

#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <string.h>

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

int walk(const char *directory, walk_visit *visit, void *context, struct error *err) {
    /* fts declares its paths without const, and does not change them. */
    char *paths[] = { (char *)(uintptr_t)directory, NULL };
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_XDEV, by_name);
    const FTSENT *entry = NULL;
    int status = 0;

    if (!tree)
        return error_set_errno(err, errno, "cannot read '%.300s'", directory);
    while (status == 0 && (errno = 0, entry = fts_read(tree)))
        status = visit_entry(entry, strlen(directory), visit, context, err);
    if (status == 0 && errno)
        status = error_set_errno(err, errno, "cannot read '%.300s'", directory);
    fts_close(tree);
    return status;
}
