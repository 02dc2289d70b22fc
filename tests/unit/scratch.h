/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that tests write into, and their end. */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A directory for a store: in memory, where there is such a place, because tests sync often. */
static inline void scratch_make(char out[64]) {
    strcpy(out, "/dev/shm/myelin-test.XXXXXX");
    if (!mkdtemp(out)) {
        strcpy(out, "/tmp/myelin-test.XXXXXX");
        if (!mkdtemp(out))
            abort();
    }
}

static inline int scratch_unlink(const char *path, const struct stat *st, int kind,
                                 struct FTW *place) {
    (void)st;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void scratch_remove(const char *path) {
    if (nftw(path, scratch_unlink, 8, FTW_DEPTH | FTW_PHYS) != 0)
        abort();
}

#endif
