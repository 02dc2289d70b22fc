/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seal of an archive: its last entry, which has the SHA-256 of all entries before it, so that
 * what was damaged on its way is found. tar guards its headers alone, and the compressor nothing.
 */
#ifndef ARCHIVE_SEAL_H
#define ARCHIVE_SEAL_H

#include <sys/types.h>

#include "base/sha256.h"

#define SEAL_NAME ".sha256"

/* Adds what stands before the content of an entry. `target` is that of a link, or NULL. */
void seal_add_header(struct sha256 *hash, const char *name, mode_t mode, int64_t modified_s,
                     const char *target);

#endif
