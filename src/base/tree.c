/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <fts.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512 };

static FTS *open_tree(const char *path) {
    /* fts declares its paths without const, and does not change them. */
    char *paths[] = { (char *)(uintptr_t)path, NULL };

    return fts_open(paths, FTS_PHYSICAL | FTS_XDEV, NULL);
}

void tree_remove(const char *path) {
    FTS *tree = open_tree(path);
    FTSENT *entry;

    while (tree && (entry = fts_read(tree))) {
        if (entry->fts_info == FTS_D && (entry->fts_statp->st_mode & 0700) != 0700)
            chmod(entry->fts_accpath, 0700);
        else if (entry->fts_info == FTS_DP || entry->fts_info == FTS_DNR)
            rmdir(entry->fts_accpath);
        else if (entry->fts_info != FTS_D)
            unlink(entry->fts_accpath);
    }
    if (tree)
        fts_close(tree);
}

uint64_t tree_weigh(const char *path) {
    FTS *tree = open_tree(path);
    uint64_t bytes = 0;
    const FTSENT *entry;

    while (tree && (entry = fts_read(tree))) {
        if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR)
            continue;
        if (entry->fts_info == FTS_D || entry->fts_statp->st_nlink == 1)
            bytes += (uint64_t)entry->fts_statp->st_blocks * BLOCK_BYTES;
    }
    if (tree)
        fts_close(tree);
    return bytes;
}
