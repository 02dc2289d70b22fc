/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the index keeps of a run: its own fields (query.h), what its tasks said of it, and of each
 * metric the last value of the task with the least rank, and the least and the greatest of all
 * tasks. Metrics of myelin itself (system/...) are not among them.
 */
#ifndef SEARCH_FACTS_H
#define SEARCH_FACTS_H

#include "search/index.h"
#include "store/record.h"

struct facts {
    struct arena arena;
    VEC(struct fact) list;
};
void facts_release(struct facts *facts);

/* Of a run that has begun. Series that cannot be read count as none. */
void facts_gather(struct facts *facts, const struct run_record *run);

#endif
