/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logs of several tasks as one, in the order of time: of those that may have more to read, the
 * one whose next piece is the oldest comes first. Pieces of one time come in the order of ranks.
 *
 *   logmerge_add(merge, rank);              for each log that may have news
 *   while (logmerge_first(merge, &rank))
 *       if (logread_next(&logs[rank], …))   show the piece, then
 *           logmerge_read(merge);           it has a new place in the order
 *       else
 *           logmerge_drop(merge);           it has nothing more now
 */
#ifndef CLI_LOGMERGE_H
#define CLI_LOGMERGE_H

#include "cli/logread.h"

struct logmerge {
    struct logread *logs; /* by rank; borrowed */
    uint32_t *heap;       /* room for all of them */
    size_t n;
};

void logmerge_init(struct logmerge *merge, struct logread *logs, uint32_t n_logs);
void logmerge_release(struct logmerge *merge);

void logmerge_add(struct logmerge *merge, uint32_t rank);
bool logmerge_first(const struct logmerge *merge, uint32_t *rank);
void logmerge_read(struct logmerge *merge);
void logmerge_drop(struct logmerge *merge);
void logmerge_clear(struct logmerge *merge);

#endif
