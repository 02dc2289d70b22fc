/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of the tasks of a gang whose pods have outputs of their own, gathered into those of
 * the run. Several tasks may have a file of the same name: that of the lowest rank is kept, the
 * others are counted.
 *
 * What is sent is not trusted: a path leads from the outputs downwards, component by component,
 * over directories alone, never over a symbolic link; bytes follow those that are there without a
 * gap.
 *
 * A file appears when it is whole and on the disk; until then it is one of the name GATHER_PART
 * beside the others. Which rank has given which file is kept in a file beside the logs, written
 * once it has appeared: whoever takes over goes on with it, and after a kill between the two asks
 * for that one file again.
 */
#ifndef BACKEND_KUBERNETES_GATHER_H
#define BACKEND_KUBERNETES_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define GATHER_PREFIX "outputs/"
#define GATHER_PART   ".myelin-part." /* and the rank */

struct gather;

/* Reads what is known. `outputs` is the run's, `logs` the directory of the attempt's logs. */
struct gather *gather_new(const char *outputs, const char *logs, uint32_t n_tasks);
void gather_free(struct gather *gather); /* takes NULL */

/* Bytes of the file at `path` (n_path bytes, without the prefix), and that nothing follows of it.
 * Both fail with INVALID for what no shim sends, else because it cannot be kept at present. A path
 * that leads elsewhere, or that another file stands in the way of, is no error: it is counted as
 * refused. */
MUST_CHECK int gather_write(struct gather *gather, uint32_t rank, const char *path, size_t n_path,
                            uint64_t offset, const char *bytes, size_t n, struct error *err);
MUST_CHECK int gather_whole(struct gather *gather, uint32_t rank, const char *path, size_t n_path,
                            uint64_t size, struct error *err);

/* Appends a line "outputs/PATH SIZE" for each file that the rank has given whole, and for the one
 * that is coming; those that find no room are left out. */
void gather_list(const struct gather *gather, uint32_t rank, struct buf *out);

/* Nothing comes of the rank any more: what is left of a part is removed. */
void gather_end(struct gather *gather, uint32_t rank);

struct gather_counts {
    uint64_t files;   /* that were kept */
    uint64_t doubles; /* files that a lower rank has too */
    uint64_t refused;
    const char *double_path, *refused_path; /* the first of each; NULL: none */
};
struct gather_counts gather_counts(const struct gather *gather);

#endif
