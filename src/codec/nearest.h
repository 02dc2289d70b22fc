/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean …?": the name that a mistyped one was probably meant to be.
 *
 * A wrong suggestion is worse than none, because a reader follows it. So a name is suggested only
 * if
 *
 *   1. few edits lead to it (insert, delete, replace, swap of neighbours; capitals and - or _ do
 * not count): none in 2 letters, 1 in up to 6, 2 in up to 10, 3 in more; and a name of up to 4
 *      letters keeps its first letter, unless that was swapped with the second; or else
 *   2. one is made of the initials of the other: lr and learning_rate; or else
 *   3. one is the beginning or the end of the other, in whole words, and more than half of it, or
 *      what was typed is the beginning or the end of this one name only: dry and dry-run.
 *
 * The caller gives only names of the kind that fits: a field for a field, a status for a status.
 */
#ifndef CODEC_NEAREST_H
#define CODEC_NEAREST_H

#include <stddef.h>

/* The best of n names for a mistyped one, or NULL if none is near enough. */
const char *nearest_name(const char *typed, const char *const *names, size_t n);

#endif
