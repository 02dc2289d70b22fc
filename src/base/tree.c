/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"

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

/* A name of a file that has several. */
struct named {
    ino_t inode;
    nlink_t links;
    uint64_t bytes;
};

static int by_inode(const void *a, const void *b) {
    const struct named *x = a, *y = b;

    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Those whose names were all found. */
static uint64_t weigh_named(struct named *list, size_t n) {
    uint64_t bytes = 0;

    if (n > 0)
        qsort(list, n, sizeof *list, by_inode);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && list[end].inode == list[i].inode;)
            end++;
        bytes += end - i >= list[i].links ? list[i].bytes : 0;
    }
    return bytes;
}

uint64_t tree_weigh(const char *path) {
    FTS *tree = open_tree(path);
    VEC(struct named) several = { 0 };
    uint64_t bytes = 0;
    const FTSENT *entry;

    while (tree && (entry = fts_read(tree))) {
        const struct stat *st = entry->fts_statp;

        if (entry->fts_info == FTS_DP || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR)
            continue;
        if (entry->fts_info == FTS_D || st->st_nlink == 1)
            bytes += (uint64_t)st->st_blocks * BLOCK_BYTES;
        else
            *VEC_PUSH(&several) =
                (struct named){ st->st_ino, st->st_nlink, (uint64_t)st->st_blocks * BLOCK_BYTES };
    }
    if (tree)
        fts_close(tree);
    bytes += weigh_named(several.items, several.len);
    VEC_RELEASE(&several);
    return bytes;
}
