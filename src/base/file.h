/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out of memory, and what is added to one whole. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>

#include "base/buf.h"

/* Writes all of the bytes, however many calls it takes. Returns -1 with errno; some may be written
 * then. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t n);

/* Appends all of a file, or of standard input for "-". Fails with ERROR_EXHAUSTED, before it
 * has read more, when the buffer's ceiling is too low. A directory is an error that says so. */
MUST_CHECK int file_read(const char *path, struct buf *out, struct error *err);

/* Appends all of the bytes to a file that was opened for that (O_APPEND) and that nobody else
 * appends to meanwhile, or nothing: what a full disk took of them is taken back. False: errno says
 * why. */
MUST_CHECK bool file_append(int fd, const char *bytes, size_t n);

#endif
