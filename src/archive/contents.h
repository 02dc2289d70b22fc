/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an archive of runs says of itself: its first entry, myelin.json. Each run lies below
 * runs/<uuid>/, as its directory was. Beside that stands what the run's own files do not know:
 * which versions its models had, and their aliases. docs/keeping.md describes it.
 */
#ifndef ARCHIVE_CONTENTS_H
#define ARCHIVE_CONTENTS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#define CONTENTS_FILE "myelin.json"
enum { CONTENTS_FORMAT = 1, CONTENTS_MOST = 64 << 20 };

struct contents_model {
    const char *name;
    int64_t version;
    const char **aliases;
    size_t n_aliases;
};

struct contents_run {
    const char *uuid; /* 32 hexadecimal digits in lower case */
    int64_t id;       /* that it had there */
    uint64_t files, bytes;
    VEC(struct contents_model) models;
};

struct contents {
    struct arena arena;
    VEC(struct contents_run) runs;
};
void contents_release(struct contents *contents);

MUST_CHECK int contents_format(const struct contents *contents, struct buf *out, struct error *err);

/* Reads what contents_format wrote, into a zeroed struct. Fails with ERROR_INVALID for anything
 * else, and tells a newer format from a mistake. */
MUST_CHECK int contents_parse(const char *text, size_t n, struct contents *out, struct error *err);

#endif
