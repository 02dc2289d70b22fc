/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks any bytes. Beyond "no crash": what is refused says why and leaves nothing; what is taken
 * lies inside its directory, and has no link that leads out of it.
 */
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive.h"
#include "base/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 18 };

static void require(bool law) {
    if (!law)
        abort();
}

/* A link leads to something inside, or to nothing. */
static void check_link(const char *path, const char *top) {
    char real[PATH_MAX];

    require(!realpath(path, real) ||
            (strncmp(real, top, strlen(top)) == 0 && strchr("/", real[strlen(top)])));
}

static void check_tree(char *top) {
    char *const paths[] = { top, NULL };
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *entry;

    require(tree != NULL);
    while ((entry = fts_read(tree))) {
        if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE)
            check_link(entry->fts_accpath, top);
        else if (entry->fts_info == FTS_F)
            require((entry->fts_statp->st_mode & 07000) == 0);
        else
            require(entry->fts_info == FTS_D || entry->fts_info == FTS_DP);
    }
    fts_close(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct unpack_terms terms = { .entries_most = 100,
                                               .bytes_most = 1 << 20,
                                               .seal = UNPACK_ALSO_UNSEALED };
    char place[] = "/tmp/myelin-fuzz.XXXXXX", out[64];
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    struct error err = { .code = ERROR_NONE };

    if (size <= INPUT_MAX && write(fd, data, size) == (ssize_t)size && mkdtemp(place)) {
        require(lseek(fd, 0, SEEK_SET) == 0);
        snprintf(out, sizeof out, "%s/out", place);
        if (unpack(fd, "it", out, &terms, &err) == 0) {
            check_tree(out);
            tree_remove(out);
        } else {
            require(err.message[0] != '\0');
        }
        require(rmdir(place) == 0);
    }
    close(fd);
    return 0;
}
