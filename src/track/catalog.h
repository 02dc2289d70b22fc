/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a data file holds (data.h): its series, and where the points of each are. Made by reading
 * the index, where there is one, and the heads of the chunks behind it. Both the writer, when it
 * opens and merges, and readers stand on it.
 */
#ifndef TRACK_CATALOG_H
#define TRACK_CATALOG_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "track/data.h"
#include "track/wal.h"

struct catalog_series {
    const char *name; /* NUL-terminated, in the arena */
    uint32_t name_length, rank, attempt;
    uint32_t depth;                   /* of the tree under the root */
    struct data_node root;            /* from the index; count 0: none */
    uint32_t first_loose, last_loose; /* chunks behind the index; 0: none */
    struct summary all;
};

/* Chunks behind the index, of all series in one array: there may be many series with few each. */
struct catalog_loose {
    struct data_node node;
    uint32_t next; /* of the same series: number in the array + 1; 0: none */
};

struct catalog {
    int fd;          /* of the data file, the caller's; -1: there is none */
    uint64_t length; /* that counts of it */
    struct arena arena;
    VEC(struct catalog_series) series;
    VEC(struct catalog_loose) loose;
    uint64_t loose_bytes;
    uint64_t damaged; /* frames that could not be read */
};

#define CATALOG_INIT                                                                               \
    { .fd = -1 }

/* Fails where the file cannot be read at all; what is damaged in it is counted and passed over. */
MUST_CHECK int catalog_load(struct catalog *catalog, int fd, const struct wal_manifest *manifest,
                            struct error *err);
void catalog_release(struct catalog *catalog);

/* A series that is not in the data file, as the log defines it. */
void catalog_define(struct catalog *catalog, const char *name, size_t n, uint32_t rank,
                    uint32_t attempt);

/* The nodes below this one, at depth > 0; returns how many, 0 when they are damaged. */
size_t catalog_children(struct catalog *catalog, const struct data_node *node,
                        struct data_node out[DATA_FAN]);
/* The frame of a chunk, all of it, into `frame`; false when it is damaged. `body` is within it. */
bool catalog_chunk(struct catalog *catalog, const struct data_node *leaf, struct bytes *frame,
                   struct chunk_head *head, const unsigned char **body);

/* Its head, and after that blocks of it: for who needs a few only. */
bool catalog_head(struct catalog *catalog, const struct data_node *leaf, struct chunk_head *head,
                  uint64_t *body_at);
bool catalog_block(struct catalog *catalog, const struct chunk_head *head, uint64_t body_at,
                   uint32_t block, struct point out[CHUNK_BLOCK]);

/* Visits the chunks of a series in the order of their points; ends when the callback returns
 * non-zero, which is returned. Damaged parts are counted and passed over. */
int catalog_each_chunk(struct catalog *catalog, const struct catalog_series *series,
                       int (*visit)(void *context, const struct data_node *leaf), void *context);

#endif
