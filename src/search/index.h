/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index over all runs of a home: $MYELIN_HOME/index.db. All of it is derived from the runs'
 * directories: one that is missing, damaged or of another version is made again, and losing it
 * loses nothing. Where none can be kept (a home that cannot be written, a file system without
 * locks) it is made in memory.
 *
 * It holds columns, not rows: for each field the cells of 256 runs with consecutive ids are one
 * blob, so that a condition over all runs reads the column that it is about and nothing else.
 * Texts are numbered words. A blob is either 256 cells, or, where few runs have the field, pairs of
 * a byte (which run of the block) and a cell.
 */
#ifndef SEARCH_INDEX_H
#define SEARCH_INDEX_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "search/cell.h"

enum { INDEX_BLOCK = 256, INDEX_VERSION = 1, INDEX_WORD_MOST = 4096 };

struct search_index;

enum index_place { INDEX_IN_HOME, INDEX_IN_MEMORY };

MUST_CHECK int index_open(const char *home, enum index_place place, struct search_index **out,
                          struct error *err);
void index_free(struct search_index *index);
/* Whether something failed because the file is no sound index: discard it then. */
bool index_is_damaged(const struct search_index *index);
/* Removes the file. Who has it open goes on with what it was. */
void index_discard(const char *home);

/* ---- reading ---- */

/* What follows sees the index as it is at one moment, and locks it once, until index_rollback. */
MUST_CHECK int index_look(struct search_index *index, struct error *err);

/* The number of a field or a word; 0: there is none. */
MUST_CHECK int index_field(struct search_index *index, const char *name, uint32_t *out,
                           struct error *err);
MUST_CHECK int index_word(struct search_index *index, const char *text, uint64_t *out,
                          struct error *err);
/* The text of a word, in the arena; "" where there is none. */
MUST_CHECK int index_text(struct search_index *index, uint64_t word, struct arena *arena,
                          const char **out, struct error *err);

/* All words in the order of their texts, or all fields. The text is valid during the call. */
typedef void index_visit(void *context, uint64_t number, const char *text);
MUST_CHECK int index_each_word(struct search_index *index, index_visit *visit, void *context,
                               struct error *err);
MUST_CHECK int index_each_field(struct search_index *index, index_visit *visit, void *context,
                                struct error *err);

/* One field of all runs: cells[i * INDEX_BLOCK + j] is of run blocks[i] * INDEX_BLOCK + j. */
struct index_blocks {
    VEC(uint64_t) numbers; /* ascending */
};
/* The blocks that have runs, which are those in which a run has the field. */
MUST_CHECK int index_blocks(struct search_index *index, uint32_t field, struct index_blocks *out,
                            struct error *err);
/* Cells of a field in these blocks; `out` has room for all. Field 0: nothing anywhere. */
MUST_CHECK int index_column(struct search_index *index, uint32_t field,
                            const struct index_blocks *blocks, cell *out, struct error *err);
MUST_CHECK int index_cell(struct search_index *index, uint32_t field, uint64_t run, cell *out,
                          struct error *err);

/* ---- writing: between begin and commit ---- */

struct fact {
    const char *field;
    enum cell_kind kind; /* a number, a word or a truth */
    double number;       /* or the truth */
    const char *text;    /* of a word; what is longer than INDEX_WORD_MOST is cut */
};

MUST_CHECK int index_begin(struct search_index *index, struct error *err);
MUST_CHECK int index_commit(struct search_index *index, struct error *err);
void index_rollback(struct search_index *index);

/* Replaces all that is known of a run; no facts: it is forgotten. Ids that ascend are cheapest. */
MUST_CHECK int index_put(struct search_index *index, uint64_t run, const struct fact *facts,
                         size_t n, struct error *err);

/* Runs that have to be read again: they were not over. */
MUST_CHECK int index_watch(struct search_index *index, uint64_t run, bool is_watched,
                           struct error *err);
struct index_ids {
    VEC(uint64_t) list; /* ascending */
};
MUST_CHECK int index_watched(struct search_index *index, struct index_ids *out, struct error *err);

/* When the directory of all runs was last changed, as far as the index knows; 0: not known. */
MUST_CHECK int index_seen(struct search_index *index, int64_t *out, struct error *err);
MUST_CHECK int index_see(struct search_index *index, int64_t changed_ns, struct error *err);

#endif
