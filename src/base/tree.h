/* SPDX-License-Identifier: Apache-2.0 */
/* Whole directories with all that is in them. Symbolic links are never followed, and neither are
 * other file systems entered that are mounted in one. Whoever calls has one thread: the working
 * directory changes meanwhile. */
#ifndef BASE_TREE_H
#define BASE_TREE_H

#include <stdint.h>

#include "base/attr.h"

/* Removes a directory that nobody else changes, as far as that is possible: for what is of no use,
 * so it does not say what stays. Takes what is not there. */
void tree_remove(const char *path);

/* The space on the disk that removing it would free, in bytes: files that have another name
 * elsewhere do not count, nor does what cannot be read. 0 for what is not there. */
uint64_t tree_weigh(const char *path);

#endif
