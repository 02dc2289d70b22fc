/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The -shm of a database is mapped into memory, and every member of a shared home may cut it short.
 * The kernel then sends SIGBUS to each process that touches what is gone, which would end another
 * user's supervisor and fail the run.
 *
 * SQLite maps files by the calls below. They remember what is mapped, and SIGBUS inside of it puts
 * zeroes in the place of the page that is gone. SQLite takes those for a -shm that has to be made
 * again. What this process then sees in it is no longer what others see, so the database has to be
 * closed: compare mapping_losses with its value when the database was opened.
 */
#ifndef STORE_MAPPING_H
#define STORE_MAPPING_H

#include <sys/types.h>

/* In the place of mmap(2) and munmap(2); the first one also handles SIGBUS from then on. */
void *mapping_make(void *address, size_t n, int protection, int flags, int fd, off_t offset);
int mapping_drop(void *address, size_t n);

/* How many pages were lost so far. */
unsigned mapping_losses(void);

#endif
