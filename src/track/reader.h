/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a reader of series (query.h): what reader.c and query.c share. */
#ifndef TRACK_READER_H
#define TRACK_READER_H

#include "track/catalog.h"
#include "track/query.h"

/* Points that stand in the log alone. */
struct tail {
    struct point *items;
    size_t len, capacity;
};

struct series_reader {
    struct catalog catalog;
    int data;
    VEC(struct tail) tails; /* one for each series */
};

#endif
