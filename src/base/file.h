/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out of memory. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"

/* Writes all of the bytes, however many calls it takes. Returns -1 with errno; some may be written
 * then. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t n);

/* Appends all of a file, or of standard input for "-". Fails with ERROR_EXHAUSTED, before it
 * has read more, when the buffer's ceiling is too low. A directory is an error that says so. */
MUST_CHECK int file_read(const char *path, struct buf *out, struct error *err);

#endif
