/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store does to its directory, as a table: all that has to happen in order, and be on the
 * disk, goes through here. A test records the calls and replays what a crash would leave of them.
 *
 * Names are of files in the store's directory. All return -1 with errno, but for disk_read_log.
 */
#ifndef TRACK_DISK_H
#define TRACK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "track/bytes.h"

struct disk {
    /* Opens to read and write, with these further flags of open(2). */
    int (*open)(int directory, const char *name, int flags);
    ssize_t (*write)(int fd, const void *bytes, size_t n, uint64_t offset);
    int (*truncate)(int fd, uint64_t length);
    int (*sync)(int fd); /* data, and what is needed to find it */
    int (*sync_directory)(int directory);
    int (*rename)(int directory, const char *from, const char *to);
    int (*unlink)(int directory, const char *name);
    int (*close)(int fd);
    bool (*is_removed)(int fd); /* whether an open file has no name any more; NULL: never */
};

extern const struct disk disk_real;

/* All of it, whatever the pieces. On failure some may have been written. */
int disk_write_all(const struct disk *disk, int fd, const void *bytes, size_t n, uint64_t offset);
/* Reads up to n bytes; less only at the end of the file. */
ssize_t disk_read(int fd, void *out, size_t n, uint64_t offset);
/* Adds all of the log (wal.h); who releases the bytes is the caller, also after a failure. */
MUST_CHECK int disk_read_log(int fd, struct bytes *out, struct error *err);

#endif
