/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the log of each task was read from its pod, in a file beside the logs: one slot a task,
 * written after the bytes that it speaks of. A slot that is cut or damaged counts as none, and the
 * log is then compared by its size alone.
 *
 * There are two such files. Of a log that comes by the log API a slot is the cursor of its stream;
 * of one that the shim sends it has how much of that log came (offset), and how much was kept here
 * by then (lines), which is less where a limit or a full disk left something out.
 */
#ifndef BACKEND_KUBERNETES_CURSORS_H
#define BACKEND_KUBERNETES_CURSORS_H

#include "backend/kubernetes/logstream.h"

struct cursors {
    int fd; /* -1: nothing is kept */
};

#define CURSORS_API  ".cursors"
#define CURSORS_SHIM ".positions"

/* Opens or makes the file in the directory; without it, a process that takes over reads all logs
 * from their beginning. A file that was there is of a process before this one. */
enum cursors_origin { CURSORS_NEW, CURSORS_OF_BEFORE };
enum cursors_origin cursors_open(struct cursors *cursors, const char *directory, const char *name);
void cursors_close(struct cursors *cursors);

/* Zeroed where nothing is known. */
struct logstream_cursor cursors_read(const struct cursors *cursors, uint32_t rank);
void cursors_write(const struct cursors *cursors, uint32_t rank, const struct logstream_cursor *at);

#endif
