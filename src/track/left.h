/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at what lies in a spool (fold_look of fold.h), and the links that have the count of a
 * process without a segment (docs/spool.md). Part of the fold.
 */
#ifndef TRACK_LEFT_H
#define TRACK_LEFT_H

#include "track/fold.h"

/* The number that such a link holds; false: it is no such link. */
bool left_count(int directory, const char *name, uint64_t *out);

#endif
