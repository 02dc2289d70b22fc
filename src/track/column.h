/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column: up to 256 integers of 64 bits, packed. Pure. Steps, times and values all go through it.
 *
 * The integers are replaced by their differences, or the differences of those, or stay as they
 * are, whichever takes least. From what results a base is taken, and the rest is stored with one
 * width for all; the few that need more keep their upper bits apart (a pause between two steps, one
 * value that is far off, does not widen its neighbours). All sums wrap, so that any integers come
 * back as they were.
 *
 *   u8      width of the packed numbers, 0 to 64; + 128 if there are exceptions
 *   u8      order: how often differences were taken, 0 to 2
 *   u8 u8   only with exceptions: how many, and the width of their upper bits
 *   zigzag  × order: the first of the integers, then the first of the differences
 *   zigzag  base
 *   bits    (n - order) numbers of that width, least bit first, filled up to whole bytes
 *   u8      × exceptions: which number
 *   bits    the upper bits of each
 */
#ifndef TRACK_COLUMN_H
#define TRACK_COLUMN_H

#include "track/bytes.h"

enum { COLUMN_MOST = 256 };

void column_encode(const int64_t *in, size_t n, struct bytes *out);

/* Reads n integers; how many there are is known otherwise. False: the bytes are no column. */
bool column_decode(struct cursor *in, size_t n, int64_t *out);

#endif
