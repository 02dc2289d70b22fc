/* SPDX-License-Identifier: Apache-2.0 */
/* Who locks a file, as far as the kernel tells (/proc/locks): to name the process that is in the
 * way. */
#ifndef STORE_LOCKS_H
#define STORE_LOCKS_H

#include <stddef.h>
#include <sys/types.h>

/* A process that holds a lock for writing on the file of this inode, from the text of /proc/locks;
 * 0: none that can be seen. Pure. */
pid_t locks_find(const char *text, dev_t device, ino_t inode);

/* The same for a path, or 0. `self` is never found: it knows what it holds. */
pid_t locks_writer(const char *path);

/* "process 12 (python3)". */
void locks_describe(pid_t pid, char *out, size_t size);

#endif
