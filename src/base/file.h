/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out of memory, and what is added to one whole. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"

/* Writes all of the bytes, however many calls it takes. Returns -1 with errno; some may be written
 * then. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t n);

/* Appends all of a file, or of standard input for "-". Fails with ERROR_EXHAUSTED, before it
 * has read more, when the buffer's ceiling is too low. A directory is an error that says so. */
MUST_CHECK int file_read(const char *path, struct buf *out, struct error *err);

/* The same from where an open file stands. */
MUST_CHECK int file_read_all(int fd, struct buf *out, struct error *err);

/* Appends all of the bytes to a file that was opened for that (O_APPEND) and that nobody else
 * appends to meanwhile, or nothing: what a full disk took of them is taken back. False: errno says
 * why. */
MUST_CHECK bool file_append(int fd, const char *bytes, size_t n);

/* errno of the call below for a FIFO, a directory, a device or a socket. */
enum { FILE_IS_NOT_REGULAR = EBADF };

/* open(2) of a file in a directory that tasks can write to: only a regular file, never a link, and
 * never a wait. Returns -1 with errno. */
int file_open_regular(const char *path, int flags, unsigned mode);

/* To put a whole file into the place of whatever is at a path, a directory included: makes an empty
 * file beside it, of the given mode and open to be read and written; `part` gets its name. When
 * it is filled, file_replace moves it; else the caller removes it. Both return -1 with errno. */
enum { FILE_PART_NAME = 4096 };
MUST_CHECK int file_make_part(const char *path, unsigned mode, char part[static FILE_PART_NAME]);
MUST_CHECK int file_replace(const char *part, const char *path);

#endif
