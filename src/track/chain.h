/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain: the segments of one process, <chain>-000000.spool and on, read one after the other. Part
 * of the fold (fold.h), which finds the chains, commits, and removes what chain_read is done with.
 */
#ifndef TRACK_CHAIN_H
#define TRACK_CHAIN_H

#include <sys/types.h>

#include "track/fold.h"

struct chain {
    char *name;   /* "<pid>-<start>", of its file names */
    char *source; /* "<task>/<name>": its mark */
    uint32_t rank;
    pid_t pid;

    uint32_t number; /* of the segment that is read */
    uint32_t
        resume; /* its offset from which on nothing was delivered yet; CHAIN_SPOILT: read no more */
    bool is_loaded; /* the reader is that segment's */
    struct spool_reader reader;
    uint64_t dropped;   /* as its headers say */
    uint64_t counted;   /* as its link says, of a process that had no segment */
    bool has_link;      /* there is or was one */
    bool has_set_aside; /* it has marks of segments that are set aside */

    uint32_t kept;    /* the first number that may still be a file */
    uint32_t highest; /* the last one seen */
    uint32_t covered; /* numbers below are covered by a commit */
    bool is_over;     /* nothing will come */
};

#define CHAIN_SPOILT UINT32_MAX

/* What the chains of a step share. */
struct chain_reading {
    const struct fold_given *given;
    enum fold_extent extent;
    const char *directory; /* of the task */
    unsigned char *buffer;
    size_t buffer_n; /* room for the largest segment */
    int64_t budget;  /* bytes that may still be read in this step */
    struct fold_result *result;
};

/* A chain that was seen for the first time, by a file of this number: reads on from its mark. */
void chain_init(struct chain *chain, const char *task, uint32_t rank, const char *name,
                size_t name_n, uint32_t number, const struct series_store *store);
void chain_release(struct chain *chain);

/* Adds to the store what is new, and sets the marks. Returns true when it stopped although there
 * may be more: the budget is used up, or the store is full. */
bool chain_read(struct chain *chain, struct chain_reading *reading);

/* The path of one of its segments, in a buffer of the caller's. */
const char *chain_path(const struct chain *chain, const char *directory, uint32_t number,
                       char *buffer, size_t n);

/* The name of the mark that keeps what the chain has dropped. */
const char *chain_dropped_source(const struct chain *chain, char *buffer, size_t n);

/* The name of the mark of a segment of which not all could be read: it is set aside, never removed.
 */
const char *chain_aside_source(const struct chain *chain, uint32_t number, char *buffer, size_t n);

/* The marks of the run's totals. */
#define TOTAL_BAD     "total bad"
#define TOTAL_LOST    "total lost"
#define TOTAL_DROPPED "total dropped"

#endif
