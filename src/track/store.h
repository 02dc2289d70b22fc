/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the writer of series (series.h): what series.c, publish.c, recover.c and merge.c share.
 *
 * A point is in up to three places: in the log (or in the frame that will be its next), and, until
 * the log is replaced, in the buffer of its series or in chunks at the end of the data file that
 * nobody counts yet. Replacing the log by a new manifest is what makes them count: one rename
 * decides, and whoever reads sees either side of it.
 *
 *   add ──► frame ── commit ──► wal            rotate: buffers ──► data, synced
 *    └────► buffer ── 4096 ──► data (uncounted)         └► new wal with the manifest, renamed
 */
#ifndef TRACK_STORE_H
#define TRACK_STORE_H

#include "track/catalog.h"
#include "track/disk.h"
#include "track/map.h"
#include "track/series.h"

struct point_buffer {
    struct point *points;
    size_t n, capacity;
};

struct series_store {
    const struct disk *disk;
    const char *path; /* of the directory, for messages */
    int directory, lock, wal, data;

    uint32_t nonce;
    uint64_t wal_length;
    size_t wal_limit;
    struct wal_manifest manifest; /* what the log on the disk says */

    struct wal_frame frame; /* what the next commit appends */
    bool is_frame_lost;     /* it grew too large: the next commit rotates */
    bool is_changed;        /* something waits to be committed */
    bool is_log_old;        /* another process wrote it: the next commit rotates */
    bool is_broken;

    struct map ids; /* rank, attempt and name, to the number of the series: key_of */
    VEC(struct point_buffer) buffers;
    uint64_t n_held; /* points in them */
    struct map marks;
    uint64_t n_refused; /* since the last commit */
    uint64_t n_remade;

    /* The data file behind what counts. */
    struct bytes unwritten; /* frames that stand at data_end once they are written */
    uint64_t data_end;
    uint32_t n_named;  /* series whose names stand in the data file */
    bool is_unsynced;  /* written to since the last sync */
    bool is_file_new;  /* its name may not be on the disk */
    uint64_t n_loose;  /* chunks that a merge would find */
    uint64_t loose_at; /* length of the data file after the last merge */
    struct bytes head, body;
};

/* The bytes that name a series in `ids`; the name begins after SERIES_KEY of them. */
enum { SERIES_KEY = 8 };

/* publish.c: chunks, and the manifest that counts them. All as series_commit promises. */
MUST_CHECK int store_spill(struct series_store *store, uint32_t series, struct error *err);
MUST_CHECK int store_rotate(struct series_store *store, struct error *err);
MUST_CHECK int store_publish(struct series_store *store, const struct wal_manifest *manifest,
                             struct error *err);
void store_data_name(uint64_t generation, char out[32]);

/* recover.c: what the directory holds, into an empty store. */
MUST_CHECK int store_recover(struct series_store *store, struct error *err);

/* merge.c: a new generation of the data file, with an index. Nothing is held in memory. */
MUST_CHECK int store_merge(struct series_store *store, struct error *err);

/* remake.c: the files were removed, and are made anew, for a commit that counts them. */
bool store_is_removed(const struct series_store *store);
MUST_CHECK int store_remake(struct series_store *store, struct error *err);

/* The mark that keeps the points to SERIES_NONE. */
#define TOTAL_REFUSED "total refused"

/* series.c */
MUST_CHECK int store_open_directory(struct series_store *store, struct error *err);
void store_hold(struct series_store *store, uint32_t series, const struct point *point);
uint32_t store_define(struct series_store *store, const char *name, size_t n, uint32_t rank,
                      uint32_t attempt);

#endif
