/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds runs by a query (query.h), over an index (index.h) that is first brought up to date.
 *
 * A run that is over and has no owner does not change, and is read once. What has to be looked at
 * is therefore little: the runs that were not over when they were read last, and, where the
 * directory of all runs was changed since, which of them are new and which are gone.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "search/index.h"
#include "search/query.h"
#include "store/record.h"

/* Reads a run as it is shown to people: one that died without a word is settled before. */
typedef int run_reader(const struct rundir *rundir, struct run_record *record, struct error *err);

struct search_wish {
    const struct query *query;
    const struct query_sort *sort;    /* ties: the newest run first */
    const struct query_sort *columns; /* what is wanted of each run found */
    uint64_t offset, limit;           /* limit 0: all */
};

struct search_value {
    enum cell_kind kind;
    double number;    /* or the truth */
    const char *text; /* of a word */
};

struct search_result {
    struct arena arena;          /* holds all that is below */
    uint64_t n_total;            /* runs that fulfil the query */
    uint64_t n_runs;             /* runs that there are */
    uint64_t *runs;              /* ids, in order, from `offset` on */
    size_t n;                    /* how many of them */
    struct search_value *values; /* by run, then by column */
    const char **unknown;        /* fields of the query or the sort that no run has */
    size_t n_unknown;
    uint64_t n_read;           /* runs that were read to bring the index up to date */
    double refresh_s, query_s; /* what both took */
    double query_cpu_s;        /* processor time of the query */
    struct error unused;       /* why the index of the home was not used; ERROR_NONE: it was */
};
void search_result_release(struct search_result *result);

struct search_opened {
    struct search_index *index;
    uint64_t n_read;     /* runs that were read to bring it up to date */
    struct error unused; /* as in search_result */
};

/* Opens the index of a home and brings it up to date. If the one in the home cannot be used
 * (another user damaged it or does not release it), one is made in memory from the journals. The
 * reason is in `unused` if the user can do something about it: a home that can only be read is
 * none. */
MUST_CHECK int search_open(const char *home, enum index_place place, run_reader *read,
                           struct search_opened *out, struct error *err);

MUST_CHECK int search_index(struct search_index *index, const struct search_wish *wish,
                            struct search_result *out, struct error *err);

/* Both; an index that turns out to be damaged is made again. INDEX_IN_MEMORY: only the journals
 * count, which is slower, but no other member of a shared home can change what is found. */
MUST_CHECK int search(const char *home, enum index_place place, run_reader *read,
                      const struct search_wish *wish, struct search_result *out, struct error *err);

#endif
