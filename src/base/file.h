/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in and out of memory, and what is added to one whole. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* errno of the calls below for a FIFO, a directory, a device or a socket. */
enum { FILE_IS_NOT_REGULAR = ENXIO };

/* Opens a regular file that may have been put there by somebody else. Never blocks and never acts
 * on anything but a regular file: a symbolic link fails with ELOOP, a FIFO, device, socket or
 * directory with FILE_IS_NOT_REGULAR. The descriptor is non-blocking (which means nothing for a
 * regular file) and closed by exec. Returns the descriptor, or -1 with errno. */
MUST_CHECK int file_open_regular(const char *path, int flags, mode_t mode);
/* The same of a name in a directory that is open. */
MUST_CHECK int file_open_regular_at(int directory, const char *name, int flags, mode_t mode);
/* The same, and no directory on the way is a symbolic link either: for files below a directory that
 * another user owns. The path must be canonical (realpath) down to that directory. */
MUST_CHECK int file_open_linkless(const char *path, int flags, mode_t mode);
/* The directory itself, likewise; to be read with fdopendir. */
MUST_CHECK int file_open_linkless_directory(const char *path);
/* The same to list it, as opendir(3) does. NULL with errno. */
DIR *file_list_linkless(const char *path);

/* unlink(2), and rename(2) to another name in the same directory, that follow no symbolic link on
 * the way to the file. Return -1 with errno. */
MUST_CHECK int file_remove_linkless(const char *path);
MUST_CHECK int file_rename_linkless(const char *path, const char *name);
/* mkdir(2), likewise. */
MUST_CHECK int file_make_directory_linkless(const char *path, mode_t mode);

/* Writes all of the bytes, however many calls it takes. Returns -1 with errno; some may be written
 * then. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t n);

/* Appends all of a file, or of standard input for "-". Fails with ERROR_EXHAUSTED, before it
 * has read more, when the buffer's ceiling is too low. A directory is an error that says so. */
MUST_CHECK int file_read(const char *path, struct buf *out, struct error *err);
/* Appends all of a file that is opened by file_open_linkless. */
MUST_CHECK int file_read_linkless(const char *path, struct buf *out, struct error *err);
/* Appends what is left to read of a descriptor. */
MUST_CHECK int file_read_rest(int fd, struct buf *out, struct error *err);

/* Appends all of the bytes to a file that was opened for that (O_APPEND) and that nobody else
 * appends to meanwhile, or nothing: what a full disk took of them is taken back. False: errno says
 * why. */
MUST_CHECK bool file_append(int fd, const char *bytes, size_t n);

/* To put a whole file into the place of whatever is at a path, a directory included: makes an empty
 * file beside it, of the given mode and open to be read and written; `part` gets its name. When
 * it is filled, file_replace moves it; else the caller removes it. Symbolic links are not followed,
 * as above. Both return -1 with errno. */
enum { FILE_PART_NAME = 4096 };
MUST_CHECK int file_make_part(const char *path, unsigned mode, char part[static FILE_PART_NAME]);
MUST_CHECK int file_replace(const char *part, const char *path);

#endif
