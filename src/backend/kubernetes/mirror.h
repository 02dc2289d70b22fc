/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of a task that runs in a pod, as files of this machine: what the shim sends of each
 * segment (docs/shim.md) is written to the same places of a file of the same name in
 * spool/<task>/ of the run, where the fold reads and removes it.
 *
 * What is sent is not trusted: a name has to be that of a segment, and bytes follow those that are
 * there without a gap. Anything else is INVALID, and nothing is written.
 *
 * What the fold finds is right at any moment, also after a kill at any instruction:
 *   1. A file has the size that its header says, and of its records only whole ones, the word that
 *      begins a record written last.
 *   2. A segment that is done is noted as complete, in a file beside the logs, before its own
 *      header says that it is done, and on the disk by then: a power cut is as a kill. So one that
 * the fold has removed is known to have been here, and is asked for no more, by whichever process
 * comes next: no point comes twice.
 *
 * How much there is of each (mirror_list) is told to the shim, which then gives it up: only after
 * mirror_sync.
 */
#ifndef BACKEND_KUBERNETES_MIRROR_H
#define BACKEND_KUBERNETES_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define MIRROR_PREFIX "spool/"

struct mirror;

/* Reads what is there. `spool` is the run's, `logs` the directory of the attempt's logs. */
struct mirror *mirror_new(const char *spool, const char *logs, const char *task);
void mirror_free(struct mirror *mirror); /* takes NULL */

/* A stream begins: what the last one left unfinished comes again. */
void mirror_begin(struct mirror *mirror);

/* Bytes of the segment `name` (n_name bytes, without the prefix), and that nothing follows of it.
 * Both fail with INVALID for what no shim sends, else because it cannot be kept at present: then
 * it is to be asked for again. */
MUST_CHECK int mirror_write(struct mirror *mirror, const char *name, size_t n_name, uint64_t offset,
                            const char *bytes, size_t n, struct error *err);
MUST_CHECK int mirror_whole(struct mirror *mirror, const char *name, size_t n_name, uint64_t size,
                            struct error *err);

/* Appends a line "spool/NAME SIZE" for each segment: all, or those that grew since they were
 * confirmed. Those that find no room are left out. */
enum mirror_extent { MIRROR_ALL, MIRROR_NEWS };
void mirror_list(struct mirror *mirror, enum mirror_extent extent, struct buf *out);
/* The shim has taken note of what was listed last. */
void mirror_confirmed(struct mirror *mirror);

/* All that was written is on the disk. */
MUST_CHECK int mirror_sync(struct mirror *mirror, struct error *err);

/* Whether something was kept that the shim does not know of. */
bool mirror_has_news(const struct mirror *mirror);

#endif
