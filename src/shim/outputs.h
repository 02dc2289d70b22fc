/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of the task, after its end: regular files below a directory, in order of their names.
 * Symbolic links are not followed, and what cannot be read, or has a path of more than
 * FRAME_NAME_MAX bytes, is passed over and counted.
 */
#ifndef SHIM_OUTPUTS_H
#define SHIM_OUTPUTS_H

#include <limits.h>
#include <stdbool.h>

#include "shim/acks.h"
#include "shim/outgoing.h"

struct outputs_level; /* a directory that the walk is in */

struct outputs {
    const struct acks *acks;
    char path[PATH_MAX]; /* of the file, of which a tail is its name */
    size_t root_n;       /* the part of it before "/<path>" */
    char name[FRAME_NAME_MAX + 1];
    int fd; /* of the file that is being sent; -1 */
    uint64_t offset;
    struct outputs_level *levels;
    size_t depth, room;
    uint64_t unread; /* files and directories that could not be read, so far */
};

/* Begins at the first file. */
void outputs_begin(struct outputs *outputs, const char *root, const struct acks *acks);
void outputs_release(struct outputs *outputs);

/* Writes the next frame; false if all are sent. */
bool outputs_next(struct outputs *outputs, struct outgoing *out);

/* How many bytes below the directory nobody has acknowledged. */
uint64_t outputs_unsent(const char *root, const struct acks *acks);

#endif
